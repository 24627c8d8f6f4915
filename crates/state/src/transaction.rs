//! Setting a state and putting it back: what was found is on disk first, then one knob after the other in the order that
//! boards need, then everything is read once more. What does not hold is undone at once.

use std::{collections::BTreeMap, io, thread::sleep, time::Duration};

use crate::{
    board::Board,
    journal::{Before, Journal},
    knob::Knob,
    message::KnobLine,
    wish::{Clock, Wish},
};

/// How long a board's own services get to take back what was set, before it is read once more.
const SETTLING: Duration = Duration::from_millis(200);

/// A state that is set, with the journal that undoes it.
#[derive(Debug)]
pub struct Held {
    board: Board,
    journal: Journal,
    before: Before,
}

/// Why a state was not set or not put back, in a sentence; with what was read where that is the reason.
#[derive(Debug)]
pub struct Refusal {
    /// The sentence.
    pub why: String,
    /// What was wanted and read.
    pub knobs: Vec<KnobLine>,
}

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            knobs: Vec::new(),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(e: io::Error) -> Self {
        Self::new(format!("the journal cannot be used: {e}"))
    }
}

/// Sets a state; what was wanted and is read of every knob.
///
/// # Errors
/// [`Refusal`], with the board as it was before.
pub fn apply(board: Board, journal: Journal, wish: &Wish) -> Result<(Held, Vec<KnobLine>), Refusal> {
    put_back_leftover(&board, &journal)?;
    let boot = board
        .boot_id()
        .ok_or_else(|| Refusal::new("the kernel does not tell its boot id"))?;
    let found = board.read_all();
    let knobs = found.iter().filter(|(knob, _)| touches(wish, **knob));
    let before = Before {
        boot,
        knobs: knobs.map(|(knob, value)| (*knob, value.clone())).collect(),
    };
    journal.write(&before)?;
    let held = Held {
        board,
        journal,
        before,
    };
    let mut wanted = BTreeMap::new();
    let outcome = set_all(&held.board, wish, &mut wanted);
    sleep(SETTLING);
    let lines = lines(&held, &wanted);
    let why = match outcome {
        Ok(()) => match lines.iter().find(|line| !line.holds()) {
            None => return Ok((held, lines)),
            Some(line) => format!(
                "{} was set to {}, and reads {}",
                line.knob,
                line.wanted.as_deref().unwrap_or("-"),
                line.read.as_deref().unwrap_or("nothing")
            ),
        },
        Err(why) => why,
    };
    let why = match held.put_back() {
        Ok(_) => why,
        Err(undone) => format!("{why}; and {}", undone.why),
    };
    Err(Refusal { why, knobs: lines })
}

/// Puts back what a helper that died has left; what was put back.
///
/// # Errors
/// [`Refusal`] when a knob does not take its old value.
pub fn put_back_leftover(board: &Board, journal: &Journal) -> Result<Vec<KnobLine>, Refusal> {
    let Some(before) = journal.read()? else {
        return Ok(Vec::new());
    };
    put_back(board, journal, &before)
}

impl Held {
    /// Puts back what was found before.
    ///
    /// # Errors
    /// [`Refusal`] when a knob does not take its old value; the journal then stays, and is tried again.
    pub fn put_back(&self) -> Result<Vec<KnobLine>, Refusal> {
        put_back(&self.board, &self.journal, &self.before)
    }
}

/// Which knobs a wish may change. A power mode brings bounds for everything.
const fn touches(wish: &Wish, knob: Knob) -> bool {
    if wish.power_mode.is_some() {
        return true;
    }
    match knob {
        Knob::PowerMode => false,
        Knob::FanControl | Knob::FanSpeed => wish.fan.is_some(),
        // Switching cores takes their clock policies away and brings them back.
        Knob::Core(_) => wish.cores.is_some(),
        Knob::CpuMax(_) | Knob::CpuMin(_) => wish.cpu.is_some() || wish.cores.is_some(),
        Knob::GpuMax | Knob::GpuMin => wish.gpu.is_some(),
        Knob::MemoryMax | Knob::MemoryLock | Knob::MemoryRate => wish.memory.is_some(),
        Knob::DlaMax(_) => wish.dla.is_some(),
    }
}

