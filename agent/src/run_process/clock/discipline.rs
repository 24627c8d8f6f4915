//! The kernel's state of clock synchronisation (`adjtimex`, read only).
//!
//! All time daemons set the same synchronisation flag. The offset is only known if the daemon uses the kernel's own loop, as ntpd
//! and systemd-timesyncd do. With chrony, which adjusts the frequency, that field is 0.

use std::mem;

/// The result of `adjtimex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Discipline {
    /// `TIME_OK`, `TIME_ERROR` or a leap second state.
    state: i32,
    /// `STA_*` flags.
    status: i32,
    /// Offset in nanoseconds with `STA_NANO`, otherwise in microseconds.
    offset: i64,
}

impl Discipline {
    /// Reads the state. Returns `None` if the call fails, for example in a sandbox.
    pub(super) fn of_kernel() -> Option<Self> {
        // SAFETY: the struct has integer fields only. All zeroes request no change.
        let mut timex: libc::timex = unsafe { mem::zeroed() };
        // SAFETY: `timex` outlives the call, which writes to nothing else.
        let state = unsafe { libc::adjtimex(&mut timex) };
        (state >= 0).then_some(Self {
            state,
            status: timex.status,
            offset: timex.offset,
        })
    }

    /// Returns whether a time daemon synchronises the clock.
    pub(super) const fn is_synchronised(self) -> bool {
        self.state != libc::TIME_ERROR && self.status & libc::STA_UNSYNC == 0
    }

    /// Returns the remaining offset in microseconds, if the kernel's loop is in use.
    pub(super) const fn offset_us(self) -> Option<i64> {
        if !self.is_synchronised() || self.status & (libc::STA_PLL | libc::STA_FLL) == 0 {
            None
        } else if self.status & libc::STA_NANO != 0 {
            Some(self.offset / 1000)
        } else {
            Some(self.offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use regatta_test_requirements::{Requirement, skip};

    use super::*;

    const PLL_NANO: i32 = libc::STA_PLL | libc::STA_NANO;

    #[test]
    fn flags_are_read_as_the_kernel_sets_them() {
        // State and status as observed with: no daemon since boot, timesyncd, ntpd before the nanosecond kernel,
        // chrony, and a daemon that has lost its servers.
        let cases = [
            (libc::TIME_ERROR, libc::STA_UNSYNC, 0, false, None),
            (libc::TIME_OK, PLL_NANO, -1_234_567, true, Some(-1234)),
            (libc::TIME_INS, libc::STA_PLL, 250, true, Some(250)),
            (libc::TIME_OK, libc::STA_NANO, 0, true, None),
            (libc::TIME_ERROR, PLL_NANO | libc::STA_UNSYNC, 77_000, false, None),
        ];
        for (state, status, offset, synchronised, offset_us) in cases {
            let discipline = Discipline {
                state,
                status,
                offset,
            };
            assert_eq!(discipline.is_synchronised(), synchronised, "{discipline:?}");
            assert_eq!(discipline.offset_us(), offset_us, "{discipline:?}");
        }
    }

    #[test]
    fn the_kernel_answers_or_refuses() {
        let Some(discipline) = Discipline::of_kernel() else {
            skip(
                Requirement::Machine,
                "this system does not let adjtimex be called",
            );
            return;
        };
        assert!((libc::TIME_OK..=libc::TIME_ERROR).contains(&discipline.state));
    }
}
