//! Temperatures, power rails, fans and over-current counters, found by kernel names and not by a table of boards.
//! Sensors that cannot be read, because their component is powered off, are omitted.

use serde::Serialize;

use super::root::Root;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Sensors {
    pub(crate) thermal: Vec<ThermalZone>,
    /// Power rails.
    pub(crate) rails: Vec<Rail>,
    pub(crate) fans: Vec<Fan>,
    /// Number of power supply events since boot, if the board counts them.
    pub(crate) over_current_events: Option<u64>,
    /// The over-current counters, with whether the board throttles at each.
    pub(crate) over_current: Vec<OverCurrent>,
    /// The fan profile of NVIDIA's fan service.
    pub(crate) fan_profile: Option<String>,
    /// Active throttling, by the kernel's name and level.
    pub(crate) slowed_by: Vec<String>,
}

/// A counter of over-current or under-voltage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OverCurrent {
    /// Its name. On Orin, `oc1` is under-voltage, `oc2` and `oc3` are average and instantaneous over-current.
    pub(crate) counter: String,
    /// Events since boot.
    pub(crate) events: u64,
    /// Whether the board throttles at an event.
    pub(crate) slows_down: Option<bool>,
}

/// A thermal zone, in thousandths of a degree Celsius.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ThermalZone {
    /// Its type, for example `cpu-thermal`.
    pub(crate) zone: String,
    /// The current temperature.
    pub(crate) millicelsius: i64,
    /// The temperature at which the kernel starts to throttle.
    pub(crate) slows_at_millicelsius: Option<i64>,
}

/// A power rail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Rail {
    /// Its label, for example `VDD_GPU_SOC`.
    pub(crate) label: String,
    /// Voltage in millivolts.
    pub(crate) millivolts: Option<u64>,
    /// Current in milliamperes.
    pub(crate) milliamperes: Option<u64>,
    /// Power in milliwatts.
    pub(crate) milliwatts: Option<u64>,
    /// The current in milliamperes at which the monitor warns.
    pub(crate) warns_at_milliamperes: Option<u64>,
    /// The current in milliamperes at which the board throttles.
    pub(crate) limit_milliamperes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fan {
    /// The driver's name.
    pub(crate) name: String,
    /// The requested PWM value, 0 to 255.
    pub(crate) pwm: Option<u64>,
    /// The speed in revolutions per minute.
    pub(crate) rpm: Option<u64>,
}

impl Sensors {
    /// Reads all sensors once.
    pub(crate) fn read(root: &Root) -> Self {
        let monitors = root.below("sys/class/hwmon", "hwmon");
        let named = |path: &String| Some((root.text(&format!("{path}/name"))?, path.clone()));
        let monitors: Vec<(String, String)> = monitors.iter().filter_map(named).collect();
        let over_current = over_current(root, &monitors);
        Self {
            thermal: thermal(root),
            rails: rails(root, &monitors),
            fans: fans(root, &monitors),
            over_current_events: (!over_current.is_empty())
                .then(|| over_current.iter().map(|counter| counter.events).sum()),
            over_current,
            fan_profile: fan_profile(root),
            slowed_by: slowed_by(root),
        }
    }
}

fn thermal(root: &Root) -> Vec<ThermalZone> {
    let zones = root.below("sys/class/thermal", "thermal_zone");
    let read = |zone: &String| {
        let (name, millicelsius) = zone_at(root, zone)?;
        Some(ThermalZone {
            zone: name,
            millicelsius,
            slows_at_millicelsius: slows_at(root, zone),
        })
    };
    zones.iter().filter_map(read).collect()
}

/// Returns the name and the temperature of each thermal zone that can be read.
pub(crate) fn zones(root: &Root) -> impl Iterator<Item = (String, i64)> {
    let zones = root.below("sys/class/thermal", "thermal_zone");
    zones.into_iter().filter_map(|zone| zone_at(root, &zone))
}

fn zone_at(root: &Root, zone: &str) -> Option<(String, i64)> {
    Some((
        root.text(&format!("{zone}/type"))?,
        root.number(&format!("{zone}/temp"))?,
    ))
}

/// Returns the lowest trip point for throttling, of type `passive` or `hot`. Type `active` controls the fan.
fn slows_at(root: &Root, zone: &str) -> Option<i64> {
    let kinds = root.below(zone, "trip_point_");
    kinds
        .iter()
        .filter_map(|file| file.strip_suffix("_type"))
        .filter(|trip| {
            let kind = root.text(&format!("{trip}_type"));
            kind.is_some_and(|kind| kind == "passive" || kind == "hot")
        })
        .filter_map(|trip| root.number::<i64>(&format!("{trip}_temp")))
        // Unused trip points are zero or negative.
        .filter(|&millicelsius| millicelsius > 0)
        .min()
}

