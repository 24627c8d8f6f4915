//! Shares out the process's file descriptors. The sum of all parts stays below the limit. Unknown clients on one port therefore cannot
//! exhaust the descriptors for another port, a log or the store.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The reserve for everything that is not counted: the store, records, logs, helpers, and closing sockets.
const RESERVE: u64 = 192;

/// The number of connections or files for each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorBudget {
    /// Unproven connections on one port, waiting ones included. There are three such ports.
    pub handshakes: usize,
    /// Connections of devices to the embedded broker. Each takes two descriptors.
    pub broker_connections: usize,
    /// Connections of devices to the asset server. Each takes two descriptors: the socket and the file being sent.
    pub asset_connections: usize,
    /// Open streams of logs.
    pub open_streams: usize,
    /// Connections of browsers to the live page. Over TLS half of them are handshakes.
    pub page_connections: usize,
}

impl DescriptorBudget {
    /// Returns the largest useful number for each part of a lab with at most `devices` connected devices.
    const fn largest(devices: usize) -> Self {
        Self {
            handshakes: 1024,
            broker_connections: devices,
            asset_connections: 256,
            open_streams: 512,
            page_connections: 256,
        }
    }

    /// Raises this process's soft limit as far as useful for this many connected devices, and shares out the result.
    pub fn raise(devices: usize) -> Self {
        let limits = getrlimit(Resource::Nofile);
        let largest = Self::largest(devices);
        let requested = largest.limit();
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
        let budget = Self::of(limit, largest);
        if budget.broker_connections < largest.broker_connections {
            tracing::warn!(
                "at most {} devices can be connected at once: the limit of open files is {limit}; raise it with \
                 `ulimit -Hn {requested}` or systemd's LimitNOFILE",
                budget.broker_connections
            );
        } else if budget != largest {
            tracing::warn!(
                "fewer devices than usual can connect or fetch assets at the same moment: the limit of open files is {limit}; raise it \
                 with `ulimit -Hn {requested}` or systemd's LimitNOFILE"
            );
        }
        budget
    }

    /// Divides a limit among the parts. No part gets more than its useful maximum (`largest`), and the other parts share the rest.
    fn of(limit: u64, largest: Self) -> Self {
        let mut parts = largest.shares().map(|(share, each, most)| LimitPart {
            share,
            each,
            most,
            number: 1,
        });
        // Parts that leave the most of their shares come first, so that the others share out all that is left.
        let mut order: Vec<&mut LimitPart> = parts.iter_mut().collect();
        order.sort_by_key(|part| part.descriptors() / part.share);
        let mut left = limit.saturating_sub(RESERVE);
        let mut shares: u64 = order.iter().map(|part| part.share).sum();
        for part in order {
            let fits = left * part.share / shares / part.each;
            part.number = usize::try_from(fits).unwrap_or(usize::MAX).clamp(1, part.most);
            left = left.saturating_sub(part.each * part.number as u64);
            shares -= part.share;
        }
        let [
            handshakes,
            broker_connections,
            asset_connections,
            open_streams,
            page_connections,
        ] = parts.map(|part| part.number);
        Self {
            handshakes,
            broker_connections,
            asset_connections,
            open_streams,
            page_connections,
        }
    }

    /// Returns each part's share of the limit in 32nds, the descriptors of each of its connections or files, and their number.
    const fn shares(self) -> [(u64, u64, usize); 5] {
        [
            (8, 3, self.handshakes),
            (14, 2, self.broker_connections),
            (4, 2, self.asset_connections),
            (5, 1, self.open_streams),
            (1, 1, self.page_connections),
        ]
    }

    /// Returns the lowest limit that is sufficient for all parts.
    fn limit(self) -> u64 {
        let needed = |(_, each, number): (u64, u64, usize)| number as u64 * each;
        RESERVE + self.shares().map(needed).into_iter().sum::<u64>()
    }
}

/// A part of the limit while it is shared out.
struct LimitPart {
    share: u64,
    each: u64,
    most: usize,
    number: usize,
}

impl LimitPart {
    /// Returns the descriptors that the part takes at most.
    const fn descriptors(&self) -> u64 {
        self.each * self.most as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_below_the_limit_and_get_what_they_can_use_of_a_large_one() {
        let total = |budget: DescriptorBudget| -> u64 {
            let parts = budget.shares().map(|(_, each, number)| each * number as u64);
            parts.into_iter().sum()
        };
        for devices in [1, 4096, 65_536] {
            let largest = DescriptorBudget::largest(devices);
            for limit in [256, 512, 1024, 4096, 10_000, 65_536, u64::from(u32::MAX)] {
                let budget = DescriptorBudget::of(limit, largest);
                assert!(total(budget) + RESERVE <= limit, "{limit}: {budget:?}");
            }
            assert_eq!(DescriptorBudget::of(524_288, largest), largest);
            assert_eq!(
                DescriptorBudget::of(largest.limit(), largest),
                largest,
                "what `raise` requests is enough"
            );
        }
        // A lab of 5,000 devices fits into 20,000 files.
        let lab = DescriptorBudget::largest(5000);
        assert_eq!(DescriptorBudget::of(20_000, lab), lab);
        let small = DescriptorBudget::of(1024, DescriptorBudget::largest(4096));
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