/// The order: the fan first, so that nothing gets hot; then the power mode, which brings bounds of its own; cores on;
/// upper bounds and locks; cores off.
fn set_all(board: &Board, wish: &Wish, wanted: &mut BTreeMap<Knob, String>) -> Result<(), String> {
    let mut set = |knob: Knob, value: String| {
        write_unless_there(board, knob, &value)?;
        wanted.insert(knob, value);
        Ok::<(), String>(())
    };
    if let Some(fan) = wish.fan {
        if board.read(Knob::FanControl).is_some() {
            set(Knob::FanControl, board.fan_control_off().to_owned())?;
        }
        set(Knob::FanSpeed, fan.to_string())?;
    }
    if let Some(mode) = &wish.power_mode {
        set(Knob::PowerMode, board.power_mode(mode)?.to_string())?;
    }
    let cores: Vec<u32> = board
        .read_all()
        .into_keys()
        .filter_map(|knob| {
            if let Knob::Core(number) = knob {
                Some(number)
            } else {
                None
            }
        })
        .collect();
    if let Some(count) = wish.cores {
        // Core 0 is there and stays on, with a switch (arm64) or without one (x86).
        let all = cores.iter().filter(|core| **core > 0).count() + 1;
        if count == 0 || count > u32::try_from(all).unwrap_or(u32::MAX) {
            return Err(format!(
                "this board has 1 to {all} cores that can be on, not {count}"
            ));
        }
        for &core in cores.iter().filter(|core| **core < count) {
            set(Knob::Core(core), "1".to_owned())?;
        }
    }
    if let Some(clock) = wish.cpu {
        for policy in some(board.policies(), "processor clock")? {
            let (min, max) = (Knob::CpuMin(policy), Knob::CpuMax(policy));
            set_bounds(board, &mut set, (min, max), clock)?;
        }
    }
    if let Some(clock) = wish.gpu {
        set_bounds(board, &mut set, (Knob::GpuMin, Knob::GpuMax), clock)?;
    }
    match wish.memory {
        Some(Clock::Lock(rate)) => {
            set(Knob::MemoryLock, "1".to_owned())?;
            set(Knob::MemoryRate, board.clock_value(Knob::MemoryRate, rate)?)?;
        }
        Some(Clock::Cap(rate)) => set(Knob::MemoryMax, board.clock_value(Knob::MemoryMax, rate)?)?,
        None => {}
    }
    if let Some(clock) = wish.dla {
        for core in some(board.dla_cores(), "DLA clock")? {
            set(
                Knob::DlaMax(core),
                board.clock_value(Knob::DlaMax(core), clock.rate())?,
            )?;
        }
    }
    if let Some(count) = wish.cores {
        for &core in cores.iter().filter(|core| **core >= count) {
            set(Knob::Core(core), "0".to_owned())?;
        }
    }
    Ok(())
}

/// What a board has of a kind that a wish names: none is a refusal, as otherwise the wish would pass with nothing set.
fn some(found: Vec<u32>, kind: &str) -> Result<Vec<u32>, String> {
    if found.is_empty() {
        return Err(format!("this board has no {kind} that can be set"));
    }
    Ok(found)
}

/// Sets the upper bound, and for a lock the lower one, so that the lower is never above the upper.
fn set_bounds(
    board: &Board,
    set: &mut impl FnMut(Knob, String) -> Result<(), String>,
    (min, max): (Knob, Knob),
    clock: Clock,
) -> Result<(), String> {
    let value = board.clock_value(max, clock.rate())?;
    let lower = match clock {
        Clock::Lock(_) => Some(value.clone()),
        // A lower bound that was locked higher makes room.
        Clock::Cap(_) => board
            .read(min)
            .filter(|low| is_above(low, &value))
            .map(|_| value.clone()),
    };
    let upper_now = board.read(max).unwrap_or_default();
    match lower {
        Some(lower) if is_above(&lower, &upper_now) => {
            set(max, value)?;
            set(min, lower)
        }
        Some(lower) => {
            set(min, lower)?;
            set(max, value)
        }
        None => set(max, value),
    }
}

fn is_above(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    number(a) > number(b)
}

fn write_unless_there(board: &Board, knob: Knob, value: &str) -> Result<(), String> {
    if board.read(knob).as_deref() == Some(value) {
        return Ok(());
    }
    board
        .write(knob, value)
        .map_err(|e| format!("{knob} could not be set to {value}: {e}"))
}

