//! Hostile texts wherever a store has texts, as devices, logs or other programs could bring them, and the pages that show them.

use std::fs;

use regatta_test_support::recorded_runs::LATENCY;
use serde_json::json;

use crate::{
    Lab,
    filled_store::{FilledStore, PowerSessionTexts, meter_of_session, session_record},
};

/// Encodes a text for a URL.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Texts that devices, logs or users of other programs could bring.
const HOSTILE: [&str; 12] = [
    "<script>window.hostile=1</script>",
    "\"><img src=x onerror=window.hostile=1>",
    "'><svg onload=window.hostile=1>",
    "</title></textarea></script><b>x",
    "javascript:window.hostile=1//",
    "\u{202e}evil\u{2066}\u{200b}\u{feff}",
    "\u{1b}[2J\u{7}\u{0}\u{85}",
    "%c0%ae%ff%00\\xff\\ud800&#0;&#x202e;&lt;b&gt;",
    "a+b&c=d;e|f`$(reboot)",
    "{{x}}${y}<%z%>",
    "]]><!--<!DOCTYPE x>",
    "\r\nSet-Cookie: x=y\r\n\r\n",
];

/// Returns a hostile text of 10 kB.
fn hostile(number: usize) -> String {
    format!("{}{}", HOSTILE[number % HOSTILE.len()], "W".repeat(10_240))
}

/// Puts hostile texts wherever the store has texts, and returns the paths of pages that show them.
///
/// # Panics
/// Panics when the store refuses one.
#[must_use]
pub fn fill(lab: &Lab, filled: &mut FilledStore) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/",
        "/runs",
        "/campaigns",
        "/compare",
        "/history",
        "/power",
        "/submission",
    ]
    .map(str::to_owned)
    .into();
    let device = filled.device();
    paths.push(format!("/device/{device}"));
    for number in 0..HOSTILE.len() {
        let text = hostile(number);
        let run = filled.add_changed(LATENCY * (1.0 + number as f64 / 1e3), |draft, outcome| {
            draft["spec"]["round"] = json!(text);
            draft["spec"]["engine"] =
                json!({ "kind": "tensorrt", "settings": { "batch_size": number % 2 + 1, "gpu_engine": text } });
            draft["user_settings"] = json!({ text.as_str(): text });
            for field in ["contradictions", "not_judged", "warnings"] {
                outcome[field] = json!([text, text]);
            }
            outcome["reasons"] = json!([text, text]);
            outcome["figure"]["name"] = json!(text);
            outcome["valid"] = json!(number != 0);
            if number == 1 {
                outcome["not_a_measurement"] = json!([text]);
                outcome["figure"]["unit"] = json!(text);
            }
        });
        filled
            .store
            .execute("UPDATE runs SET reason = ?1 WHERE id = ?2", [&text, &run])
            .expect("the reason");
        paths.push(format!("/run/{run}"));
        let id = format!("01a1fd91-2a94-7230-9870-0000000000{number:02}");
        let mut record = session_record(&json!({
            "meter": meter_of_session(&text), "machine": text, "round": text, "official_summary": text,
            "official_checks": [{ "name": text, "passed": true }], "findings": [text], "sha256": { text.as_str(): text },
            "obstacles": [text], "directory": text,
        }));
        if number == 0 {
            // The page then shows why the record cannot be read.
            record["verdict"] = json!(text);
        }
        let texts = PowerSessionTexts {
            meter: &text,
            benchmark: &text,
            scenario: &text,
            reason: Some(&text),
            obstacle: &text,
        };
        filled.add_power_session(&id, &texts, &record);
        paths.push(format!("/power/{id}"));
    }
    let text = |number: usize| HOSTILE[number].to_owned();
    filled
        .store
        .execute(
            "UPDATE devices SET name = ?1, agent = ?1, engines = '[]'",
            [&hostile(0)],
        )
        .expect("the name");
    for (number, words) in HOSTILE.iter().enumerate() {
        filled
            .store
            .execute(
                "INSERT INTO device_labels VALUES (?1, ?2)",
                [&device, &format!("x{number}")],
            )
            .expect("a label");
        filled
            .store
            .execute(
                "INSERT INTO campaigns VALUES (?1, ?1, '', 1, 0, 0, 60, NULL, 'paused', '2026-11-22T00:00:00Z', NULL, 0)",
                [words],
            )
            .expect("a campaign");
        paths.push(format!("/campaign/{}", encoded(words)));
        for path in [
            "/compare?a={}&b={}&since={}&floor={}",
            "/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2%2Bset%3A{}%3D",
            "/history?runs={}",
            "/?text={}&label={}",
            "/runs?device={}&benchmark={}",
            "/nothing/{}",
            "/run/{}",
            "/device/{}",
            "/campaign/x{}",
            "/power/{}",
            "/submission/{}",
            "/compare?scenario={}",
        ] {
            paths.push(path.replace("{}", &encoded(words)));
        }
    }
    paths.push("/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2".to_owned());
    filled
        .store
        .execute(
            "INSERT OR REPLACE INTO device_health VALUES (?1, 'quarantined', ?2, '2026-11-22T00:00:00Z', ?2, 3, 1, '2026-11-22T00:00:00Z', ?2, ?2)",
            [&device, &hostile(1)],
        )
        .expect("the health");
    let tree = lab.scratch().join(text(0).replace('/', "_"));
    fs::create_dir_all(&tree).expect("a tree");
    filled
        .store
        .execute("INSERT INTO staged_runs VALUES ('01a1fd91-2a94-7230-9870-463700000001', ?1, '2026-11-22T00:00:00Z')", [tree.to_string_lossy()])
        .expect("a staged run");
    paths
}
