//! Tests of batches in which one part cannot be stored. Triggers refuse it: `FAIL` undoes the statement, as a constraint does, and
//! `ROLLBACK` the whole transaction. SQLite itself refuses pages of a database that is full.

use regatta_types::{
    RunId, StreamName,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    message::{StateReport, StreamVerdict},
    topic::Leaf,
};

use super::{super::reject_counters::RejectKind, Bench, name};
use regatta_lab_net::link::Inbound;
use regatta_lab_store::{database::test_server::is_on_server, examples::example_draft};

const EFFECTS: [&str; 3] = ["FAIL", "ABORT", "ROLLBACK"];

impl Bench {
    fn refuse(&self, table: &str, condition: &str, effect: &str) {
        self.workspace.store().unwrap().refuse(table, condition, effect);
    }

    fn refuse_nothing(&self, table: &str) {
        self.workspace.store().unwrap().refuse_nothing(table);
    }

    fn running(&self, run: RunId) -> Inbound {
        let state = RunState {
            phase: RunPhase::Running,
            reason: None,
            revision: 4,
        };
        let streams = Vec::new();
        let report = StateReport { run, state, streams };
        self.report(Leaf::State(run), &report)
    }

    fn phase(&self, run: RunId) -> RunPhase {
        let store = self.workspace.store().unwrap();
        store.runs().get(run).unwrap().unwrap().state.phase
    }

    /// Returns the streams that were acknowledged as equal, each as often as it was.
    fn equal(&self) -> Vec<StreamName> {
        let acks = self.acks.0.lock().unwrap();
        let equal = acks
            .iter()
            .filter(|ack| ack.verdict == Some(StreamVerdict::Equal));
        equal.map(|ack| ack.stream.clone()).collect()
    }
}

#[test]
fn a_stream_that_cannot_be_recorded_delays_no_other() {
    for effect in EFFECTS {
        let mut bench = Bench::new();
        bench.refuse("streams", "NEW.name = 'b'", effect);
        let all = ["a", "b", "c"];
        let messages = |bench: &Bench| {
            all.map(|stream| {
                [
                    bench.chunk(stream, 0, stream.as_bytes()),
                    bench.end(stream, stream.as_bytes()),
                ]
            })
        };
        let [a, b, c] = messages(&bench);
        let [[a0, a1], [b0, b1], [c0, c1]] = [a, b, c];
        bench.take([a0, b0, c0, a1, b1, c1]);
        assert_eq!(bench.equal(), ["a", "c"].map(name), "{effect}");
        assert_eq!(bench.ingest.rejects().count(RejectKind::Storage), 1, "{effect}");
        bench.refuse_nothing("streams");
        // The device repeats what is not acknowledged.
        let [_, [b0, b1], _] = messages(&bench);
        bench.take([b0, b1]);
        assert_eq!(bench.equal(), ["a", "c", "b"].map(name), "{effect}");
        for stream in all {
            assert_eq!(bench.whole(stream).unwrap(), stream.as_bytes(), "{effect}");
        }
    }
}

#[test]
fn a_state_that_cannot_be_stored_delays_no_other_message() {
    for effect in EFFECTS {
        let mut bench = Bench::new();
        let others = [(); 2].map(|()| {
            let draft = example_draft(bench.device.clone());
            let store = bench.workspace.store().unwrap();
            store.runs().add(&draft).unwrap();
            store.runs().fix_spec(draft.spec.run, "00").unwrap();
            draft.spec.run
        });
        bench.refuse("runs", &format!("NEW.id = '{}'", bench.run), effect);
        let [chunk, end] = [bench.chunk("log", 0, b"abc"), bench.end("log", b"abc")];
        bench.ingest.take([chunk, end]);
        // The batch with the stream is settled in the transaction of these messages.
        let states = [others[0], bench.run, others[1]].map(|run| bench.running(run));
        bench.take(states);
        assert_eq!(bench.phase(bench.run), RunPhase::Queued, "{effect}");
        for run in others {
            assert_eq!(bench.phase(run), RunPhase::Running, "{effect}");
        }
        assert_eq!(bench.equal(), [name("log")], "{effect}");
        bench.refuse_nothing("runs");
        bench.take([]);
        assert_eq!(bench.phase(bench.run), RunPhase::Running, "{effect}");
    }
}

#[test]
fn a_full_database_acknowledges_what_it_stored_and_takes_the_rest_later() {
    if is_on_server() {
        return;
    }
    let mut bench = Bench::new();
    bench.ingest.store.set_full(true);
    // Rows of so many streams need new pages.
    let all: Vec<String> = (0..60).map(|number| format!("s{number}")).collect();
    let deliver = |bench: &mut Bench, streams: &[String]| {
        let messages = streams.iter().flat_map(|stream| {
            [
                bench.chunk(stream, 0, stream.as_bytes()),
                bench.end(stream, stream.as_bytes()),
            ]
        });
        let messages: Vec<Inbound> = messages.collect();
        bench.ingest.take(messages);
        bench.ingest.finish();
    };
    deliver(&mut bench, &all);
    let stored = bench.equal();
    assert!(stored.len() < all.len(), "the database was not full");
    assert!(bench.ingest.rejects().count(RejectKind::Storage) > 0);
    // The coordinator ends, and the disk has space again.
    bench.ingest.store.set_full(false);
    bench.restart();
    let rows = bench.ingest.store.streams().of_run(bench.run).unwrap();
    for stream in &stored {
        let row = rows.iter().find(|row| row.name == *stream);
        assert!(
            row.is_some_and(|row| row.committed > 0),
            "{stream} was acknowledged"
        );
    }
    let missing: Vec<String> = all
        .iter()
        .filter(|stream| !stored.contains(&name(stream)))
        .cloned()
        .collect();
    deliver(&mut bench, &missing);
    assert_eq!(bench.equal().len(), all.len());
    for stream in &all {
        assert_eq!(bench.whole(stream).unwrap(), stream.as_bytes());
    }
}
