//! The recorded queries of the official LoadGen. Nothing is computed here.

use regatta_types::{Mode, Scenario};

/// A record: the first samples, and length and hash of the issue log and the schedule.
pub(crate) struct Golden {
    pub(crate) scenario: Scenario,
    pub(crate) mode: Mode,
    pub(crate) first: [u64; 6],
    pub(crate) issue_log: (usize, u64),
    pub(crate) schedule: (usize, u64),
}

const fn golden(
    scenario: Scenario,
    mode: Mode,
    first: [u64; 6],
    issue_log: (usize, u64),
    schedule: (usize, u64),
) -> Golden {
    Golden {
        scenario,
        mode,
        first,
        issue_log,
        schedule,
    }
}

/// Built by g++ 12.
pub(crate) const BY_LIBSTDCXX_12: [Golden; 8] = [
    golden(
        Scenario::SingleStream,
        Mode::AccuracyOnly,
        [62, 270, 557, 545, 149, 561],
        (1194, 0xA60736E5EFAD9DD0),
        (597, 0xEA533A2BA4F15B4F),
    ),
    golden(
        Scenario::SingleStream,
        Mode::PerformanceOnly,
        [50, 176, 19, 34, 6, 14],
        (8002, 0xCABA869D3043B8A7),
        (4001, 0xA29D949A014DC85F),
    ),
    golden(
        Scenario::MultiStream,
        Mode::AccuracyOnly,
        [274, 466, 552, 402, 469, 225],
        (675, 0xE0761ED950C23D2E),
        (75, 0x5AA9BC0952C0DA37),
    ),
    golden(
        Scenario::MultiStream,
        Mode::PerformanceOnly,
        [114, 100, 73, 214, 80, 175],
        (8100, 0xEC7DDD04F6839E59),
        (900, 0x172D9840F57B5235),
    ),
    golden(
        Scenario::Server,
        Mode::AccuracyOnly,
        [62, 270, 557, 545, 149, 561],
        (1194, 0xA60736E5EFAD9DD0),
        (597, 0x748D894A460CA652),
    ),
    golden(
        Scenario::Server,
        Mode::PerformanceOnly,
        [50, 176, 19, 34, 6, 14],
        (1800, 0xE033F3EF80AC22F5),
        (900, 0x18D2CCADDDD16A9B),
    ),
    golden(
        Scenario::Offline,
        Mode::AccuracyOnly,
        [217, 444, 458, 233, 499, 581],
        (600, 0x2D3752A65C5D7972),
        (3, 0xD94D12186C0F2FB7),
    ),
    golden(
        Scenario::Offline,
        Mode::PerformanceOnly,
        [216, 188, 112, 232, 230, 37],
        (4401, 0xC1E878B6CEB9E4A4),
        (1, 0xAF63BD4C8601B7DF),
    ),
];

/// Built by g++ 10.
pub(crate) const BY_LIBSTDCXX_10: [Golden; 8] = [
    golden(
        Scenario::SingleStream,
        Mode::AccuracyOnly,
        [62, 498, 557, 545, 149, 497],
        (1194, 0x84AEDCE768D4A70C),
        (597, 0xEA533A2BA4F15B4F),
    ),
    golden(
        Scenario::SingleStream,
        Mode::PerformanceOnly,
        [50, 176, 19, 34, 6, 14],
        (8002, 0x61C03AB79DA33D9E),
        (4001, 0xA29D949A014DC85F),
    ),
    golden(
        Scenario::MultiStream,
        Mode::AccuracyOnly,
        [274, 441, 353, 552, 469, 225],
        (675, 0x352D227082F225D7),
        (75, 0x5AA9BC0952C0DA37),
    ),
    golden(
        Scenario::MultiStream,
        Mode::PerformanceOnly,
        [114, 100, 73, 214, 80, 175],
        (8100, 0x0529652769AAF3CB),
        (900, 0x172D9840F57B5235),
    ),
    golden(
        Scenario::Server,
        Mode::AccuracyOnly,
        [62, 498, 557, 545, 149, 497],
        (1194, 0x84AEDCE768D4A70C),
        (597, 0x748D894A460CA652),
    ),
    golden(
        Scenario::Server,
        Mode::PerformanceOnly,
        [50, 176, 19, 34, 6, 14],
        (1800, 0x81803A62476E7B26),
        (900, 0x18D2CCADDDD16A9B),
    ),
    golden(
        Scenario::Offline,
        Mode::AccuracyOnly,
        [217, 414, 230, 233, 499, 581],
        (600, 0x3A1F7DC72F98BA9C),
        (3, 0xD94D12186C0F2FB7),
    ),
    golden(
        Scenario::Offline,
        Mode::PerformanceOnly,
        [216, 188, 112, 232, 230, 37],
        (4401, 0xF30185A11B1E2354),
        (1, 0xAF63BD4C8601B7DF),
    ),
];
