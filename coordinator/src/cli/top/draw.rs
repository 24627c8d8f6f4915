//! Draws the view: a summary, the filters, the devices, the selected device and the keys. Texts of devices are escaped, and a terminal
//! that is too small loses columns and ends of lines.

use jiff::Timestamp;
use ratatui_core::{
    layout::Rect,
    style::{Color, Modifier, Style},
    terminal::Frame,
    text::{Line, Span},
};
use regatta_text::escape;
use regatta_types::documents::RunPhase;

use super::{
    columns::{Column, visible_columns},
    run_times::RunTimes,
    view::TopView,
};
use regatta_dashboard::FleetDevice;
use regatta_lab_store::{DeviceActivity, DeviceHealth};
use regatta_lab_views::wording;

const KEYS: &str = "q quit  ↑↓ move  s sort  r reverse  f state  h health  / find  a all";
const TYPING: &str = "Enter keeps the text, Esc clears it";

/// The styles, or none without colours.
#[derive(Debug)]
pub(super) struct Palette {
    has_colours: bool,
}

impl Palette {
    pub(super) const fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.has_colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn of_device(&self, column: Column, device: &FleetDevice) -> Style {
        match (column, device.row.activity(), device.row.health.health()) {
            (Column::State, DeviceActivity::Offline | DeviceActivity::Duplicated, _)
            | (Column::Health, _, DeviceHealth::Quarantined) => self.colour(Color::Red),
            (Column::State, DeviceActivity::Busy, _) => self.colour(Color::Green),
            (Column::Health, _, DeviceHealth::Suspect | DeviceHealth::Maintenance) => {
                self.colour(Color::Yellow)
            }
            _ => Style::new(),
        }
    }
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame<'_>, view: &TopView, times: &RunTimes, palette: &Palette) {
    let area = frame.area();
    let now = view.fleet.snapshot.read;
    let columns = visible_columns(area.width, &view.fleet.snapshot.devices);
    let mut lines = vec![
        summary(view, palette),
        filters(view, palette),
        heading(view, &columns),
    ];
    let most = usize::from(area.height.saturating_sub(5));
    for device in view.shown().into_iter().take(most) {
        lines.push(device_line(device, &columns, view, times, palette));
    }
    for (number, line) in (area.y..).zip(lines) {
        put(frame, number, line);
    }
    put(
        frame,
        area.bottom().saturating_sub(2),
        selected_line(view, times, now),
    );
    let keys = if view.is_typing { TYPING } else { KEYS };
    put(
        frame,
        area.bottom().saturating_sub(1),
        Line::from(keys).style(Modifier::DIM),
    );
}

/// Writes a line, if the screen has it. What does not fit is cut.
fn put(frame: &mut Frame<'_>, number: u16, line: Line<'_>) {
    let area = frame.area();
    if number < area.bottom() {
        frame.render_widget(line, Rect::new(area.x, number, area.width, 1));
    }
}

fn summary(view: &TopView, palette: &Palette) -> Line<'static> {
    let fleet = &view.fleet;
    let devices = &fleet.snapshot.devices;
    let now = fleet.snapshot.read;
    if !fleet.is_served {
        let text = "no coordinator is running in this workspace: this screen is not updated until `regatta serve` runs";
        return Line::styled(text, palette.colour(Color::Red));
    }
    if let Some(since) = &fleet.snapshot.broker_lost {
        let text = format!(
            "the coordinator lost the broker {}: no messages of devices arrive",
            wording::ago(since, now)
        );
        return Line::styled(text, palette.colour(Color::Red));
    }
    let active = |activity| {
        devices
            .iter()
            .filter(|device| device.row.activity() == activity)
            .count()
    };
    let in_health = |health| {
        let health = |device: &&FleetDevice| device.row.health.health() == health;
        devices.iter().filter(health).count()
    };
    let mut parts = vec![format!("{} devices", devices.len())];
    let counts = [
        (active(DeviceActivity::Busy), "busy"),
        (active(DeviceActivity::Idle), "idle"),
        (active(DeviceActivity::Offline), "offline"),
        (active(DeviceActivity::Duplicated), "duplicated"),
        (in_health(DeviceHealth::Suspect), "suspect"),
        (in_health(DeviceHealth::Quarantined), "quarantined"),
        (in_health(DeviceHealth::Maintenance), "in maintenance"),
        (fleet.snapshot.refused, "refused"),
    ];
    parts.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}")),
    );
    let queued: u64 = devices.iter().map(|device| device.queued).sum();
    parts.push(format!("{queued} waiting runs"));
    Line::styled(parts.join(", "), Modifier::BOLD)
}

