//! Temperatures, power rails, fan and over-current counters, by the names that the kernel gives them and never by a table
//! of boards. What a sensor refuses to tell, because its part is switched off, is left out.

use serde::Serialize;

use super::root::Root;

/// Everything that is sensed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Sensors {
    /// Thermal zones.
    pub(crate) thermal: Vec<ThermalZone>,
    /// Power rails.
    pub(crate) rails: Vec<Rail>,
    /// Fans.
    pub(crate) fans: Vec<Fan>,
    /// How often the supply was found too weak since boot, where the board counts it.
    pub(crate) over_current_events: Option<u64>,
}

/// A thermal zone, in thousandths of a degree Celsius.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ThermalZone {
    /// Its type, such as `cpu-thermal`.
    pub(crate) zone: String,
    /// Now.
    pub(crate) millicelsius: i64,
    /// Where the kernel begins to slow the board down.
    pub(crate) slows_at_millicelsius: Option<i64>,
}

/// A power rail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Rail {
    /// Its label, such as `VDD_GPU_SOC`.
    pub(crate) label: String,
    /// Voltage.
    pub(crate) millivolts: Option<u64>,
    /// Current.
    pub(crate) milliamperes: Option<u64>,
    /// Power.
    pub(crate) milliwatts: Option<u64>,
}

/// A fan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fan {
    /// The driver's name.
    pub(crate) name: String,
    /// What is asked of it, 0 to 255.
    pub(crate) pwm: Option<u64>,
    /// How fast it turns.
    pub(crate) rpm: Option<u64>,
}

impl Sensors {
    /// Reads all sensors once.
    pub(crate) fn read(root: &Root) -> Self {
        let monitors = root.below("sys/class/hwmon", "hwmon");
        let named = |path: &String| Some((root.text(&format!("{path}/name"))?, path.clone()));
        let monitors: Vec<(String, String)> = monitors.iter().filter_map(named).collect();
        Self {
            thermal: thermal(root),
            rails: rails(root, &monitors),
            fans: fans(root, &monitors),
            over_current_events: over_current_events(root, &monitors),
        }
    }
}

fn thermal(root: &Root) -> Vec<ThermalZone> {
    let zones = root.below("sys/class/thermal", "thermal_zone");
    let read = |zone: &String| {
        Some(ThermalZone {
            zone: root.text(&format!("{zone}/type"))?,
            millicelsius: root.number(&format!("{zone}/temp"))?,
            slows_at_millicelsius: slows_at(root, zone),
        })
    };
    zones.iter().filter_map(read).collect()
}

/// The lowest trip point at which something other than a fan is done. Type `active` is the fan's.
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
        // Unused trip points stand at or below zero.
        .filter(|&millicelsius| millicelsius > 0)
        .min()
}

/// INA monitors: as hwmon from JetPack 5 on, as industrial I/O in JetPack 4.
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

/// A channel without label is one where nothing is measured, except with monitors that have but one.
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
    })
}

fn old_rail(root: &Root, device: &str, channel: u8) -> Option<Rail> {
    let number = |what: &str| root.number(&format!("{device}/in_{what}{channel}_input"));
    Some(Rail {
        label: root.text(&format!("{device}/rail_name_{channel}"))?,
        millivolts: number("voltage"),
        milliamperes: number("current"),
        milliwatts: number("power"),
    })
}

/// A monitor with a `pwm1` drives a fan, one with a `fan1_input` or `rpm` counts its turns; on Jetsons these are two.
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

fn over_current_events(root: &Root, monitors: &[(String, String)]) -> Option<u64> {
    let (_, monitor) = monitors.iter().find(|(name, _)| name == "soctherm_oc")?;
    let counters = root
        .below(monitor, "oc")
        .into_iter()
        .filter(|file| file.ends_with("_event_cnt"));
    let counts: Vec<u64> = counters.filter_map(|file| root.number(&file)).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}
