//! Preparation writes complete sets with NumPy's bytes, a second one changes nothing, and errors name the position of the
//! fault.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use npyz::NpyFile;
use regatta_catalogue::known;
use regatta_datasets::{bundled, val_map::ValMap};
use regatta_prep::{PrepError, PrepReport, install_bundled, prepare};
use regatta_types::benchmark::{Benchmark, Dtype, Prep};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Formats an error with its causes as the binaries do, without the temporary directory.
fn chain(error: &PrepError, dir: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.replace(&dir.display().to_string(), "DIR")
        .replace(&std::process::id().to_string(), "PID")
}

#[expect(clippy::unwrap_used, reason = "digits is a known benchmark")]
fn digits() -> Benchmark {
    known::benchmarks()
        .unwrap()
        .into_iter()
        .find(|benchmark| benchmark.name == "digits")
        .unwrap()
}

fn quietly(benchmark: &Benchmark, dir: &Path) -> Result<PrepReport, PrepError> {
    prepare(benchmark, dir, dir, &mut |_, _| {})
}

/// A benchmark of three 1x2x2 images with its table, whose first row is skipped.
#[expect(clippy::unwrap_used, reason = "a test's own directory")]
fn small(table: &str) -> (Benchmark, TempDir) {
    let mut benchmark = digits();
    benchmark.name = "small".to_owned();
    benchmark.model.input_shape = vec![1, 2, 2];
    benchmark.dataset.total_samples = 3;
    benchmark.dataset.dir = "samples".to_owned();
    benchmark.dataset.map = "map/val_map.txt".to_owned();
    benchmark.prep = Some(Prep::CsvImages {
        source: "a set.csv.gz".to_owned(),
        skip_rows: 1,
        divisor: 2.0,
    });
    let dir = tempfile::tempdir().unwrap();
    write_table(dir.path(), table.as_bytes());
    (benchmark, dir)
}

#[expect(clippy::unwrap_used, reason = "a test's own file")]
fn write_table(dir: &Path, table: &[u8]) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(table).unwrap();
    fs::write(dir.join("a set.csv.gz"), packed.finish().unwrap()).unwrap();
}

const TABLE: &str = "9,9,9,9,9\n0,1,2,3,7\n4, 5 ,6,8,0\r\n1,1,1,16.5,3";

#[test]
fn samples_have_numpys_bytes() {
    let (benchmark, dir) = small(TABLE);
    quietly(&benchmark, dir.path()).unwrap();
    let mut expected =
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }".to_vec();
    expected.resize(127, b' ');
    expected.push(b'\n');
    expected.extend([0.0f32, 0.5, 1.0, 1.5].into_iter().flat_map(f32::to_le_bytes));
    assert_eq!(
        fs::read(dir.path().join("samples/a_set_1.npy")).unwrap(),
        expected
    );
    let map = fs::read_to_string(dir.path().join("map/val_map.txt")).unwrap();
    assert_eq!(map, "a_set_1 7\na_set_2 0\na_set_3 3\n");
}

#[test]
fn the_bundled_benchmark_is_installed_completely() {
    let (benchmark, scratch) = (digits(), tempfile::tempdir().unwrap());
    let mut after_it = digits();
    after_it.name = "scans".to_owned();
    assert!(bundled::contains(&benchmark) && !bundled::contains(&after_it));
    let mut steps = Vec::new();
    let report = install_bundled(&benchmark, scratch.path(), &mut |done, total| {
        steps.push((done, total))
    })
    .unwrap();
    assert_eq!((report.samples, report.unchanged), (597, 0));
    assert_eq!(steps, (1..=597).map(|done| (done, 597)).collect::<Vec<_>>());

    let model = fs::read(scratch.path().join(&benchmark.model.file)).unwrap();
    let sha256: String = Sha256::digest(&model)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        Some(sha256),
        benchmark.model.sha256,
        "the model is the one that the benchmark's file names"
    );

    let map = ValMap::read(&report.map).unwrap();
    assert_eq!(map.len(), benchmark.dataset.total_samples);
    assert_eq!(
        fs::read_dir(&report.dir).unwrap().count(),
        597 + 1,
        "only samples and their document are in the directory"
    );
    let mut table = String::new();
    let packed = bundled::file("data/digits/digits.csv.gz").unwrap();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut table)
        .unwrap();
    for (index, (name, row)) in map.names().zip(table.lines().skip(1200)).enumerate() {
        let npy = fs::read(report.dir.join(format!("{name}.npy"))).unwrap();
        let npy = NpyFile::new(&npy[..]).unwrap();
        assert_eq!(npy.shape(), [1, 8, 8]);
        let mut columns: Vec<f32> = npy
            .into_vec::<f32>()
            .unwrap()
            .iter()
            .map(|value| value * 16.0)
            .collect();
        columns.push(map.label(index).unwrap() as f32);
        assert_eq!(
            columns,
            row.split(',')
                .map(|number| number.parse().unwrap())
                .collect::<Vec<f32>>(),
            "{name}"
        );
    }
}

#[test]
fn a_second_preparation_only_repairs_damaged_samples() {
    let (benchmark, dir) = small(TABLE);
    assert_eq!(quietly(&benchmark, dir.path()).unwrap().unchanged, 0);
    assert_eq!(quietly(&benchmark, dir.path()).unwrap().unchanged, 3);
    fs::write(dir.path().join("samples/a_set_2.npy"), b"").unwrap();
    fs::remove_file(dir.path().join("map/val_map.txt")).unwrap();
    let report = quietly(&benchmark, dir.path()).unwrap();
    assert_eq!(report.unchanged, 2);
    assert_eq!(
        fs::metadata(dir.path().join("samples/a_set_2.npy"))
            .unwrap()
            .len(),
        144
    );
    assert_eq!(ValMap::read(&report.map).unwrap().len(), 3);
}