fn filters(view: &TopView, palette: &Palette) -> Line<'static> {
    let query = &view.query;
    let shown = view.devices().len();
    let mut text = match shown {
        _ if view.fleet.snapshot.devices.is_empty() => {
            "no device has connected yet; add one with `regatta device add NAME`".to_owned()
        }
        _ if query.is_unfiltered() => format!("by {}", query.sort.as_str()),
        shown => format!("by {}, {shown} match", query.sort.as_str()),
    };
    if query.is_descending {
        text = text.replacen("by ", "by descending ", 1);
    }
    let (state, health) = (
        query.state.map(DeviceActivity::as_str),
        query.health.map(DeviceHealth::as_str),
    );
    for (title, word) in [("state", state), ("health", health)] {
        if let Some(word) = word {
            text.push_str(&format!("; {title} {word}"));
        }
    }
    let find = if view.is_typing || !query.text.is_empty() {
        let cursor = if view.is_typing { "_" } else { "" };
        format!("; find {}{cursor}", escape(&query.text))
    } else {
        String::new()
    };
    Line::from(vec![
        Span::raw(text),
        Span::styled(find, palette.colour(Color::Yellow)),
    ])
}

fn heading(view: &TopView, columns: &[(Column, u16)]) -> Line<'static> {
    let cells = columns.iter().map(|&(column, width)| {
        let is_sorted = column.sort_key() == Some(view.query.sort);
        let style = if is_sorted {
            Modifier::REVERSED | Modifier::UNDERLINED
        } else {
            Modifier::REVERSED
        };
        Span::styled(in_width(column.title(), width, column), style)
    });
    Line::from(cells.collect::<Vec<_>>()).style(Modifier::REVERSED)
}

fn device_line(
    device: &FleetDevice,
    columns: &[(Column, u16)],
    view: &TopView,
    times: &RunTimes,
    palette: &Palette,
) -> Line<'static> {
    let now = view.fleet.snapshot.read;
    let cells = columns.iter().map(|&(column, width)| {
        let text = column.text(device, times, now);
        Span::styled(in_width(&text, width, column), palette.of_device(column, device))
    });
    let line = Line::from(cells.collect::<Vec<_>>());
    if view.is_selected(device) {
        line.style(Modifier::BOLD | Modifier::REVERSED)
    } else {
        line
    }
}

/// Pads or cuts a text to a column's width, with a space behind it.
fn in_width(text: &str, width: u16, column: Column) -> String {
    let width = usize::from(width);
    let mut cut = String::new();
    let mut used = 0;
    let length = Span::raw(text).width();
    for character in text.chars() {
        let next = Span::raw(character.to_string()).width();
        // Without the column of the ellipsis of a text that is too long.
        let most = if length > width {
            width.saturating_sub(1)
        } else {
            width
        };
        if used + next > most {
            break;
        }
        cut.push(character);
        used += next;
    }
    if length > width {
        cut.push('…');
        used += 1;
    }
    let padding = " ".repeat(width.saturating_sub(used));
    if column.is_number() {
        format!("{padding}{cut} ")
    } else {
        format!("{cut}{padding} ")
    }
}

/// Describes the selected device: the cause of its health, the gate that its run waits for, its labels.
fn selected_line(view: &TopView, times: &RunTimes, now: Timestamp) -> Line<'static> {
    let Some(device) = view.selected() else {
        return Line::default();
    };
    let row = &device.row;
    let mut parts = Vec::new();
    let cause = row.health.shown().cause;
    parts.extend(cause.map(|cause| format!("{}: {}", row.health.health().as_str(), escape(cause))));
    parts.extend(
        times
            .waits_for()
            .map(|reason| format!("its run waits: {}", escape(reason))),
    );
    if row.activity() == DeviceActivity::Offline {
        parts.push(format!("last seen {}", wording::ago(&row.last_seen, now)));
    }
    if let Some(run) = device.run.as_ref().filter(|run| run.phase != RunPhase::Preparing) {
        parts.push(format!("run {}", run.id));
    }
    let labels: Vec<String> = row.labels.iter().map(ToString::to_string).collect();
    if !labels.is_empty() {
        parts.push(format!("labels {}", labels.join(", ")));
    }
    if parts.is_empty() {
        parts.push(row.id.to_string());
    }
    Line::from(format!("{}: {}", escape(&row.name), parts.join("; ")))
}
