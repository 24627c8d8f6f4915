//! Applying and restoring a state. [`apply`] first writes the current values to the journal, then sets the controls in the
//! order that boards need, then reads all of them again. If any has another value, it restores everything at once. How a
//! control is read and written is in [`crate::board_controls`].

use std::{collections::BTreeMap, io, thread::sleep, time::Duration};

use crate::{
    board_controls::BoardControls,
    control_error::ControlError,
    device_control::DeviceControl,
    journal::{Journal, SavedState},
    message::ControlReport,
    state_request::{ClockSetting, StateRequest},
};

/// The wait before the controls are read again. A service of the board that changes a value back does so within this time.
const SETTLING_TIME: Duration = Duration::from_millis(200);

/// A state that has been applied, with the journal from which it can be restored.
#[derive(Debug)]
pub struct AppliedState {
    board: BoardControls,
    journal: Journal,
    saved: SavedState,
}

/// The reason why a state was not applied or not restored.
#[derive(Debug)]
pub struct Refusal {
    /// The reason, as a sentence.
    pub reason: String,
    /// The requested and read values, where they are the reason.
    pub controls: Vec<ControlReport>,
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            controls: Vec::new(),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(e: io::Error) -> Self {
        Self::new(format!("the journal of the device's state cannot be used: {e}"))
    }
}

/// Applies a state. Returns it with the requested and read value of every control.
///
/// # Errors
/// [`Refusal`] when the board does not take the state. The earlier state is then restored.
pub fn apply(
    board: BoardControls,
    journal: Journal,
    request: &StateRequest,
) -> Result<(AppliedState, Vec<ControlReport>), Refusal> {
    restore_leftover(&board, &journal)?;
    let boot = board
        .boot_id()
        .ok_or_else(|| Refusal::new("the kernel's boot id cannot be read"))?;
    let found = board.read_all();
    let controls = found.iter().filter(|(control, _)| affects(request, **control));
    let saved = SavedState {
        boot,
        controls: controls
            .map(|(control, value)| (*control, value.clone()))
            .collect(),
    };
    journal.write(&saved)?;
    let applied = AppliedState {
        board,
        journal,
        saved,
    };
    let mut requested = BTreeMap::new();
    let outcome = set_all(&applied.board, request, &mut requested);
    sleep(SETTLING_TIME);
    let lines = reports(&applied, &requested);
    let reason = match outcome {
        Ok(()) => match lines.iter().find(|line| !line.holds()) {
            None => return Ok((applied, lines)),
            Some(line) => format!(
                "{} was set to {}, and reads {}",
                line.control,
                line.requested.as_deref().unwrap_or("-"),
                line.read.as_deref().unwrap_or("nothing")
            ),
        },
        Err(error) => error.to_string(),
    };
    let reason = match applied.restore() {
        Ok(_) => reason,
        Err(refusal) => format!("{reason}; and {}", refusal.reason),
    };
    Err(Refusal {
        reason,
        controls: lines,
    })
}

/// Restores a state that an earlier helper applied and did not restore. Returns the controls that it restored.
///
/// # Errors
/// [`Refusal`] when a control does not take its earlier value.
pub fn restore_leftover(board: &BoardControls, journal: &Journal) -> Result<Vec<ControlReport>, Refusal> {
    let Some(saved) = journal.read()? else {
        return Ok(Vec::new());
    };
    restore(board, journal, &saved)
}

impl AppliedState {
    /// Restores the earlier state.
    ///
    /// # Errors
    /// [`Refusal`] when a control does not take its earlier value. The journal then remains for the next attempt.
    pub fn restore(&self) -> Result<Vec<ControlReport>, Refusal> {
        restore(&self.board, &self.journal, &self.saved)
    }
}

/// Returns whether a request may change a control. A power mode sets bounds of every clock.
const fn affects(request: &StateRequest, control: DeviceControl) -> bool {
    if request.power_mode.is_some() {
        return true;
    }
    match control {
        DeviceControl::PowerMode => false,
        DeviceControl::FanControl | DeviceControl::FanSpeed => request.fan.is_some(),
        // The kernel removes a cpufreq policy with its cores and creates it anew.
        DeviceControl::Core(_) => request.cores.is_some(),
        DeviceControl::CpuMax(_) | DeviceControl::CpuMin(_) => {
            request.cpu.is_some() || request.cores.is_some()
        }
        DeviceControl::GpuMax | DeviceControl::GpuMin => request.gpu.is_some(),
        DeviceControl::MemoryMax | DeviceControl::MemoryLock | DeviceControl::MemoryRate => {
            request.memory.is_some()
        }
        DeviceControl::DlaMax(_) => request.dla.is_some(),
    }
}