#[test]
fn faults_in_the_table_are_named_with_their_line_before_anything_is_written() {
    let wrong = [
        ("9,9,9,9,9\n0,1,2,7\n", "too few columns"),
        ("9,9,9,9,9\n0,1,2,3,4,7\n", "too many columns"),
        ("9,9,9,9\n", "also in a row that is skipped"),
        ("9,9,9,9,9\n0,1,,3,7\n", "an empty pixel"),
        ("9,9,9,9,9\n0,1,2,inf,7\n", "a pixel without end"),
        ("9,9,9,9,9\n0,1,2,3,seven\n", "a label in words"),
        ("9,9,9,9,9\n0,1,2,3,7\n", "two samples missing"),
        ("", "an empty table"),
    ];
    let faults: Vec<(&str, String)> = wrong
        .iter()
        .map(|(table, what)| {
            let (benchmark, dir) = small(table);
            let error = quietly(&benchmark, dir.path()).unwrap_err();
            assert_eq!(
                fs::read_dir(dir.path()).unwrap().count(),
                1,
                "nothing but the table"
            );
            (*what, chain(&error, dir.path()))
        })
        .collect();
    insta::assert_debug_snapshot!(faults);

    let (benchmark, dir) = small(&"1".repeat(100_000));
    let error = quietly(&benchmark, dir.path()).unwrap_err();
    assert_eq!(
        chain(&error, dir.path()),
        "DIR/a set.csv.gz, line 1: the line is longer than 320 bytes"
    );

    // A hundred bytes can unpack to more rows than fit into memory.
    let (benchmark, dir) = small(&"9,9,9,9,9\n".repeat(100_000));
    let error = quietly(&benchmark, dir.path()).unwrap_err();
    assert_eq!(
        chain(&error, dir.path()),
        "DIR/a set.csv.gz, line 5: the table continues behind the 3 samples of the benchmark"
    );
}

#[test]
fn a_damaged_archive_is_named() {
    let (benchmark, dir) = small(TABLE);
    let table = dir.path().join("a set.csv.gz");
    let whole = fs::read(&table).unwrap();
    for damaged in [&whole[..whole.len() - 9], &whole[..20], b"no archive at all"] {
        fs::write(&table, damaged).unwrap();
        let error = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
        assert!(error.starts_with("DIR/a set.csv.gz, line "), "{error}");
        assert!(
            error.contains("the table cannot be unpacked from here on: "),
            "{error}"
        );
    }
    let mut flipped = whole;
    let checksum = flipped.len() - 8;
    flipped[checksum] ^= 1;
    fs::write(&table, flipped).unwrap();
    let error = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
    assert!(
        error.contains("cannot be unpacked"),
        "a wrong checksum is found: {error}"
    );
    fs::remove_file(&table).unwrap();
    let error = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
    assert_eq!(
        error,
        "cannot open the dataset DIR/a set.csv.gz: No such file or directory (os error 2)"
    );
}

#[test]
fn a_full_disk_is_named_and_leaves_no_map_and_no_half_sample() {
    let (benchmark, dir) = small(TABLE);
    let samples = dir.path().join("samples");
    fs::create_dir_all(dir.path().join("map")).unwrap();
    fs::write(dir.path().join("map/val_map.txt"), "another 1\n").unwrap();
    fs::create_dir(&samples).unwrap();
    // The temporary file for the second sample.
    let part: PathBuf = samples.join(".a_set_2.npy.new");
    symlink("/dev/full", &part).unwrap();
    let error = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
    assert_eq!(
        error,
        "cannot write DIR/samples/a_set_2.npy: No space left on device (os error 28)"
    );
    assert!(
        !dir.path().join("map/val_map.txt").exists(),
        "there is no map, which would mean a complete set"
    );
    let mut left: Vec<_> = fs::read_dir(&samples)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a_set_1.npy", "samples.unfinished"]);
    assert_eq!(
        quietly(&benchmark, dir.path()).unwrap().unchanged,
        1,
        "with room again the set is completed"
    );
}

#[test]
fn a_benchmark_that_cannot_be_prepared_says_why() {
    let (mut benchmark, dir) = small(TABLE);
    let divided_by = |divisor| Prep::CsvImages {
        source: "a set.csv.gz".to_owned(),
        skip_rows: 1,
        divisor,
    };
    benchmark.prep = Some(divided_by(0.0));
    let by_zero = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
    assert_eq!(
        by_zero,
        "the samples of benchmark small cannot be prepared: pixels cannot be divided by 0"
    );
    benchmark.prep = Some(divided_by(2.0));
    benchmark.model.input_dtype = Dtype::Int8;
    let bytes = chain(&quietly(&benchmark, dir.path()).unwrap_err(), dir.path());
    assert_eq!(
        bytes,
        "the samples of benchmark small cannot be prepared: csv-images makes fp32_linear samples of one input, not int8_linear"
    );
    benchmark.prep = None;
    let none = quietly(&benchmark, dir.path()).unwrap_err();
    assert!(matches!(none, PrepError::NoPrepSection { .. }), "{none}");
    benchmark.model.file = "models/small.onnx".to_owned();
    let missing = install_bundled(&benchmark, dir.path(), &mut |_, _| {}).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("models/small.onnx is not bundled with this program"),
        "{missing}"
    );
}
