//! The columns of the device list: their titles, widths and texts, and which of them fit into a terminal.

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::documents::RunPhase;

use super::run_times::RunTimes;
use regatta_dashboard::{FleetDevice, SortKey};

/// The text for a value that the lab does not know.
const UNKNOWN: &str = "-";

/// The most columns of a device's name.
const MAX_NAME: u16 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    State,
    Health,
    Temperature,
    Power,
    Clock,
    Run,
    Progress,
    Left,
    Queued,
}

/// Every column, in the order of the screen.
const COLUMNS: [Column; 10] = [
    Column::Name,
    Column::State,
    Column::Health,
    Column::Temperature,
    Column::Power,
    Column::Clock,
    Column::Run,
    Column::Progress,
    Column::Left,
    Column::Queued,
];
/// The columns that a narrow terminal omits, in the order of omission.
const EXPENDABLE: [Column; 8] = [
    Column::Clock,
    Column::Queued,
    Column::Power,
    Column::Left,
    Column::Temperature,
    Column::Progress,
    Column::Health,
    Column::Run,
];

impl Column {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Name => "DEVICE",
            Self::State => "STATE",
            Self::Health => "HEALTH",
            Self::Temperature => "°C",
            Self::Power => "W",
            Self::Clock => "MHz",
            Self::Run => "RUN",
            Self::Progress => "DONE",
            Self::Left => "LEFT",
            Self::Queued => "QUEUE",
        }
    }

    /// Returns the minimum width. The run's column gets the remaining width.
    pub(super) const fn width(self) -> u16 {
        match self {
            Self::Name | Self::State => 10,
            Self::Health => 11,
            Self::Temperature | Self::Power | Self::Clock | Self::Queued => 5,
            Self::Run => 16,
            Self::Progress => 4,
            Self::Left => 6,
        }
    }

    pub(super) const fn is_number(self) -> bool {
        !matches!(self, Self::Name | Self::State | Self::Health | Self::Run)
    }

    fn has_values(self, devices: &[FleetDevice]) -> bool {
        let any = |has_value: fn(&FleetDevice) -> bool| devices.iter().any(has_value);
        match self {
            Self::Temperature => {
                any(|device| device.row.hottest_millicelsius(device.facts.as_ref()).is_some())
            }
            Self::Power => any(|device| device.row.readings.milliwatts.is_some()),
            Self::Clock => any(|device| device.facts.as_ref().is_some_and(|facts| facts.cpu_khz.is_some())),
            _ => true,
        }
    }

    /// Returns the key by which a sorted list is marked at this column.
    pub(super) const fn sort_key(self) -> Option<SortKey> {
        match self {
            Self::Name => Some(SortKey::Name),
            Self::State => Some(SortKey::State),
            Self::Health => Some(SortKey::Health),
            Self::Temperature => Some(SortKey::Temperature),
            Self::Power => Some(SortKey::Power),
            Self::Clock => Some(SortKey::Clock),
            Self::Run => Some(SortKey::Run),
            Self::Queued => Some(SortKey::Queued),
            Self::Progress | Self::Left => None,
        }
    }

    /// Returns a device's text in this column, harmless for a terminal.
    pub(super) fn text(self, device: &FleetDevice, times: &RunTimes, now: Timestamp) -> String {
        let row = &device.row;
        let facts = device.facts.as_ref();
        let run = device.run.as_ref();
        let progress = || times.progress(run?, now);
        let text = match self {
            Self::Name => Some(escape(&row.name).into_owned()),
            Self::State => Some(row.activity().as_str().to_owned()),
            Self::Health => Some(row.health.health().as_str().to_owned()),
            Self::Temperature => row
                .hottest_millicelsius(facts)
                .map(|value| format!("{:.1}", value as f64 / 1e3)),
            Self::Power => row
                .readings
                .milliwatts
                .map(|value| format!("{:.1}", value as f64 / 1e3)),
            Self::Clock => facts
                .and_then(|facts| facts.cpu_khz)
                .map(|value| (value / 1_000).to_string()),
            Self::Run => run.map(|run| {
                let subject = format!("{} {} {}", run.benchmark, run.scenario, run.mode);
                let phase = match run.phase {
                    RunPhase::Running => String::new(),
                    phase => format!("{phase}: "),
                };
                escape(&format!("{phase}{subject}")).into_owned()
            }),
            Self::Progress => progress().map(|progress| format!("{}%", progress.percent)),
            Self::Left => progress().map(|progress| duration(progress.left_s)),
            Self::Queued => (device.queued > 0).then(|| device.queued.to_string()),
        };
        text.unwrap_or_else(|| UNKNOWN.to_owned())
    }
}

/// Returns the columns that fit, with their widths. Name and state are always among them. A column of sensors that no device has is left
/// out.
pub(super) fn visible_columns(width: u16, devices: &[FleetDevice]) -> Vec<(Column, u16)> {
    let mut columns = COLUMNS.to_vec();
    columns.retain(|column| column.has_values(devices));
    let names = devices
        .iter()
        .map(|device| escape(&device.row.name).chars().count());
    let name = u16::try_from(names.max().unwrap_or(0)).unwrap_or(u16::MAX);
    let name = name.clamp(
        Column::Name.width(),
        MAX_NAME.min(width / 5).max(Column::Name.width()),
    );
    let width_of = |column: Column| {
        if column == Column::Name {
            name
        } else {
            column.width()
        }
    };
    // One more for the space behind each column but the last.
    let needed = |columns: &[Column]| columns.iter().map(|column| width_of(*column) + 1).sum::<u16>() - 1;
    for column in EXPENDABLE {
        if needed(&columns) <= width {
            break;
        }
        columns.retain(|kept| *kept != column);
    }
    let rest = width.saturating_sub(needed(&columns));
    let grown = |column: Column| match column {
        Column::Run => column.width() + rest,
        _ => width_of(column),
    };
    columns
        .into_iter()
        .map(|column| (column, grown(column)))
        .collect()
}

/// Returns a time in at most six characters.
pub(super) fn duration(seconds: u64) -> String {
    match seconds {
        0..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        3_600..360_000 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}
