//! Tests of libraries that fail to load, to unload, or to report their counts.

use std::time::Duration;

use regatta_loadgen::{
    load_gen::LoadgenError,
    sut::{QuerySampleLibrary, SutError},
};
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer_all, expect_fault, request, run};

type Deed = fn() -> Result<(), SutError>;

const WELL: Deed = || Ok(());

struct Library {
    load: Deed,
    unload: Deed,
    count: fn() -> usize,
}

impl Default for Library {
    fn default() -> Self {
        Self {
            load: WELL,
            unload: WELL,
            count: || 64,
        }
    }
}

impl QuerySampleLibrary for Library {
    fn name(&self) -> &str {
        "library"
    }

    fn total_sample_count(&self) -> usize {
        (self.count)()
    }

    fn performance_sample_count(&self) -> usize {
        64
    }

    fn load_samples_to_ram(&self, _: &[usize]) -> Result<(), SutError> {
        (self.load)()
    }

    fn unload_samples_from_ram(&self, _: &[usize]) -> Result<(), SutError> {
        (self.unload)()
    }
}

fn expect(fault: &str, library: &Library) {
    expect_fault(fault, &Sut(answer_all), library, Duration::from_secs(120));
}

#[test]
fn library_that_fails_is_reported_with_its_cause() {
    let missing: Deed = || Err("7.npy is missing".into());
    let load = Library {
        load: missing,
        ..Library::default()
    };
    expect(
        "the library's load_samples_to_ram failed: 7.npy is missing",
        &load,
    );
    let unload = Library {
        unload: missing,
        ..Library::default()
    };
    expect(
        "the library's unload_samples_from_ram failed: 7.npy is missing",
        &unload,
    );
}

#[test]
fn library_that_panics_is_reported_with_its_message() {
    let load = Library {
        load: || panic!("bad magic"),
        ..Library::default()
    };
    expect("the library's load_samples_to_ram panicked: bad magic", &load);
    let unload = Library {
        unload: || panic!("not mine"),
        ..Library::default()
    };
    expect(
        "the library's unload_samples_from_ram panicked: not mine",
        &unload,
    );
}

#[test]
fn library_that_panics_while_counting_prevents_the_run() {
    let library = Library {
        count: || panic!("no list"),
        ..Library::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let request = request(Scenario::Offline, Mode::PerformanceOnly, dir.path());
    let error = run(&Sut(answer_all), &library, &request).unwrap_err();
    let LoadgenError::Prepare(cause) = error else {
        panic!("{error}");
    };
    assert_eq!(cause.to_string(), "the sample library panicked: no list");
}
