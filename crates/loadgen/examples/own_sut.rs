//! A system under test of one's own, measured in SingleStream: `cargo run --release --example own_sut [LOG_DIR]`.

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, NoObserver},
    request::{ConfText, RunRequest},
    sut::{Completer, Query, QuerySampleLibrary, QuerySampleResponse, SutError, SystemUnderTest},
};
use regatta_rules::{Mode, Scenario};

/// 1000 numbers, and what is asked of each: its square root.
struct Numbers;

impl QuerySampleLibrary for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }
    fn total_sample_count(&self) -> usize {
        1000
    }
    fn performance_sample_count(&self) -> usize {
        1000
    }
    fn load_samples_to_ram(&self, _samples: &[usize]) -> Result<(), SutError> {
        Ok(())
    }
    fn unload_samples_from_ram(&self, _samples: &[usize]) -> Result<(), SutError> {
        Ok(())
    }
}

struct SquareRoots;

impl SystemUnderTest for SquareRoots {
    fn name(&self) -> &str {
        "square roots"
    }
    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        for position in 0..query.len() {
            let sample = query.sample(position);
            let root = (sample.index as f64).sqrt().to_le_bytes();
            completer.complete(&[QuerySampleResponse {
                id: sample.id,
                data: &root,
                n_tokens: 0,
            }]);
        }
        Ok(())
    }
    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let logs = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut request = RunRequest::new("roots", Scenario::SingleStream, Mode::PerformanceOnly, logs);
    let conf = "*.SingleStream.target_latency = 0.001\n*.*.min_duration = 1000";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    let outcome = NativeLoadGen.run(&SquareRoots, &Numbers, &request, &NoObserver)?;
    if let Some(performance) = outcome.performance {
        println!("{}: {}", performance.metric.name, performance.metric.text);
    }
    println!("valid: {:?} {}", outcome.valid, outcome.reasons.join("; "));
    Ok(())
}