fn put_back(board: &Board, journal: &Journal, before: &Before) -> Result<Vec<KnobLine>, Refusal> {
    let same_boot = board.boot_id().as_deref() == Some(before.boot.as_str());
    // The kernel has forgotten everything at boot. What nvpmodel has set it sets again.
    let to_put_back: BTreeMap<Knob, String> = before
        .knobs
        .iter()
        .filter(|(knob, _)| same_boot || **knob == Knob::PowerMode)
        .map(|(knob, value)| (*knob, value.clone()))
        .collect();
    let at_first = board.read_all();
    for knob in order_of_return(board, &to_put_back) {
        if let Some(value) = to_put_back
            .get(&knob)
            .filter(|_| !is_left_alone(knob, &at_first, &to_put_back))
        {
            // What refuses is found out below, and the others still have their turn.
            let _ = write_unless_there(board, knob, value);
        }
    }
    let now = board.read_all();
    let line = |knob: Knob, value: &String| KnobLine {
        knob,
        before: at_first.get(&knob).cloned(),
        wanted: Some(value.clone()),
        read: now.get(&knob).cloned(),
    };
    let lines: Vec<KnobLine> = to_put_back
        .iter()
        .filter(|(knob, _)| !is_ruled(**knob, &to_put_back))
        .map(|(knob, value)| line(*knob, value))
        .filter(|line| line.before != line.wanted || !line.holds())
        .collect();
    match lines.iter().find(|line| !line.holds()) {
        None => {
            // Only then may the journal go: nvpmodel leaves its mode to the kernel's good time.
            board.flush_power_mode()?;
            journal.clear()?;
            Ok(lines)
        }
        Some(line) => Err(Refusal {
            why: format!(
                "{} could not be put back to {}: it reads {}; a reboot clears what the kernel holds",
                line.knob,
                line.wanted.as_deref().unwrap_or("-"),
                line.read.as_deref().unwrap_or("nothing")
            ),
            knobs: lines,
        }),
    }
}

/// Whether something else moves a knob in this state, so that its value is no promise.
fn is_ruled(knob: Knob, state: &BTreeMap<Knob, String>) -> bool {
    let companion = knob.ruled_by().and_then(|companion| state.get(&companion));
    companion.is_some_and(|value| match knob {
        Knob::MemoryRate => value == "0",
        _ => value == "active" || value == "1",
    })
}

/// Whether a knob was ruled all the time: then it was never ours.
fn is_left_alone(knob: Knob, now: &BTreeMap<Knob, String>, before: &BTreeMap<Knob, String>) -> bool {
    is_ruled(knob, now) && is_ruled(knob, before)
}

/// The order of return: the power mode, which brings bounds of its own; cores on; upper bounds before lower ones where the
/// lower must rise; what locks and controls after what it rules; cores off; the fan at the end, when nothing is hot.
fn order_of_return(board: &Board, to_put_back: &BTreeMap<Knob, String>) -> Vec<Knob> {
    let rises = |min: Knob, max: Knob| {
        let lower = to_put_back.get(&min).cloned().unwrap_or_default();
        is_above(&lower, &board.read(max).unwrap_or_default())
    };
    let place = |knob: Knob| match knob {
        Knob::PowerMode => 0,
        Knob::Core(_) if to_put_back.get(&knob).is_some_and(|on| on == "1") => 1,
        Knob::CpuMax(policy) if rises(Knob::CpuMin(policy), knob) => 2,
        Knob::GpuMax if rises(Knob::GpuMin, knob) => 2,
        Knob::CpuMin(_) | Knob::GpuMin => 3,
        Knob::CpuMax(_) | Knob::GpuMax => 4,
        Knob::MemoryMax | Knob::DlaMax(_) => 5,
        Knob::MemoryRate => 6,
        Knob::MemoryLock => 7,
        Knob::Core(_) => 8,
        Knob::FanSpeed => 9,
        Knob::FanControl => 10,
    };
    let mut knobs: Vec<Knob> = to_put_back.keys().copied().collect();
    // A power mode that is put back first moves what `rises` looks at, but only to where it stood before.
    knobs.sort_by_key(|knob| place(*knob));
    knobs
}

fn lines(held: &Held, wanted: &BTreeMap<Knob, String>) -> Vec<KnobLine> {
    wanted
        .iter()
        .map(|(knob, value)| KnobLine {
            knob: *knob,
            before: held.before.knobs.get(knob).cloned(),
            wanted: Some(value.clone()),
            read: held.board.read(*knob),
        })
        .collect()
}