/// Sets all controls of a request: the fan first, so that nothing overheats; the power mode, because it sets bounds
/// itself; cores that go online; bounds and locks; cores that go offline.
fn set_all(
    board: &BoardControls,
    request: &StateRequest,
    requested: &mut BTreeMap<DeviceControl, String>,
) -> Result<(), ControlError> {
    let mut set = |control: DeviceControl, value: String| {
        write_if_different(board, control, &value)?;
        requested.insert(control, value);
        Ok::<(), ControlError>(())
    };
    if let Some(fan) = request.fan {
        if board.read(DeviceControl::FanControl).is_some() {
            set(DeviceControl::FanControl, board.fan_control_off().to_owned())?;
        }
        set(DeviceControl::FanSpeed, fan.to_string())?;
    }
    if let Some(mode) = &request.power_mode {
        set(DeviceControl::PowerMode, board.power_mode(mode)?.to_string())?;
    }
    let cores: Vec<u32> = board
        .read_all()
        .into_keys()
        .filter_map(|control| {
            if let DeviceControl::Core(number) = control {
                Some(number)
            } else {
                None
            }
        })
        .collect();
    if let Some(count) = request.cores {
        // Core 0 always exists and stays online. Its `online` file exists on arm64 and not on x86.
        let all = cores.iter().filter(|core| **core > 0).count() + 1;
        if count == 0 || count > u32::try_from(all).unwrap_or(u32::MAX) {
            return Err(ControlError::CoreCount {
                requested: count,
                all,
            });
        }
        for &core in cores.iter().filter(|core| **core < count) {
            set(DeviceControl::Core(core), "1".to_owned())?;
        }
    }
    if let Some(clock) = request.cpu {
        for policy in require_any(board.policies(), "CPU clock")? {
            let (min, max) = (DeviceControl::CpuMin(policy), DeviceControl::CpuMax(policy));
            set_bounds(board, &mut set, (min, max), clock)?;
        }
    }
    if let Some(clock) = request.gpu {
        set_bounds(
            board,
            &mut set,
            (DeviceControl::GpuMin, DeviceControl::GpuMax),
            clock,
        )?;
    }
    match request.memory {
        Some(clock @ ClockSetting::Lock(_)) => {
            set(DeviceControl::MemoryLock, "1".to_owned())?;
            set(
                DeviceControl::MemoryRate,
                board.clock_value(DeviceControl::MemoryRate, clock)?,
            )?;
        }
        Some(clock @ ClockSetting::Cap(_)) => set(
            DeviceControl::MemoryMax,
            board.clock_value(DeviceControl::MemoryMax, clock)?,
        )?,
        None => {}
    }
    if let Some(clock) = request.dla {
        for core in require_any(board.dla_cores(), "DLA clock")? {
            set(
                DeviceControl::DlaMax(core),
                board.clock_value(DeviceControl::DlaMax(core), clock)?,
            )?;
        }
    }
    if let Some(count) = request.cores {
        for &core in cores.iter().filter(|core| **core >= count) {
            set(DeviceControl::Core(core), "0".to_owned())?;
        }
    }
    Ok(())
}

/// Refuses a request for a kind of control that the board does not have. Otherwise, the request would succeed without setting anything.
fn require_any(found: Vec<u32>, kind: &'static str) -> Result<Vec<u32>, ControlError> {
    if found.is_empty() {
        return Err(ControlError::NoControl(kind));
    }
    Ok(found)
}

