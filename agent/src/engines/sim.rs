//! The `sim` engine: a modelled accelerator with set service times. Never a measurement, and it says so everywhere.
//!
//! A unit (a GPU, a DLA core) serves one batch at a time: a base time, plus a time per sample, times a random factor
//! from a seed. Streams share units in turn; a busy unit makes the next batch wait, as a device's own queue does. The
//! answers are those of `null`: the sample index. It looks at no data and models neither memory nor heat.

use std::{
    num::NonZeroU64,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use regatta_rules::documents::EngineKind;

use super::{
    Answers, Batch, Description, Engine, EngineError, LoadRequest, Loaded,
    null::{answer_with_indices, check_size},
};

/// The modelled accelerator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimModel {
    /// Its units, at least one.
    pub(crate) units: Vec<SimUnit>,
    /// Half the width of the service times' spread, as a share of the time: 0.1 is plus or minus 10 percent.
    pub(crate) jitter: f64,
    /// Seed of the spread.
    pub(crate) seed: u64,
}

/// One unit of a modelled accelerator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimUnit {
    /// Its name, such as `gpu`.
    pub(crate) name: String,
    /// Service time of a batch, whatever its size.
    pub(crate) base: Duration,
    /// Service time of each sample, on top.
    pub(crate) per_sample: Duration,
}

impl Default for SimModel {
    /// One unit with 600 microseconds for a batch of one, about what small Jetsons take for resnet50.
    fn default() -> Self {
        let unit = SimUnit {
            name: "gpu".to_owned(),
            base: Duration::from_micros(400),
            per_sample: Duration::from_micros(200),
        };
        Self {
            units: vec![unit],
            jitter: 0.0,
            seed: 0,
        }
    }
}

impl SimModel {
    /// Reads units as `NAME=BASE+PER_SAMPLE`, times in microseconds, separated by commas: `gpu=400+60,dla0=900+210`.
    pub(crate) fn parse_units(given: &str) -> Option<Vec<SimUnit>> {
        given.split(',').map(|unit| unit.trim().parse().ok()).collect()
    }
}

impl FromStr for SimUnit {
    type Err = ();

    fn from_str(given: &str) -> Result<Self, ()> {
        let (name, times) = given.split_once('=').ok_or(())?;
        let (base, per_sample) = times.split_once('+').ok_or(())?;
        let micros = |text: &str| text.trim().parse().map(Duration::from_micros).map_err(|_| ());
        if name.trim().is_empty() {
            return Err(());
        }
        Ok(Self {
            name: name.trim().to_owned(),
            base: micros(base)?,
            per_sample: micros(per_sample)?,
        })
    }
}

/// A unit with the time until which it is busy. Streams that share it reserve their time one after the other.
struct Unit {
    model: SimUnit,
    busy_until: Mutex<Instant>,
}

/// One stream of a modelled accelerator.
struct Sim {
    max_batch: usize,
    unit: Arc<Unit>,
    jitter: f64,
    random: SplitMix,
}

/// One `sim` per stream, spread over the units. Cannot fail: there is nothing to read.
pub(super) fn load(request: &LoadRequest<'_>) -> Loaded {
    let model = request.sim;
    let now = Instant::now();
    let units: Vec<_> = model
        .units
        .iter()
        .map(|unit| {
            Arc::new(Unit {
                model: unit.clone(),
                busy_until: Mutex::new(now),
            })
        })
        .collect();
    let max_batch = request.batch_sizes.iter().copied().fold(1, usize::max);
    let engines = units
        .iter()
        .cycle()
        .take(request.streams)
        .enumerate()
        .map(|(stream, unit)| {
            // Streams draw from sequences of their own, so that their interleaving does not change the service times.
            let random = SplitMix(
                model
                    .seed
                    .wrapping_add((stream as u64).wrapping_mul(SplitMix::STEP)),
            );
            Box::new(Sim {
                max_batch,
                unit: Arc::clone(unit),
                jitter: model.jitter,
                random,
            }) as Box<dyn Engine>
        });
    Loaded {
        description: describe(model),
        engines: engines.collect(),
    }
}

fn describe(model: &SimModel) -> Description {
    let units: Vec<String> = model
        .units
        .iter()
        .map(|unit| {
            format!(
                "{} {}+{}/sample us",
                unit.name,
                unit.base.as_micros(),
                unit.per_sample.as_micros()
            )
        })
        .collect();
    Description {
        kind: EngineKind::Sim,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runs_on: format!(
            "a modelled accelerator, no measurement ({}, jitter {}, seed {})",
            units.join(", "),
            model.jitter,
            model.seed
        ),
    }
}

impl Engine for Sim {
    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        check_size(batch, self.max_batch)?;
        let samples = u32::try_from(batch.samples.len()).unwrap_or(u32::MAX);
        let modelled = self.unit.model.base + self.unit.model.per_sample.saturating_mul(samples);
        let service = modelled.mul_f64(self.random.factor(self.jitter));
        let ready = {
            let mut busy_until = self
                .unit
                .busy_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *busy_until = (*busy_until).max(Instant::now()) + service;
            *busy_until
        };
        wait_until(ready);
        answer_with_indices(batch, answers);
        Ok(())
    }
}

/// The last stretch of a wait, which is spun away: the kernel may wake a sleeper this late.
const SPIN: Duration = Duration::from_micros(80);

/// Waits until `ready`, asleep for the most part as a host is while its accelerator works.
fn wait_until(ready: Instant) {
    if let Some(sleep) = ready.saturating_duration_since(Instant::now()).checked_sub(SPIN) {
        // Without a finer timer slack the sleep may end 50 us late; where the kernel refuses, the spin still ends on time
        // or the service time is that much longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
        std::thread::sleep(sleep);
    }
    while Instant::now() < ready {
        std::hint::spin_loop();
    }
}

/// SplitMix64, the usual generator for small repeatable models.
struct SplitMix(u64);

impl SplitMix {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform in `1 - jitter .. 1 + jitter`.
    fn factor(&mut self, jitter: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + jitter * (2.0 * unit - 1.0)
    }
}
