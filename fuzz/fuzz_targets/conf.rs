//! Passes libFuzzer's inputs to the check of the same name in `fuzz/checks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| regatta_fuzz_checks::conf(bytes));
