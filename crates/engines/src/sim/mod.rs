//! The `sim` engine: a modelled accelerator with configured service times. Its results are never measurements, and are
//! marked so everywhere.
//!
//! Its units (a GPU, DLA cores) are those of a modelled board (`regatta-unit-sharing`). Each unit copies one batch and
//! computes one batch at a time, which slows down the others. The answers are those of `null`: the sample index. The
//! engine does not read sample data, and does not model memory or heat.

mod model;
mod modelled_board;
mod settings;

use std::{
    num::NonZeroU64,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use regatta_types::{Scenario, documents::EngineKind};
use regatta_unit_sharing::board_simulator::BoardSimulator;

pub use self::{model::SimModel, settings::UnknownBoard};
use super::{
    Answers, Batch, Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest,
    Loaded,
    null::{answer_with_indices, counted_tokens},
};

/// The modelled chip in real time. Streams that share a unit submit their batches one after the other.
struct Accelerator {
    begun: Instant,
    /// Whether threads spin while they wait for a unit.
    spin: bool,
    chip: Mutex<BoardSimulator>,
    /// Signals a submitted or finished batch, which changes the times of other batches.
    changed: Condvar,
}

/// One stream of a modelled accelerator.
struct Sim {
    accelerator: Arc<Accelerator>,
    unit: usize,
    unit_name: String,
    max_batch: usize,
    /// The number of tokens in each answer, as reported to LoadGen.
    tokens: usize,
}

/// The `sim` engine with the settings of a run.
pub(super) struct SimBackend {
    model: SimModel,
    plan: EnginePlan,
}

impl EngineBackend for SimBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let model =
            SimModel::of(request.settings).map_err(|unknown| EngineError::Settings(unknown.into()))?;
        let units = model.board.units.len();
        let of_threads = EnginePlan::of_threads(request);
        let plan = EnginePlan {
            streams: match (request.settings.inference_streams, request.scenario) {
                (Some(_), _) | (_, Scenario::SingleStream) => of_threads.streams,
                // A query has no successor for a second stream of the same unit.
                (None, Scenario::MultiStream) => units,
                (None, Scenario::Server | Scenario::Offline) => model.streams().count(),
            },
            units,
            offline_batch: model.published_batch(),
            ..of_threads
        };
        Ok(Self { model, plan })
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Sim
    }

    fn plan(&self) -> EnginePlan {
        self.plan
    }

    /// Returns one engine per stream, distributed over the units. Cannot fail, because nothing is read.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let model = &self.model;
        let largest = request.batch_sizes.iter().copied().fold(1, usize::max);
        let accelerator = Arc::new(Accelerator {
            begun: Instant::now(),
            spin: model.spin,
            chip: Mutex::new(BoardSimulator::new(model.board.clone(), model.seed)),
            changed: Condvar::new(),
        });
        let tokens = counted_tokens(&request.benchmark.model);
        let engines = model.streams().cycle().take(request.streams).map(|unit| {
            Box::new(Sim {
                accelerator: Arc::clone(&accelerator),
                unit,
                unit_name: model.board.units[unit].name.clone(),
                max_batch: largest.min(model.board.units[unit].batch),
                tokens,
            }) as Box<dyn Engine>
        });
        Ok(Loaded {
            description: Description {
                kind: EngineKind::Sim,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                runs_on: model.to_string(),
            },
            engines: engines.collect(),
            shared: None,
        })
    }
}

impl Engine for Sim {
    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn unit(&self) -> usize {
        self.unit
    }

    fn unit_name(&self) -> String {
        self.unit_name.clone()
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        batch.size(self.max_batch)?;
        self.accelerator.compute(self.unit, batch.samples.len());
        answer_with_indices(batch, self.tokens, answers);
        Ok(())
    }
}

impl Accelerator {
    /// Submits a batch and waits until the modelled unit has computed it.
    fn compute(&self, unit: usize, size: usize) {
        let mut chip = self.lock();
        let ticket = chip.submit(unit, size, self.now());
        self.changed.notify_all();
        while let Some(ready) = chip.wait_until(unit, ticket, self.now()) {
            let ready = self.begun + Duration::from_secs_f64(ready);
            let left = ready.saturating_duration_since(Instant::now());
            chip = match left.checked_sub(SPIN) {
                Some(_) if self.spin => {
                    drop(chip);
                    std::hint::spin_loop();
                    self.lock()
                }
                Some(sleep) => {
                    finer_timer();
                    let waited = self.changed.wait_timeout(chip, sleep);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    drop(chip);
                    spin_until(ready);
                    self.lock()
                }
            };
        }
        drop(chip);
        self.changed.notify_all();
    }

    /// Returns the seconds since the chip was created.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, BoardSimulator> {
        self.chip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a wait, which is spent spinning. The kernel may wake a sleeping thread this late.
const SPIN: Duration = Duration::from_micros(80);

/// Reduces the timer slack, with which a sleep may end 50 us late. If the kernel refuses, the spin still ends on time,
/// or the service time is longer by that delay.
fn finer_timer() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
}

fn spin_until(ready: Instant) {
    while Instant::now() < ready {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use regatta_unit_sharing::{board_model::BoardModel, policy::FirstFree, virtual_time};

    use super::*;
    use crate::Input;

    /// Computes `batches` batches of one sample on each stream of the only unit, and returns the total time.
    fn took(board: &BoardModel, batches: usize) -> f64 {
        let accelerator = Arc::new(Accelerator {
            begun: Instant::now(),
            spin: false,
            chip: Mutex::new(BoardSimulator::new(board.clone(), 0)),
            changed: Condvar::new(),
        });
        let batch = Batch {
            samples: &[0],
            input: Input::Absent,
        };
        thread::scope(|scope| {
            for _ in 0..board.units[0].streams {
                let mut stream = Sim {
                    accelerator: Arc::clone(&accelerator),
                    unit: 0,
                    unit_name: "gpu".to_owned(),
                    max_batch: 1,
                    tokens: 0,
                };
                scope.spawn(move || {
                    for _ in 0..batches {
                        stream.infer(&batch, &mut Answers::default()).unwrap();
                    }
                });
            }
        });
        accelerator.now()
    }

    #[test]
    fn streams_of_a_unit_copy_one_after_the_other_and_are_never_quicker_than_in_virtual_time() {
        let mut board = SimModel::default().board;
        board.units = crate::subjects::units_of("gpu=500+500");
        (board.units[0].batch, board.units[0].streams) = (1, 4);
        for (copy, computing) in [(0.005, 0.001), (0.001, 0.001), (0.0, 0.001)] {
            board.units[0].copy = copy;
            let modelled = virtual_time::offline(&board, &mut FirstFree::new(vec![1]), 12, 0).unwrap();
            // A pipeline of two stages (copy, compute), each of which takes one batch at a time.
            let longer: f64 = f64::max(copy, computing);
            assert!(
                (modelled - (12.0 * longer + copy.min(computing))).abs() < 1e-9,
                "{modelled}"
            );
            let took = took(&board, 3);
            assert!(took >= modelled, "{took} {modelled} with copies of {copy}");
        }
    }
}
