//! What a page can show, and how its changing parts are rendered. A view is also the key under which pages share one rendering.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{fleet_page, fleet_query::FleetQuery, fleet_snapshot::FleetSnapshot, pieces::Pieces};
use crate::store::{self, Store};

/// How old a reading of the store may be.
const FRESH: Duration = Duration::from_millis(900);

/// What a page shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum View {
    /// The devices.
    Fleet(FleetQuery),
}

/// Reads the store for views, and keeps a reading for a moment.
pub(super) struct Reader {
    store: Store,
    fleet: Option<(Instant, Arc<FleetSnapshot>)>,
}

impl Reader {
    /// A reader of a store.
    pub(super) const fn new(store: Store) -> Self {
        Self { store, fleet: None }
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

    /// The number that changes when another connection commits.
    pub(super) fn version(&self) -> store::Result<i64> {
        self.store.data_version()
    }

    /// Renders the changing parts of a view.
    pub(super) fn render(&mut self, view: &View) -> store::Result<Pieces> {
        match view {
            View::Fleet(query) => Ok(fleet_page::pieces(query, &*self.fleet()?)),
        }
    }
}
