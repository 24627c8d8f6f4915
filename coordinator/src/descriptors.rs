//! Shares out the process's file descriptors. The sum of all parts stays below the limit. Unknown clients on one port therefore cannot
//! exhaust the descriptors for another port, a log or the store.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The reserve for everything that is not counted: the store, records, logs, helpers, and closing sockets.
const RESERVE: u64 = 192;

/// The number of connections or files for each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorBudget {
    /// Unproven connections on one port. There are three such ports.
    pub(crate) handshakes: usize,
    /// Connections of devices to the embedded broker. Each takes two descriptors.
    pub(crate) broker_connections: usize,
    /// Connections of devices to the asset server. Each takes two descriptors: the socket and the file being sent.
    pub(crate) asset_connections: usize,
    /// Open streams of logs.
    pub(crate) open_streams: usize,
    /// Connections of browsers to the live page.
    pub(crate) page_connections: usize,
}

/// The largest useful number for each part.
const LARGEST: DescriptorBudget = DescriptorBudget {
    handshakes: 256,
    broker_connections: 4096,
    asset_connections: 256,
    open_streams: 512,
    page_connections: 128,
};

impl DescriptorBudget {
    /// Raises this process's soft limit as far as useful, and shares out the result.
    pub(crate) fn raise() -> Self {
        let limits = getrlimit(Resource::Nofile);
        let requested = RESERVE + LARGEST.total();
        let hard = limits.maximum.unwrap_or(u64::MAX);
        let current = limits.current.unwrap_or(u64::MAX);
        let raised = requested.min(hard);
        let limit = if raised > current {
            let raise = Rlimit {
                current: Some(raised),
                maximum: limits.maximum,
            };
            match setrlimit(Resource::Nofile, raise) {
                Ok(()) => raised,
                Err(error) => {
                    tracing::debug!("the limit of open files stays at {current}: {error}");
                    current
                }
            }
        } else {
            current
        };
        let budget = Self::of(limit);
        if budget != LARGEST {
            tracing::warn!(
                "at most {} devices can be connected at once: the limit of open files is {limit}; raise it with \
                 `ulimit -Hn {requested}` or systemd's LimitNOFILE",
                budget.broker_connections
            );
        }
        budget
    }

    /// Shares out a limit.
    fn of(limit: u64) -> Self {
        let parts = limit.saturating_sub(RESERVE);
        let share = |parts_of_32: u64, each: u64, most: usize| {
            let fits = usize::try_from(parts * parts_of_32 / 32 / each).unwrap_or(usize::MAX);
            fits.clamp(1, most)
        };
        Self {
            handshakes: share(8, 3, LARGEST.handshakes),
            broker_connections: share(14, 2, LARGEST.broker_connections),
            asset_connections: share(4, 2, LARGEST.asset_connections),
            open_streams: share(5, 1, LARGEST.open_streams),
            page_connections: share(1, 1, LARGEST.page_connections),
        }
    }

    /// The number of descriptors for all parts.
    const fn total(self) -> u64 {
        (3 * self.handshakes
            + 2 * self.broker_connections
            + 2 * self.asset_connections
            + self.open_streams
            + self.page_connections) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_below_the_limit_and_get_what_they_can_use_of_a_large_one() {
        for limit in [256, 512, 1024, 4096, 10_000, 65_536, u64::from(u32::MAX)] {
            let budget = DescriptorBudget::of(limit);
            assert!(budget.total() + RESERVE <= limit, "{limit}: {budget:?}");
        }
        assert_eq!(DescriptorBudget::of(524_288), LARGEST);
        let small = DescriptorBudget::of(1024);
        assert!(
            small.handshakes >= 64 && small.broker_connections >= 128,
            "{small:?}"
        );
        assert!(
            small.asset_connections >= 32 && small.open_streams >= 128,
            "{small:?}"
        );
    }
}
