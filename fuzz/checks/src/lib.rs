//! Checks of bytes from outside: each takes any bytes and panics when a promise does not hold. The fuzz targets call them with
//! libFuzzer's inputs, the test beside them with stored ones. No fuzzer is linked here.

// A broken promise panics, which the fuzzer reports.
#![expect(clippy::expect_used, reason = "this crate is test code throughout")]

mod conf;
mod journal;
mod logs;
mod wire;

pub use conf::conf;
pub use journal::journal;
pub use logs::{accuracy, detail, summary};
pub use wire::wire;

/// A check: panics when the bytes break a promise.
pub type Check = fn(&[u8]);

/// Every check by the name of its fuzz target and corpus.
pub const CHECKS: [(&str, Check); 6] = [
    ("accuracy", accuracy),
    ("conf", conf),
    ("detail", detail),
    ("journal", journal),
    ("summary", summary),
    ("wire", wire),
];
