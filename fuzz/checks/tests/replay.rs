//! Replays the fuzzer's stored inputs as an ordinary test.

use std::{fs::File, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use tar::Archive;

#[test]
fn every_kept_input_keeps_its_promise() {
    for (name, check) in regatta_fuzz_checks::CHECKS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/{name}.tar.gz"));
        let archive = File::open(&path).expect("every target has an archive");
        let mut count = 0;
        for entry in Archive::new(GzDecoder::new(archive))
            .entries()
            .expect("the archive reads")
        {
            let mut entry = entry.expect("an entry reads");
            let mut input = Vec::new();
            entry.read_to_end(&mut input).expect("an input reads");
            // Printed when the check panics: the input to look at.
            println!("{}", entry.path().expect("an input has a name").display());
            check(&input);
            count += 1;
        }
        assert!(count > 0, "{} is empty", path.display());
    }
}
