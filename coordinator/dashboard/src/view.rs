//! The views that a page can show, and the rendering of their changing parts. A view is also the key under which pages share one rendering.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use regatta_types::{DeviceId, RunId};

use super::{
    campaign_list_page,
    campaign_page::{self, CampaignSnapshot},
    device_page::{self, DeviceSnapshot},
    fleet_page,
    fleet_query::FleetQuery,
    fleet_snapshot::FleetSnapshot,
    pieces::Pieces,
    run_list_page::{self, RunList},
    run_list_query::RunListQuery,
    run_page::{self, RunCharts},
};
use regatta_lab_store::{self as store, RunRow, Store, workspace::Workspace};

/// The greatest age of a reading of the store.
const FRESH: Duration = Duration::from_millis(900);
/// The maximum number of different views that are watched at once, and of runs whose plots are cached: every watched run has its plots.
pub(super) const MAX_VIEWS: usize = 64;

/// The content of a page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum View {
    /// The devices.
    Fleet(FleetQuery),
    Device(DeviceId),
    /// A page of runs.
    Runs(RunListQuery),
    Run(RunId),
    Campaigns,
    Campaign(String),
}

/// Reads the store for views, and keeps a reading for a moment.
pub(super) struct Reader {
    store: Store,
    workspace: Workspace,
    fleet: Option<(Instant, Arc<FleetSnapshot>)>,
    /// The plots of runs that were shown last.
    charts: VecDeque<(RunId, Arc<RunCharts>)>,
}

impl Reader {
    /// Creates a reader of a store.
    pub(super) const fn new(store: Store, workspace: Workspace) -> Self {
        Self {
            store,
            workspace,
            fleet: None,
            charts: VecDeque::new(),
        }
    }

    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    pub(super) const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the fleet, at most a second old.
    pub(super) fn fleet(&mut self) -> store::Result<Arc<FleetSnapshot>> {
        if let Some((read, fleet)) = &self.fleet
            && read.elapsed() < FRESH
        {
            return Ok(Arc::clone(fleet));
        }
        let fleet = Arc::new(FleetSnapshot::read(&self.store)?);
        self.fleet = Some((Instant::now(), Arc::clone(&fleet)));
        Ok(fleet)
    }

    /// Returns the number that changes when another connection commits.
    pub(super) fn version(&self) -> store::Result<i64> {
        self.store.data_version()
    }

    /// Renders the changing parts of a view.
    pub(super) fn render(&mut self, view: &View) -> anyhow::Result<Pieces> {
        match view {
            View::Fleet(query) => Ok(fleet_page::pieces(query, &*self.fleet()?)),
            View::Device(device) => Ok(match DeviceSnapshot::read(device.as_str(), &self.store)? {
                Some(snapshot) => device_page::pieces(&snapshot),
                None => Pieces::default(),
            }),
            View::Runs(query) => Ok(run_list_page::pieces(query, &RunList::read(query, &self.store)?)),
            View::Run(run) => match self.store.runs().get(*run)? {
                Some(row) => Ok(self.render_run(&row)?),
                None => Ok(run_page::removed_pieces()),
            },
            View::Campaigns => Ok(campaign_list_page::pieces(&campaign_list_page::read(
                &self.store,
            )?)),
            View::Campaign(name) => match self.store.campaigns().get(name)? {
                Some(row) => Ok(campaign_page::pieces(&CampaignSnapshot::read(&row, &self.store)?)),
                None => Ok(Pieces::default()),
            },
        }
    }

    /// Renders the changing parts of a run's page.
    pub(super) fn render_run(&mut self, row: &RunRow) -> store::Result<Pieces> {
        let streams = self.store.streams().of_run(row.id)?;
        Ok(run_page::pieces(row, &streams, self.charts(row).as_deref()))
    }

    /// Returns the data of a recorded run's plots. Its files no longer change, so they are read once.
    fn charts(&mut self, row: &RunRow) -> Option<Arc<RunCharts>> {
        if !row.is_over() {
            return None;
        }
        if let Some((_, charts)) = self.charts.iter().find(|(run, _)| *run == row.id) {
            return Some(Arc::clone(charts));
        }
        Some(self.keep_charts(row.id, RunCharts::read(row, &self.workspace)))
    }

    /// Returns a recorded run whose plots are not kept. Its logs may be long: read them without the hub's lock, and keep the plots then.
    pub(super) fn run_without_charts(&self, run: RunId) -> store::Result<Option<RunRow>> {
        if self.charts.iter().any(|(known, _)| *known == run) {
            return Ok(None);
        }
        Ok(self.store.runs().get(run)?.filter(RunRow::is_over))
    }

    /// Keeps the data of a run's plots.
    pub(super) fn keep_charts(&mut self, run: RunId, charts: RunCharts) -> Arc<RunCharts> {
        let charts = Arc::new(charts);
        self.charts.retain(|(known, _)| *known != run);
        self.charts.truncate(MAX_VIEWS - 1);
        self.charts.push_front((run, Arc::clone(&charts)));
        charts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::examples::example_draft;

    /// Otherwise, the open pages of ended runs would read their logs again at every change of the store.
    #[test]
    fn plots_of_every_watched_run_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(directory.path(), "schema = 1\n").unwrap();
        let store = workspace.store().unwrap();
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let runs: Vec<RunId> = (0..MAX_VIEWS)
            .map(|_| {
                let draft = example_draft(device.clone());
                store.runs().add(&draft).unwrap();
                draft.spec.run
            })
            .collect();
        let mut reader = Reader::new(store, workspace.clone());
        for run in &runs {
            let row = reader.store().runs().get(*run).unwrap().unwrap();
            reader.keep_charts(*run, RunCharts::read(&row, &workspace));
        }
        let is_kept = |run: &&RunId| reader.charts.iter().any(|(kept, _)| kept == *run);
        assert_eq!(runs.iter().filter(is_kept).count(), MAX_VIEWS);
        let row = reader.store().runs().get(runs[0]).unwrap().unwrap();
        reader.keep_charts(RunId::now(), RunCharts::read(&row, &workspace));
        assert_eq!(reader.charts.len(), MAX_VIEWS);
    }
}