/// Sets the upper bound, and for a lock also the lower bound, in the order that keeps the lower at or below the upper.
fn set_bounds(
    board: &BoardControls,
    set: &mut impl FnMut(DeviceControl, String) -> Result<(), ControlError>,
    (min, max): (DeviceControl, DeviceControl),
    clock: ClockSetting,
) -> Result<(), ControlError> {
    let value = board.clock_value(max, clock)?;
    let lower = match clock {
        ClockSetting::Lock(_) => Some(value.clone()),
        // A lower bound above the cap comes down to it.
        ClockSetting::Cap(_) => board
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

fn write_if_different(
    board: &BoardControls,
    control: DeviceControl,
    value: &str,
) -> Result<(), ControlError> {
    if board.read(control).as_deref() == Some(value) {
        return Ok(());
    }
    board.write(control, value).map_err(|source| ControlError::Write {
        control,
        value: value.to_owned(),
        source,
    })
}

fn restore(
    board: &BoardControls,
    journal: &Journal,
    saved: &SavedState,
) -> Result<Vec<ControlReport>, Refusal> {
    let same_boot = board.boot_id().as_deref() == Some(saved.boot.as_str());
    // A reboot resets every control in the kernel. Only nvpmodel keeps its mode, and applies it again at boot.
    let to_restore: BTreeMap<DeviceControl, String> = saved
        .controls
        .iter()
        .filter(|(control, _)| same_boot || **control == DeviceControl::PowerMode)
        .map(|(control, value)| (*control, value.clone()))
        .collect();
    let current = board.read_all();
    for control in restore_order(board, &to_restore) {
        if let Some(value) = to_restore
            .get(&control)
            .filter(|_| !was_never_set(control, &current, &to_restore))
        {
            // The values are compared below, so that a control that fails does not keep the others from being restored.
            let _ = write_if_different(board, control, value);
        }
    }
    let now = board.read_all();
    let line = |control: DeviceControl, value: &String| ControlReport {
        control,
        before: current.get(&control).cloned(),
        requested: Some(value.clone()),
        read: now.get(&control).cloned(),
    };
    let lines: Vec<ControlReport> = to_restore
        .iter()
        .filter(|(control, _)| !is_overridden(**control, &to_restore))
        .map(|(control, value)| line(*control, value))
        .filter(|line| line.before != line.requested || !line.holds())
        .collect();
    match lines.iter().find(|line| !line.holds()) {
        None => {
            // Before the journal is removed: nvpmodel writes its mode without flushing it.
            board.flush_power_mode()?;
            journal.clear()?;
            Ok(lines)
        }
        Some(line) => Err(Refusal {
            reason: format!(
                "{} could not be restored to {}: it reads {}; hint: a reboot resets clocks, cores and fan",
                line.control,
                line.requested.as_deref().unwrap_or("-"),
                line.read.as_deref().unwrap_or("nothing")
            ),
            controls: lines,
        }),
    }
}

/// Returns whether the board itself changes a control in this state, so that its value may differ at any time.
fn is_overridden(control: DeviceControl, state: &BTreeMap<DeviceControl, String>) -> bool {
    let companion = control
        .overridden_by()
        .and_then(|companion| state.get(&companion));
    companion.is_some_and(|value| match control {
        DeviceControl::MemoryRate => value == "0",
        _ => value == "active" || value == "1",
    })
}

/// Returns whether the board itself changed a control before and still does. The helper has then not set it.
fn was_never_set(
    control: DeviceControl,
    now: &BTreeMap<DeviceControl, String>,
    saved: &BTreeMap<DeviceControl, String>,
) -> bool {
    is_overridden(control, now) && is_overridden(control, saved)
}

/// Returns the controls in the order of restoring: the power mode, because it sets bounds itself; cores that go online;
/// upper bounds before lower ones where the lower must rise; a lock after the value that it locks; cores that go offline;
/// the fan last, so that nothing overheats meanwhile.
fn restore_order(board: &BoardControls, to_restore: &BTreeMap<DeviceControl, String>) -> Vec<DeviceControl> {
    let rises = |min: DeviceControl, max: DeviceControl| {
        let lower = to_restore.get(&min).cloned().unwrap_or_default();
        is_above(&lower, &board.read(max).unwrap_or_default())
    };
    let rank = |control: DeviceControl| match control {
        DeviceControl::PowerMode => 0,
        DeviceControl::Core(_) if to_restore.get(&control).is_some_and(|on| on == "1") => 1,
        DeviceControl::CpuMax(policy) if rises(DeviceControl::CpuMin(policy), control) => 2,
        DeviceControl::GpuMax if rises(DeviceControl::GpuMin, control) => 2,
        DeviceControl::CpuMin(_) | DeviceControl::GpuMin => 3,
        DeviceControl::CpuMax(_) | DeviceControl::GpuMax => 4,
        DeviceControl::MemoryMax | DeviceControl::DlaMax(_) => 5,
        DeviceControl::MemoryRate => 6,
        DeviceControl::MemoryLock => 7,
        DeviceControl::Core(_) => 8,
        DeviceControl::FanSpeed => 9,
        DeviceControl::FanControl => 10,
    };
    let mut controls: Vec<DeviceControl> = to_restore.keys().copied().collect();
    // `rises` reads the bounds before the power mode is restored. The mode only sets them to their earlier values.
    controls.sort_by_key(|control| rank(*control));
    controls
}

fn reports(applied: &AppliedState, requested: &BTreeMap<DeviceControl, String>) -> Vec<ControlReport> {
    requested
        .iter()
        .map(|(control, value)| ControlReport {
            control: *control,
            before: applied.saved.controls.get(control).cloned(),
            requested: Some(value.clone()),
            read: applied.board.read(*control),
        })
        .collect()
}
