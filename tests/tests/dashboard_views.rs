//! Tests of the computed pages over a filled store: comparisons and histories equal to the commands', power sessions, and hostile
//! texts on every page.

#![expect(clippy::expect_used, reason = "test code")]

use std::fs;

use regatta_test_support::recorded_runs::LATENCY;
use regatta_tests::{
    Broker, Lab,
    browser_client::{PageEvents, get_page},
    filled_store::{FilledStore, PowerSessionTexts, session_record},
    hostile_texts,
    html_check::read_page,
    succeed_output,
};
use serde_json::{Value, json};

/// The id of the power session.
const SESSION: &str = "01a1fd91-2a94-7230-9870-000000000001";

/// A serving lab with its device, and its store.
fn filled_lab() -> (Lab, FilledStore, String) {
    let mut lab = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
    let config = lab.workspace().join("regatta.toml");
    let text = fs::read_to_string(&config).expect("regatta.toml");
    fs::write(&config, format!("{text}dashboard_listen = \"127.0.0.1:0\"\n")).expect("regatta.toml");
    let filled = FilledStore::new(&mut lab);
    let url = lab.page_url();
    (lab, filled, url)
}

/// Returns what a command prints as JSON, with any exit code.
fn printed(lab: &Lab, words: &[&str]) -> Value {
    let output = lab.regatta().args(words).args(["--format", "json"]).output();
    let output = output.expect("regatta runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| unreachable!("{words:?}: {output:?}"))
}

fn read(url: &str, path: &str) -> Value {
    let answer = get_page(url, path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[test]
fn comparisons_and_histories_are_those_of_the_commands() {
    let (lab, mut filled, url) = filled_lab();
    let empty = get_page(&url, "/compare");
    assert!(
        empty.status == 200 && !empty.body.contains("<svg"),
        "{}",
        empty.body
    );
    let none = get_page(&url, "/history");
    assert!(
        none.status == 200 && none.body.contains("no run qualifies"),
        "{}",
        none.body
    );
    assert!(
        !none.body.contains("alarm"),
        "a lab without a history is in order: {}",
        none.body
    );
    a_hot_device_is_marked(&filled, &url);

    filled.add_pairs(9, 0.03);
    let compared = get_page(
        &url,
        "/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2&benchmark=digits&since=2026-01-01",
    );
    let text = read_page(&compared.body).text;
    for part in [
        "worse by 3.3 %",
        "1.033",
        "1.026 to 1.033",
        "A: set:batch_size=1, 9 runs",
        "digits SingleStream",
        "1 worse",
        "regatta compare set:batch_size=1 set:batch_size=2 --benchmark digits --since 2026-01-01",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The form keeps its values, and the plot has the interval of the only row.
    for part in [
        "value=\"set:batch_size=2\"",
        "<option value=\"digits\" selected>",
        "whisker f-worse",
        "smaller is better",
    ] {
        assert!(compared.body.contains(part), "{part}: {}", compared.body);
    }
    assert_eq!(
        compared.body.matches("/run/01a1fd91").count(),
        18,
        "the runs of each pair"
    );
    assert!(compared.body.len() < 40_000, "{}", compared.body.len());
    assert_eq!(
        read(
            &url,
            "/api/v1/comparison?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2"
        ),
        printed(&lab, &["compare", "set:batch_size=1", "set:batch_size=2"])
    );
    let only = get_page(
        &url,
        "/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2&different=1&floor=50",
    )
    .body;
    assert!(only.contains("Nothing is better or worse"), "{only}");

    for (query, words) in [
        ("a=set%3Abatch_size%3D1", "compare needs at least two selections"),
        ("a=x%3Ay&b=last", "`x` is not a kind of selection"),
        ("a=label%3Anone&b=last", "no device has the label `none`"),
        ("a=last&b=last", "there is nothing to compare"),
        ("a=last&b=last&floor=0", "write a percentage from 1 to 99"),
        ("a=last&b=last&since=tomorrow", "write how long ago"),
        ("a=last&b=last&benchmark=nothing", "nothing"),
    ] {
        let refused = get_page(&url, &format!("/compare?{query}"));
        assert!(
            refused.status == 400 && refused.body.contains(words),
            "{query}: {}",
            refused.body
        );
        assert!(refused.body.contains("name=\"a\""), "the form is still there");
        let refused = get_page(&url, &format!("/api/v1/comparison?{query}"));
        assert!(
            refused.status == 400 && refused.body.contains(words),
            "{query}: {}",
            refused.body
        );
    }
    assert_eq!(get_page(&url, "/compare?scenario=Nothing").status, 400);
    let long = format!("/compare?a={}&b=last", "x".repeat(3_000));
    assert!(get_page(&url, &long).body.contains("at most 2000 characters"));

    let first = filled.add(3, LATENCY);
    let second = filled.add(4, LATENCY * 1.5);
    let single = get_page(&url, &format!("/compare?a={first}&b={second}"));
    assert!(
        single.body.contains("A ratio of two single runs says nothing")
            && single.body.contains("one run each is not a comparison"),
        "{}",
        single.body
    );

    histories(&lab, &mut filled, &url);
}

/// The fleet marks a device that is about to slow down, and no other.
fn a_hot_device_is_marked(filled: &FilledStore, url: &str) {
    for (millicelsius, is_marked) in [(84_900, false), (91_000, true)] {
        filled
            .store
            .execute("UPDATE presence SET hottest_millicelsius = ?1", [millicelsius])
            .expect("the store is writable");
        // A reading of the fleet is shared for a second.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let fleet = get_page(url, "/").body;
        assert_eq!(fleet.contains("91.0 °C hot"), is_marked, "{fleet}");
        assert_eq!(fleet.contains("84.9 °C</td>"), !is_marked, "{fleet}");
    }
}

/// The history of 27 runs: the batch changes, and with it the level.
fn histories(lab: &Lab, filled: &mut FilledStore, url: &str) {
    filled
        .store
        .execute("DELETE FROM runs", [])
        .expect("the store is writable");
    for number in 0..27_u32 {
        let is_new = number >= 15;
        let effect = if is_new { 1.05 } else { 1.0 };
        let noise = f64::from(number % 5) * 0.001;
        filled.add(if is_new { 2 } else { 1 }, LATENCY * (effect + noise));
    }
    let page = get_page(url, "/history?scenario=SingleStream");
    let text = read_page(&page.body).text;
    for part in [
        "setting batch_size: 1 → 2",
        "after change 1",
        "change 1",
        "worse +5.0 %",
        "1.052 ms",
        "regatta history --scenario SingleStream",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(page.body.matches("<circle").count(), 27);
    assert_eq!(
        read(url, "/api/v1/histories?benchmark=digits"),
        printed(lab, &["history", "--benchmark", "digits"])
    );
    let refused = get_page(url, "/history?runs=device%3Anobody");
    assert!(
        refused.status == 400 && refused.body.contains("unknown device `nobody`"),
        "{}",
        refused.body
    );
}

#[test]
fn a_power_session_shows_watts_phases_verdicts_and_files() {
    let (lab, filled, url) = filled_lab();
    assert!(get_page(&url, "/power").body.contains("No session yet"));
    let record = session_record(&json!({
        "session": SESSION, "device": filled.device(), "obstacles": ["short: it took 3 min"],
        "sha256": { "run_1/spl.txt": "aa11", "power/missing.json": "bb22" },
        "official_checks": [{ "name": "Check UUID", "passed": true }, { "name": "Check power", "passed": false }],
        "official_summary": "1 of 11 checks passed", "findings": ["Check power: too much"],
    }));
    filled.add_power_session(SESSION, &PowerSessionTexts::rehearsal(), &record);
    let list = get_page(&url, "/power").body;
    assert!(
        list.contains(&format!("href=\"/power/{SESSION}\"")) && list.contains(">rehearsal<"),
        "{list}"
    );
    let page = get_page(&url, &format!("/power/{SESSION}")).body;
    let text = read_page(&page).text;
    for part in [
        "21.000 W over 120.0 s, 2520.0 J",
        "PTDaemon is simulated",
        "1 of 11 checks passed",
        "Check power: too much",
        "testing, while LoadGen ran",
        "2026-11-22 10:05:20 UTC",
        "me@boat",
        "aa11",
        "ranging",
        "20.99 W",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        (
            page.matches("class=\"shade\"").count(),
            page.matches("<svg class=\"plot\"").count()
        ),
        (2, 1)
    );
    assert!(page.len() < 40_000, "{}", page.len());
    let shown = printed(&lab, &["power", "show", SESSION]);
    assert_eq!(read(&url, &format!("/api/v1/power-sessions/{SESSION}")), shown);
    assert_eq!(shown["record"]["machine"], "me@boat");
    assert_eq!(
        read(&url, "/api/v1/power-sessions"),
        printed(&lab, &["power", "list"])
    );
    let words = succeed_output(lab.regatta().args(["power", "show", "last"]));
    assert!(String::from_utf8_lossy(&words.stdout).contains("official checker: 1 of 11 checks passed"));

    let file = |path: &str| get_page(&url, &format!("/power/{SESSION}/file/{path}"));
    let samples = file("run_1/spl.txt");
    assert!(
        samples.status == 200 && samples.body.starts_with("Time,11-22-2026 10:05:00"),
        "{}",
        samples.body
    );
    assert_eq!(
        samples.header("content-disposition"),
        Some("attachment; filename=\"spl.txt\"")
    );
    for path in [
        "power/missing.json",
        "ranging/spl.txt",
        "../session.json",
        "%2e%2e/session.json",
        "run_1/../run_1/spl.txt",
        "/etc/passwd",
    ] {
        assert_eq!(file(path).status, 404, "{path}");
    }
    for path in ["/power/none", "/power/..", "/api/v1/power-sessions/none"] {
        assert_eq!(get_page(&url, path).status, 404, "{path}");
    }
}

#[test]
fn a_foreign_session_record_is_named_with_the_place_of_its_error() {
    let (lab, filled, url) = filled_lab();
    let record = session_record(&json!({ "session": SESSION, "verdict": "splendid" }));
    filled.add_power_session(SESSION, &PowerSessionTexts::rehearsal(), &record);
    let shown = lab
        .regatta()
        .args(["power", "show", SESSION])
        .output()
        .expect("regatta starts");
    let words = String::from_utf8_lossy(&shown.stderr);
    let page = get_page(&url, &format!("/power/{SESSION}"));
    let document = get_page(&url, &format!("/api/v1/power-sessions/{SESSION}"));
    assert_eq!(
        (shown.status.code(), page.status, document.status),
        (Some(3), 200, 500),
        "{words}"
    );
    for text in [&*words, &read_page(&page.body).text, &document.body] {
        for part in ["session.json", "unknown variant `splendid`", "line 1 column"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn hostile_texts_stay_texts_on_every_page() {
    let (lab, mut filled, url) = filled_lab();
    let paths = hostile_texts::fill(&lab, &mut filled);
    let mut shown = 0;
    for path in &paths {
        let page = get_page(&url, path);
        assert!(page.status < 500, "{path}: {}", page.body);
        println!("{path}");
        let read = read_page(&page.body);
        assert!(
            read.longest < 5_000 && read.longest_attribute < 700,
            "{path}: {} {}",
            read.longest,
            read.longest_attribute
        );
        assert!(page.body.len() < 150_000, "{path}: {} bytes", page.body.len());
        shown += usize::from(read.text.contains("<script>window.hostile=1</script>"));
        if ["/", "/runs", "/campaigns"].contains(&path.as_str())
            || path.starts_with("/run/01a1")
            || path.starts_with("/campaign/%")
        {
            let live = match path.as_str() {
                "/" => "/live/fleet".to_owned(),
                path => format!("/live{path}"),
            };
            let data = PageEvents::open(&url, &live).next_data();
            let change: Value = serde_json::from_str(&data).expect("JSON");
            for piece in change["set"].as_array().expect("pieces") {
                let _ = read_page(piece[1].as_str().expect("HTML"));
            }
        }
    }
    assert!(shown > 10, "the texts are on {shown} pages");
    for path in [
        "/metrics",
        "/api/v1/devices",
        "/api/v1/runs",
        "/api/v1/campaigns",
        "/api/v1/power-sessions",
        "/api/v1/histories",
    ] {
        let answer = get_page(&url, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let is_hiding = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}')
        };
        assert!(!answer.body.contains(is_hiding), "{path}");
    }
}
