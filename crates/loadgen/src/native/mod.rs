//! Regatta's own LoadGen: issues queries, records responses, writes the logs.

mod clock;
mod clocks;
mod due_queue;
mod faults;
mod find_peak;
mod footprint;
mod guard;
mod header;
mod offline;
mod open_sink;
mod run;
mod run_log;
mod run_series;
mod series;
mod server;
mod stream;
mod stream_sink;
mod tap;
mod time_waiter;
mod tokens;
mod wait;

use crate::{
    effective::LibraryCounts,
    load_gen::{LoadGen, LoadgenError, LoadgenIdentity, RunObserver},
    outcome::Outcome,
    request::RunRequest,
    rng::RngAbi,
    sut::{QuerySampleLibrary, SystemUnderTest},
};

/// MLPerf LoadGen in Rust.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeLoadGen;

impl LoadGen for NativeLoadGen {
    fn identity(&self) -> LoadgenIdentity {
        LoadgenIdentity {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: "NA".to_owned(),
            rng_abi: RngAbi::default().to_string(),
        }
    }

    fn check(&self, request: &RunRequest, library: LibraryCounts) -> Result<(), LoadgenError> {
        let resolved = request.resolve().map_err(LoadgenError::Conf)?;
        footprint::series_check(request).run(&resolved, library)
    }

    fn run(
        &self,
        sut: &dyn SystemUnderTest,
        qsl: &dyn QuerySampleLibrary,
        request: &RunRequest,
        observer: &dyn RunObserver,
    ) -> Result<Outcome, LoadgenError> {
        let identity = LoadgenIdentity {
            rng_abi: request.rng_abi.to_string(),
            ..self.identity()
        };
        run::Run::begin(identity, sut, qsl, request, observer)?.finish()
    }
}

fn seconds(ns: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
    {
        ns as f64 / 1e9
    }
}
