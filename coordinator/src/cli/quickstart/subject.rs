//! The runs of the quickstart: the bundled benchmark in the scenarios of an edge system.

use regatta_types::Scenario;

/// The bundled benchmark, which needs no download.
pub(super) const BENCHMARK: &str = "digits";

/// The scenarios of an edge system. Server is for datacenters.
pub(super) const EDGE: [Scenario; 3] = [Scenario::SingleStream, Scenario::MultiStream, Scenario::Offline];