/// Returns the rails of INA monitors: in hwmon from JetPack 5 on, in industrial I/O on JetPack 4.
fn rails(root: &Root, monitors: &[(String, String)]) -> Vec<Rail> {
    let ina = monitors.iter().filter(|(name, _)| name.starts_with("ina"));
    let mut rails: Vec<Rail> = ina
        .flat_map(|(name, monitor)| (1..=3).filter_map(move |channel| rail(root, name, monitor, channel)))
        .collect();
    for device in root.below("sys/bus/iio/devices", "iio:device") {
        rails.extend((0..=2).filter_map(|channel| old_rail(root, &device, channel)));
    }
    rails
}

/// Returns a rail. A channel without a label measures nothing, except on monitors with one channel.
fn rail(root: &Root, name: &str, monitor: &str, channel: u8) -> Option<Rail> {
    let number = |file: String| root.number::<u64>(&format!("{monitor}/{file}"));
    let label = root.text(&format!("{monitor}/in{channel}_label"));
    let has_one_channel = channel == 1 && !name.starts_with("ina3221");
    let label = label.or_else(|| has_one_channel.then(|| name.to_owned()))?;
    let millivolts = number(format!("in{channel}_input"));
    let milliamperes = number(format!("curr{channel}_input"));
    if label == "NC" || (millivolts.is_none() && milliamperes.is_none()) {
        return None;
    }
    let microwatts = number(format!("power{channel}_input"));
    Some(Rail {
        label,
        millivolts,
        milliamperes,
        milliwatts: microwatts
            .map(|microwatts| microwatts / 1_000)
            .or_else(|| Some(millivolts?.saturating_mul(milliamperes?) / 1_000)),
        warns_at_milliamperes: number(format!("curr{channel}_max")),
        limit_milliamperes: number(format!("curr{channel}_crit")),
    })
}

fn old_rail(root: &Root, device: &str, channel: u8) -> Option<Rail> {
    let number = |what: &str| root.number(&format!("{device}/in_{what}{channel}_input"));
    Some(Rail {
        label: root.text(&format!("{device}/rail_name_{channel}"))?,
        millivolts: number("voltage"),
        milliamperes: number("current"),
        milliwatts: number("power"),
        warns_at_milliamperes: root.number(&format!("{device}/warn_current_limit_{channel}")),
        limit_milliamperes: root.number(&format!("{device}/crit_current_limit_{channel}")),
    })
}

/// Returns the fans. A monitor with `pwm1` drives a fan, one with `fan1_input` or `rpm` measures its speed. On Jetsons,
/// these are two monitors.
fn fans(root: &Root, monitors: &[(String, String)]) -> Vec<Fan> {
    let read = |(name, monitor): &(String, String)| {
        let number = |file: &str| root.number(&format!("{monitor}/{file}"));
        let fan = Fan {
            name: name.clone(),
            pwm: number("pwm1"),
            rpm: number("fan1_input").or_else(|| number("rpm")),
        };
        (fan.pwm.is_some() || fan.rpm.is_some()).then_some(fan)
    };
    let old = || {
        // JetPack 4.
        let number = |file: &str| root.number(&format!("sys/devices/pwm-fan/{file}"));
        Some(Fan {
            name: "pwm-fan".to_owned(),
            pwm: Some(number("cur_pwm")?),
            rpm: number("rpm_measured"),
        })
    };
    monitors.iter().filter_map(read).chain(old()).collect()
}

fn over_current(root: &Root, monitors: &[(String, String)]) -> Vec<OverCurrent> {
    let Some((_, monitor)) = monitors.iter().find(|(name, _)| name == "soctherm_oc") else {
        return Vec::new();
    };
    let read = |file: String| {
        let counter = file.strip_suffix("_event_cnt")?;
        Some(OverCurrent {
            counter: counter.rsplit('/').next()?.to_owned(),
            events: root.number(&file)?,
            slows_down: root
                .number::<u8>(&format!("{counter}_throt_en"))
                .map(|on| on != 0),
        })
    };
    root.below(monitor, "oc").into_iter().filter_map(read).collect()
}

/// Returns the profile of a line such as `FAN_DEFAULT_PROFILE cool`.
fn fan_profile(root: &Root) -> Option<String> {
    let text = root.text("etc/nvfancontrol.conf")?;
    let profile = |line: &str| Some(line.trim().strip_prefix("FAN_DEFAULT_PROFILE")?.trim().to_owned());
    text.lines()
        .find_map(profile)
        .filter(|profile| !profile.is_empty())
}

/// Returns active cooling devices that are not fans: they lower clocks or limit power.
fn slowed_by(root: &Root) -> Vec<String> {
    let read = |device: &String| {
        let kind = root.text(&format!("{device}/type"))?;
        let level: u64 = root.number(&format!("{device}/cur_state"))?;
        let slows = level > 0 && !kind.contains("fan") && kind != "intel_powerclamp";
        slows.then(|| format!("{kind} at level {level}"))
    };
    let devices = root.below("sys/class/thermal", "cooling_device");
    devices.iter().filter_map(read).collect()
}
