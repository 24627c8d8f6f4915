//! Assets of a run. They are downloaded before the run process starts, while the run is `preparing` and reports its
//! progress. A restarted daemon continues the download. [`crate::assets`] implements the download.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use regatta_types::{RunId, assets::Assets, documents::RunPhase};

use super::{
    fetching::{FetchNews, Fetching},
    link::Link,
    run::Run,
    run_dir::{Ending, RunDir},
    service::Service,
};
use crate::assets::{AssetStore, Limits, Order, server_at, view};

/// Returns the assets that the run's spec names, if any.
///
/// # Errors
/// The reason for the run's state, when the spec cannot be read.
pub(super) fn of_run(dir: &RunDir) -> Result<Option<Assets>, String> {
    let spec = dir.spec().map_err(|e| format!("{:#}", anyhow::Error::from(e)))?;
    Ok(spec.assets.filter(|assets| !assets.needed.is_empty()))
}

impl<L: Link> Service<L> {
    /// Starts the download of a run's assets.
    ///
    /// # Errors
    /// The reason for the run's state, when the download cannot be started.
    pub(super) fn begin_to_fetch(&mut self, id: RunId, mut assets: Assets) -> Result<(), String> {
        let pinned = self.pinned_assets();
        if let Some(host) = &self.config.coordinator {
            assets.server = server_at(&assets.server, host);
        }
        let Some(run) = self.runs.get_mut(&id) else {
            return Ok(());
        };
        run.enter(RunPhase::Preparing, None);
        self.due.states.insert(id);
        let order = Order {
            state_dir: self.config.state_dir.clone(),
            identity: Arc::clone(&self.identity),
            assets,
            pinned,
            limits: Limits {
                stays_free: self.config.min_free_bytes,
                most: self.config.assets_max_bytes,
            },
            cancelled: Arc::default(),
        };
        let fetching = Fetching::start(id, order).map_err(|e| format!("the assets cannot be got: {e}"))?;
        self.fetching = Some(fetching);
        Ok(())
    }

    /// Returns the SHA-256 of all assets that unfinished runs on this device need.
    fn pinned_assets(&self) -> BTreeSet<String> {
        let open = self.runs.values().filter(|run| !run.phase().is_final());
        // A run with an unreadable spec fails when it is started.
        open.filter_map(|run| of_run(&run.dir).ok().flatten())
            .flat_map(|assets| assets.needed)
            .map(|asset| asset.sha256)
            .collect()
    }

    pub(super) fn take_fetch_news(&mut self, news: FetchNews) {
        let Some(fetching) = &self.fetching else { return };
        let id = fetching.run();
        match news {
            FetchNews::Progress(progress) => {
                let waits = progress.waits.map_or_else(String::new, |why| format!("; {why}"));
                let so_far = format!(
                    "{} of {} MiB of assets are here{waits}",
                    progress.done >> 20,
                    progress.total.div_ceil(1 << 20)
                );
                if let Some(run) = self.runs.get_mut(&id)
                    && run.waits_for_its_start()
                {
                    run.enter(RunPhase::Preparing, Some(so_far));
                    self.due.states.insert(id);
                }
            }
            FetchNews::Ended(fetched) => {
                self.fetching = None;
                let is_wanted = self.runs.get(&id).is_some_and(Run::waits_for_its_start);
                if !is_wanted || self.stop_by.is_some() {
                    return;
                }
                let began = fetched
                    .map_err(|e| format!("{:#}", anyhow::Error::from(e)))
                    .and_then(|()| self.begin_watch(id));
                if let Err(reason) = began {
                    let phase = RunPhase::Failed;
                    let reason = Some(reason);
                    self.end_run(id, Ending { phase, reason });
                }
            }
        }
    }

    /// Returns the scratch directory for a run's process.
    ///
    /// # Errors
    /// The reason for the run's state, when the links to the assets cannot be created.
    pub(super) fn scratch_of(&self, dir: &RunDir) -> Result<Option<PathBuf>, String> {
        let Some(assets) = of_run(dir)? else {
            return Ok(self.config.scratch.clone());
        };
        let lay_out = || -> anyhow::Result<PathBuf> {
            let store = AssetStore::open(&self.config.state_dir)?;
            let places: BTreeMap<String, PathBuf> = assets
                .needed
                .iter()
                .map(|asset| (asset.path.clone(), store.place(asset)))
                .collect();
            let scratch = dir.scratch();
            view::make(&scratch, self.config.scratch.as_deref(), &places)?;
            Ok(scratch)
        };
        let laid_out = lay_out().map_err(|e| format!("the run's assets cannot be laid out: {e:#}"))?;
        Ok(Some(laid_out))
    }
}
