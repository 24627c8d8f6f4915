//! Power sessions as JSON documents.

use serde_json::{Value, json};

use regatta_lab_store::PowerSessionRow;
use regatta_types::documents::PowerSessionRecord;

/// Returns a session as `regatta power list` prints it.
pub fn power_session(row: &PowerSessionRow) -> Value {
    json!({
        "session": row.id, "meter": row.meter, "device": row.device, "benchmark": row.benchmark, "scenario": row.scenario,
        "begun": row.begun, "ended": row.ended, "ranging": row.ranging, "testing": row.testing, "verdict": row.verdict,
        "reason": row.reason(), "cause": row.failure.as_ref().map(|failure| failure.cause), "simulated": row.simulated, "obstacles": row.obstacles,
        "step": row.step, "watts": row.watts, "observation": row.observation,
    })
}

/// Returns every session.
pub fn power_sessions(rows: &[PowerSessionRow]) -> Value {
    json!({ "sessions": rows.iter().map(power_session).collect::<Vec<_>>() })
}

/// Returns a session with its record, `session.json`, as `regatta power show` prints it.
pub fn shown_power_session(row: &PowerSessionRow, record: Option<&PowerSessionRecord>) -> Value {
    json!({ "session": power_session(row), "record": record })
}
