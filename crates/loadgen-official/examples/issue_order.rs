//! The order in which an official LoadGen issues samples for given settings: an oracle for other LoadGens.
//!
//!     issue_order PLUGIN SCENARIO MODE TOTAL PERFORMANCE FILE [CONF] [AUDIT_CONFIG]
//!
//! CONF holds `model.scenario.key = value` lines with the rights of `mlperf.conf` (seeds included) for model `oracle`. FILE
//! gets what `regatta-agent bench --issue-log` writes: sample indices, u64 little-endian, u64::MAX after each query.

use std::{env, error::Error, fs, io::Write as _, path::Path, process::ExitCode, sync::Mutex};

use regatta_loadgen::{
    load_gen::{LoadGen, NoObserver},
    request::{ConfText, RunRequest},
    sut::{
        Completer, Query, QuerySampleIndex, QuerySampleLibrary, QuerySampleResponse, SutError,
        SystemUnderTest,
    },
};
use regatta_loadgen_official::Plugin;

/// A SUT that answers at once and records the issued samples.
#[derive(Default)]
struct Scribe(Mutex<Vec<u8>>);

impl SystemUnderTest for Scribe {
    fn name(&self) -> &str {
        "scribe"
    }
    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let mut log = self.0.lock().map_err(|_| "an earlier query panicked")?;
        for position in 0..query.len() {
            log.extend_from_slice(&(query.sample(position).index as u64).to_le_bytes());
        }
        log.extend_from_slice(&u64::MAX.to_le_bytes());
        drop(log);
        for position in 0..query.len() {
            let id = query.sample(position).id;
            completer.complete(&[QuerySampleResponse {
                id,
                data: &[],
                n_tokens: 0,
            }]);
        }
        Ok(())
    }
    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

struct Counts {
    total: usize,
    performance: usize,
}

impl QuerySampleLibrary for Counts {
    fn name(&self) -> &str {
        "counts"
    }
    fn total_sample_count(&self) -> usize {
        self.total
    }
    fn performance_sample_count(&self) -> usize {
        self.performance
    }
    fn load_samples_to_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }
    fn unload_samples_from_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [plugin, scenario, mode, total, performance, file, rest @ ..] = arguments.as_slice() else {
        writeln!(
            std::io::stderr(),
            "give PLUGIN SCENARIO MODE TOTAL PERFORMANCE FILE [CONF] [AUDIT_CONFIG]"
        )?;
        return Ok(ExitCode::from(2));
    };
    let text = |path: &String| fs::read_to_string(path).map(|text| ConfText::new(path, text));
    let logs = tempfile::tempdir()?;
    let mut request = RunRequest::new("oracle", scenario.parse()?, mode.parse()?, logs.path());
    request.mlperf_conf = rest.first().map(text).transpose()?;
    request.audit_config = rest.get(1).map(text).transpose()?;
    let scribe = Scribe::default();
    let library = Counts {
        total: total.parse()?,
        performance: performance.parse()?,
    };
    let loadgen = Plugin::open(Path::new(plugin))?.loadgen_as_requested();
    let outcome = loadgen.run(&scribe, &library, &request, &NoObserver)?;
    fs::write(file, scribe.0.into_inner()?)?;
    Ok(if outcome.faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
