//! The measured workloads.

/// One way of using LoadGen, the same on both sides.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) scenario: &'static str,
    /// `inline`: within `issue_query`. `thread` and `spin`: from a thread; ours then waits blocking or spinning.
    pub(crate) answers: &'static str,
    /// Expected latency in ms, or rate. It decides how many queries the official LoadGen generates before the run, so it is a
    /// rate that it can just reach. With ours it would fill the memory.
    pub(crate) official_target: &'static str,
    pub(crate) our_target: &'static str,
    pub(crate) figures: &'static [&'static str],
}

pub(crate) const WORKLOADS: [Workload; 8] = [
    Workload {
        name: "SingleStream, answered inline",
        scenario: "SingleStream",
        answers: "inline",
        official_target: "0.0008",
        our_target: "0.00002",
        figures: &["query_ns", "query_cpu_ns", "wall_s", "rss_mib"],
    },
    Workload {
        name: "MultiStream of 8, answered inline",
        scenario: "MultiStream",
        answers: "inline",
        official_target: "0.0015",
        our_target: "0.00002",
        figures: &["query_ns", "query_cpu_ns", "wall_s", "rss_mib"],
    },
    Workload {
        name: "SingleStream, answered from a thread, blocking",
        scenario: "SingleStream",
        answers: "thread",
        official_target: "0.004",
        our_target: "0.002",
        figures: &["turnaround_p50_ns", "turnaround_p99_ns", "query_ns"],
    },
    Workload {
        name: "SingleStream, answered from a thread, ours spinning",
        scenario: "SingleStream",
        answers: "spin",
        official_target: "0.004",
        our_target: "0.0005",
        figures: &["turnaround_p50_ns", "turnaround_p99_ns", "query_ns"],
    },
    Workload {
        name: "Server at 10000 queries/s, answered inline (latency is schedule slip)",
        scenario: "Server",
        answers: "inline",
        official_target: "10000",
        our_target: "10000",
        figures: &["query_cpu_ns", "latency_p50_ns", "latency_p99_ns"],
    },
    Workload {
        name: "Server at 100000 queries/s, answered inline (latency is schedule slip)",
        scenario: "Server",
        answers: "inline",
        official_target: "100000",
        our_target: "100000",
        figures: &["query_cpu_ns", "latency_p50_ns", "latency_p99_ns"],
    },
    Workload {
        name: "Server at 500000 queries/s, answered inline (latency is schedule slip)",
        scenario: "Server",
        answers: "inline",
        official_target: "500000",
        our_target: "500000",
        figures: &["latency_p50_ns", "latency_p99_ns", "wall_s", "rss_mib"],
    },
    Workload {
        name: "Offline, 5 million samples a second",
        scenario: "Offline",
        answers: "inline",
        official_target: "4545455",
        our_target: "4545455",
        figures: &["wall_s", "rss_mib"],
    },
];
