//! The text output of `doctor`: first the verdict, then the board's facts, one per line. Sentences are wrapped for a
//! terminal of 80 columns. Commands are not wrapped, so that users can copy them.

use std::io::{self, Write};

use regatta_text::{Escaped, escape};

use super::report::{Examination, Severity};

/// Columns that every terminal has.
const COLUMNS: usize = 80;
/// Indentation of a sentence's further lines, equal to that of its first.
const MARGIN: &str = "          ";

/// Prints an examination.
///
/// # Errors
/// When the output cannot be written.
pub fn write_text(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    print_findings(seen, to)?;
    print_board(seen, to)?;
    print_power(seen, to)?;
    print_sensors(seen, to)?;
    print_system(seen, to)
}

fn print_findings(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    let verdict = if seen.fit {
        "fit to measure"
    } else {
        "NOT FIT to measure"
    };
    writeln!(to, "{verdict}")?;
    for finding in &seen.findings {
        let sign = match finding.severity {
            Severity::Unfit => "UNFIT  ",
            Severity::Warning => "warning",
            Severity::Note => "note   ",
        };
        let sentence = format!("{}: {}", finding.what, finding.why);
        writeln!(to, "  {sign} {}", folded(&escape(&sentence)))?;
        if let Some(fix) = &finding.fix {
            writeln!(to, "{MARGIN}$ {}", escape(fix))?;
        }
    }
    writeln!(to)
}

/// Wraps a sentence to lines of at most [`COLUMNS`], including the margin.
fn folded(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len());
    let mut column = MARGIN.len();
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if text.is_empty() {
            column += length;
        } else if column + 1 + length > COLUMNS {
            text.push('\n');
            text.push_str(MARGIN);
            column = MARGIN.len() + length;
        } else {
            text.push(' ');
            column += 1 + length;
        }
        text.push_str(word);
    }
    text
}

/// Prints a labelled fact, or `-` if it is unknown.
fn line(to: &mut impl Write, label: &str, value: Option<impl std::fmt::Display>) -> io::Result<()> {
    match value {
        Some(value) => writeln!(to, "{label:<12} {}", Escaped(value)),
        None => writeln!(to, "{label:<12} -"),
    }
}

fn print_board(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    let part = |part: &crate::board::Part| match &part.name {
        Some(name) => format!("{name} ({})", part.part),
        None => part.part.clone(),
    };
    line(to, "model", seen.board.model.as_ref())?;
    line(to, "module", seen.board.module.as_ref().map(part))?;
    line(to, "carrier", seen.board.carrier.as_ref().map(part))?;
    let chip = seen
        .board
        .chip
        .as_ref()
        .map(|chip| match (chip.family, chip.compute_capability) {
            (Some(family), Some(capability)) => {
                format!("{} ({family}, compute capability {capability})", chip.name)
            }
            _ => chip.name.clone(),
        });
    line(to, "chip", chip)?;
    line(to, "DLA cores", Some(seen.board.dla_cores))?;
    for (number, gpu) in seen.gpus.iter().flatten().enumerate() {
        let text = format!(
            "{}, {} SMs, compute capability {}, {} GiB of {} memory",
            gpu.name,
            gpu.multiprocessors,
            gpu.compute_capability,
            gpu.memory_bytes >> 30,
            if gpu.integrated { "shared" } else { "its own" }
        );
        line(to, &format!("GPU {number}"), Some(text))?;
    }
    let software = &seen.software;
    line(to, "system", software.os.as_ref())?;
    line(to, "kernel", software.kernel.as_ref())?;
    line(to, "L4T", software.l4t.as_ref())?;
    line(to, "JetPack", software.jetpack.as_ref())?;
    line(to, "CUDA", software.cuda.as_ref())?;
    line(to, "TensorRT", software.tensorrt.as_ref())?;
    line(to, "cuDNN", software.cudnn.as_ref())?;
    if software.driver.is_some() {
        line(to, "driver", software.driver.as_ref())?;
    }
    Ok(())
}

