//! What the fuzzer has kept, replayed: every input that once reached something new, at the cost of a plain test.

use std::{fs, path::Path};

#[test]
fn every_kept_input_keeps_its_promise() {
    for (name, check) in regatta_fuzz_checks::CHECKS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
        let inputs = fs::read_dir(&corpus).expect("every target has a corpus");
        let mut count = 0;
        for input in inputs {
            let path = input.expect("the corpus reads").path();
            // Printed when the check panics: the input to look at.
            println!("{}", path.display());
            check(&fs::read(&path).expect("an input reads"));
            count += 1;
        }
        assert!(count > 0, "{} is empty", corpus.display());
    }
}
