//! Measures your own system under test in SingleStream: `cargo run --release --example own_sut [LOG_DIR]`.

use regatta_loadgen::{NativeLoadGen, load_gen::*, request::*, sut::*};
use regatta_types::{Mode, Scenario};

/// Takes square roots of sample numbers.
struct SquareRoots;

impl SystemUnderTest for SquareRoots {
    fn name(&self) -> &str {
        "square roots"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        for sample in query.iter() {
            let root = (sample.index as f64).sqrt().to_le_bytes();
            completer.complete(&[QuerySampleResponse::new(sample.id, &root)]);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let logs = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut request = RunRequest::new("roots", Scenario::SingleStream, Mode::PerformanceOnly, logs);
    let conf = "*.SingleStream.target_latency = 0.0005\n*.*.min_duration = 1000";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    let numbers = ResidentLibrary::new("numbers", 1000);
    let outcome = NativeLoadGen.run(&SquareRoots, &numbers, &request, &NoObserver)?;
    if let Some(performance) = outcome.performance {
        println!("{}: {}", performance.metric.name, performance.metric.text);
    }
    println!("valid: {:?} {}", outcome.valid, outcome.reasons.join("; "));
    Ok(())
}
