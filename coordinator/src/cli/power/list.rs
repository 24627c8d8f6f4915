//! `regatta power list`: every session of the workspace, also those that failed.

use serde_json::{Value, json};

use super::super::Context;
use crate::{
    exit::{self, CommandResult},
    store::PowerSessionRow,
    tables,
};

pub(super) fn list(context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let rows = store.power_sessions()?;
    let documents: Vec<_> = rows.iter().map(document).collect();
    context.print(&json!({ "sessions": documents }), || {
        tables::power_sessions(&rows)
    })?;
    Ok(exit::OK)
}

fn document(row: &PowerSessionRow) -> Value {
    json!({
        "session": row.id, "meter": row.meter, "device": row.device, "benchmark": row.benchmark, "scenario": row.scenario,
        "begun": row.begun, "ended": row.ended, "ranging": row.ranging, "testing": row.testing, "verdict": row.verdict,
        "reason": row.reason, "simulated": row.simulated, "obstacles": row.obstacles,
    })
}
