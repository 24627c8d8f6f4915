//! Tests that our LoadGen equals the official one, with random settings from a recorded seed and real values of rounds.
//!
//! The official LoadGen is built by `tests/oracles/loadgen/build.sh` into `$REGATTA_ORACLES`; without it these tests are skipped.
//! Other versions and compilers are compared where they have been built, also in CI.
//! `REGATTA_EQUALITY_SETTINGS` sets how many settings are drawn (default 100), `REGATTA_EQUALITY_SEED` from which seed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

mod builds;
mod cases;
mod echo;
mod generation;
mod logs;
mod oracle;
mod peak;
mod results;
mod runs;
mod tally;

/// How many settings to draw, and from which seed.
fn draws() -> (u64, u64) {
    let number = |name: &str, default| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    (
        number("REGATTA_EQUALITY_SETTINGS", 100),
        number("REGATTA_EQUALITY_SEED", 20_261_121),
    )
}