fn print_power(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    let mode = seen.power.mode.as_ref().map(|mode| match &mode.name {
        Some(name) => format!("{name} ({})", mode.id),
        None => mode.id.to_string(),
    });
    line(to, "power mode", mode)?;
    for clock in &seen.power.cpu {
        let mhz = |khz: Option<u64>| khz.map_or_else(|| "?".to_owned(), |khz| (khz / 1_000).to_string());
        let text = format!(
            "{} MHz, set to {}..{}, highest {}; {}",
            mhz(clock.current_khz),
            mhz(clock.min_khz),
            mhz(clock.max_khz),
            mhz(clock.highest_khz),
            clock.governor.as_deref().unwrap_or("no governor")
        );
        line(to, &format!("CPU {}", clock.cpus), Some(text))?;
    }
    if let Some(clock) = &seen.power.gpu {
        let mhz = |hz: Option<u64>| hz.map_or_else(|| "?".to_owned(), |hz| (hz / 1_000_000).to_string());
        let text = format!(
            "{} MHz, set to {}..{}, highest {}; {}, {}",
            mhz(clock.current_hz),
            mhz(clock.min_hz),
            mhz(clock.max_hz),
            mhz(clock.highest_hz),
            clock.governor.as_deref().unwrap_or("no governor"),
            clock.device
        );
        line(to, "GPU", Some(text))?;
    }
    if !seen.power.dla_cap_hz.is_empty() {
        let caps = seen
            .power
            .dla_cap_hz
            .iter()
            .map(|hz| (hz / 1_000_000).to_string());
        let text = format!("at most {} MHz", caps.collect::<Vec<_>>().join(", "));
        line(to, "DLA clock", Some(text))?;
    }
    let memory = [
        seen.power.memory_hz.map(|hz| format!("{} MHz", hz / 1_000_000)),
        seen.power
            .memory_locked
            .map(|locked| if locked { "locked" } else { "not locked" }.to_owned()),
        seen.power
            .memory_cap_hz
            .map(|hz| format!("at most {} MHz", hz / 1_000_000)),
    ];
    let memory: Vec<String> = memory.into_iter().flatten().collect();
    if memory.is_empty() {
        return Ok(());
    }
    line(to, "memory clock", Some(memory.join(", ")))
}

fn print_sensors(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    for zone in &seen.sensors.thermal {
        let limit = zone
            .slows_at_millicelsius
            .map(|limit| format!(", slows down at {}", limit / 1_000));
        let degrees = zone.millicelsius as f64 / 1_000.0;
        line(
            to,
            "heat",
            Some(format!(
                "{degrees:.1} C {}{}",
                zone.zone,
                limit.unwrap_or_default()
            )),
        )?;
    }
    for rail in &seen.sensors.rails {
        let watts = rail.milliwatts.map_or_else(
            || "?".to_owned(),
            |power| format!("{:.3}", power as f64 / 1_000.0),
        );
        let limit = rail.limit_milliamperes.map(|limit| format!(", limit {limit} mA"));
        line(
            to,
            "rail",
            Some(format!("{watts} W {}{}", rail.label, limit.unwrap_or_default())),
        )?;
    }
    for fan in &seen.sensors.fans {
        let pwm = fan.pwm.map(|pwm| format!(" set to {pwm} of 255"));
        let rpm = fan.rpm.map(|rpm| format!(" {rpm} rpm"));
        line(
            to,
            "fan",
            Some(format!(
                "{}{}{}",
                fan.name,
                pwm.unwrap_or_default(),
                rpm.unwrap_or_default()
            )),
        )?;
    }
    if let Some(profile) = &seen.sensors.fan_profile {
        line(to, "fan profile", Some(profile))?;
    }
    for counter in &seen.sensors.over_current {
        let enabled = match counter.slows_down {
            Some(true) => ", slows the board down",
            Some(false) => ", is ignored",
            None => "",
        };
        line(
            to,
            "over-current",
            Some(format!(
                "{} events of {}{enabled}",
                counter.events, counter.counter
            )),
        )?;
    }
    Ok(())
}

fn print_system(seen: &Examination, to: &mut impl Write) -> io::Result<()> {
    let system = &seen.system;
    let name = system.processor.as_deref().unwrap_or("unknown");
    line(
        to,
        "processor",
        Some(format!(
            "{} of {} cores on, {name}",
            system.cpus_online, system.cpus_present
        )),
    )?;
    line(
        to,
        "memory",
        Some(format!(
            "{} MiB, {} MiB free",
            system.memory_bytes >> 20,
            system.memory_available_bytes >> 20
        )),
    )?;
    line(
        to,
        "page",
        system.page_bytes.map(|bytes| format!("{} KiB", bytes >> 10)),
    )?;
    for area in &system.swap {
        line(
            to,
            "swap",
            Some(format!(
                "{} MiB on {}, {} MiB in use",
                area.bytes >> 20,
                area.device,
                area.used_bytes >> 20
            )),
        )?;
    }
    for disk in &system.storage {
        let place = if disk.holds_root {
            ", contains the system"
        } else {
            ""
        };
        let model = disk.model.as_deref().unwrap_or("no name");
        line(
            to,
            "storage",
            Some(format!(
                "{} GB {} {} ({model}){place}",
                disk.bytes / 1_000_000_000,
                disk.kind,
                disk.device
            )),
        )?;
    }
    line(to, "desktop", Some(system.desktop.as_deref().unwrap_or("none")))?;
    let clock = match (system.clock.synchronised, system.clock.by) {
        (Some(true), by) => format!("set by {}", by.unwrap_or("a service")),
        (Some(false), _) => "not set".to_owned(),
        (None, by) => format!("kept by {}", by.unwrap_or("a service")),
    };
    line(to, "clock", Some(clock))
}
