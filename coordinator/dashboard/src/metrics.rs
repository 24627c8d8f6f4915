//! The lab in Prometheus' text format: fleet, runs, delivery and campaigns. Names follow Prometheus' conventions: a unit in the name, and
//! `_total` only for what never shrinks.

use std::fmt::{Display, Write as _};

use jiff::Timestamp;
use regatta_fsutil::free_space::free_bytes;

use super::{
    fleet_snapshot::FleetSnapshot,
    outside_text::{NAME, shown},
};
use regatta_lab_store::{DeviceActivity, DeviceHealth, Store, workspace::Workspace};
use regatta_lab_views::documents::campaign_summary;

/// The media type of the text format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A Grafana dashboard whose panels query these metrics.
pub(super) const GRAFANA_DASHBOARD: &str = include_str!("../../../packaging/grafana-dashboard.json");

/// The text of metrics.
#[derive(Default)]
struct Metrics(String);

impl Metrics {
    /// Begins a metric.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a value of the metric that was begun last.
    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let mut separator = '{';
        for (label, text) in labels {
            let _ = write!(self.0, "{separator}{label}=\"{}\"", escaped(text));
            separator = ',';
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.value(name, &[], value);
    }

    fn counts(&mut self, name: &str, kind: &str, help: &str, label: &str, counts: &[(String, u64)]) {
        self.family(name, kind, help);
        for (word, count) in counts {
            self.value(name, &[(label, word)], count);
        }
    }
}

/// Returns a label's value: a device may have any name.
fn escaped(text: &str) -> String {
    shown(text, NAME).replace('\\', r"\\").replace('"', "\\\"")
}

/// Returns the metrics.
///
/// # Errors
/// Returns an error when the store fails.
pub(super) fn metrics(fleet: &FleetSnapshot, store: &Store, workspace: &Workspace) -> anyhow::Result<String> {
    let mut metrics = Metrics::default();
    coordinator(&mut metrics, store, workspace)?;
    devices(&mut metrics, fleet);
    metrics.counts(
        "regatta_device_health_changes_total",
        "counter",
        "Changes of devices' health, by the health after the change.",
        "health",
        &store.health().count_changes()?,
    );
    metrics.counts(
        "regatta_open_runs",
        "gauge",
        "Runs without a record.",
        "phase",
        &store.runs().count_open()?,
    );
    metrics.counts(
        "regatta_recorded_runs",
        "gauge",
        "Recorded runs that were not removed.",
        "verdict",
        &store.runs().count_recorded()?,
    );
    metrics.gauge(
        "regatta_delivered_bytes",
        "Delivered bytes of runs that were not removed.",
        store.streams().delivered_bytes()?,
    );
    campaigns(&mut metrics, store)?;
    Ok(metrics.0)
}

fn coordinator(metrics: &mut Metrics, store: &Store, workspace: &Workspace) -> anyhow::Result<()> {
    let service = store.service().state()?;
    metrics.family("regatta_build_info", "gauge", "The coordinator's version.");
    metrics.value("regatta_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started: Option<Timestamp> = service.started.and_then(|started| started.parse().ok());
    if let Some(started) = started {
        metrics.gauge(
            "regatta_start_time_seconds",
            "When the coordinator began to serve, in Unix time.",
            started.as_second(),
        );
    }
    metrics.gauge(
        "regatta_broker_connected",
        "Whether the coordinator is connected to the broker.",
        u8::from(service.broker_lost.is_none()),
    );
    if let Ok(free) = free_bytes(&workspace.runs()) {
        let help = "Free bytes of the disk that has the runs.";
        metrics.gauge("regatta_disk_free_bytes", help, free);
    }
    Ok(())
}

fn devices(metrics: &mut Metrics, fleet: &FleetSnapshot) {
    let count = |matches: &dyn Fn(&regatta_lab_store::DeviceRow) -> bool| {
        fleet.devices.iter().filter(|device| matches(&device.row)).count()
    };
    metrics.family("regatta_devices", "gauge", "Devices by state.");
    // Each has a number, also 0.
    for state in DeviceActivity::ALL {
        let number = count(&|row| row.activity() == state);
        metrics.value("regatta_devices", &[("state", state.as_str())], number);
    }
    metrics.family("regatta_devices_by_health", "gauge", "Devices by health.");
    for health in DeviceHealth::ALL {
        let number = count(&|row| row.health.health() == health);
        metrics.value(
            "regatta_devices_by_health",
            &[("health", health.as_str())],
            number,
        );
    }
    metrics.gauge(
        "regatta_refused_devices",
        "Devices whose agent speaks another wire version.",
        fleet.refused,
    );
    metrics.family(
        "regatta_device_online",
        "gauge",
        "Whether the device is connected.",
    );
    for device in &fleet.devices {
        let labels = [
            ("device", device.row.id.as_str()),
            ("name", device.row.name.as_str()),
        ];
        metrics.value("regatta_device_online", &labels, u8::from(device.row.online));
    }
    metrics.family(
        "regatta_device_temperature_celsius",
        "gauge",
        "The hottest zone, as the device reported it last.",
    );
    for device in &fleet.devices {
        let hottest = device.row.hottest_millicelsius(device.facts.as_ref());
        if let Some(hottest) = hottest {
            let labels = [
                ("device", device.row.id.as_str()),
                ("name", device.row.name.as_str()),
            ];
            metrics.value(
                "regatta_device_temperature_celsius",
                &labels,
                hottest as f64 / 1e3,
            );
        }
    }
}

fn campaigns(metrics: &mut Metrics, store: &Store) -> anyhow::Result<()> {
    metrics.family(
        "regatta_campaign_cells",
        "gauge",
        "Cells of campaigns that have not ended, by state.",
    );
    for row in store.campaigns().all()?.iter().filter(|row| row.ended.is_none()) {
        let summary = campaign_summary(row, store)?;
        for (state, cells) in [
            ("good", summary.good),
            ("running", summary.running),
            ("waiting", summary.waiting),
            ("failed", summary.failed),
            ("skipped", summary.skipped),
        ] {
            metrics.value(
                "regatta_campaign_cells",
                &[("campaign", &row.name), ("state", state)],
                cells,
            );
        }
    }
    metrics.counts(
        "regatta_campaign_attempts_ended_total",
        "counter",
        "Ended attempts of campaigns, by cause, and the good ones.",
        "cause",
        &store.attempts().count_ended()?,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let mut metrics = Metrics::default();
        metrics.value("regatta_x", &[("name", "a\"} 1\nregatta_y 2 \\")], 3);
        assert_eq!(metrics.0, "regatta_x{name=\"a\\\"} 1\\\\nregatta_y 2 \\\\\"} 3\n");
    }
}
