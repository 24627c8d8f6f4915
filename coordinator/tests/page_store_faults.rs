//! Tests of the live page while a part of the store cannot be read, because a table was renamed.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use support::{
    coordinator::Coordinator,
    eventually,
    page_client::{Channel, PageClient, receives},
};

/// The time after which unreadable tokens admit nobody (docs/security.md), with an allowance for a busy machine.
const CLOSED: Duration = Duration::from_secs(5 + 7);

fn store(coordinator: &Coordinator) -> rusqlite::Connection {
    let store = rusqlite::Connection::open(coordinator.path("regatta.db")).unwrap();
    store.busy_timeout(Duration::from_secs(20)).unwrap();
    store
}

/// Renames a table of the served workspace.
fn rename(coordinator: &Coordinator, from: &str, to: &str) {
    let statement = format!("ALTER TABLE {from} RENAME TO {to}");
    store(coordinator).execute_batch(&statement).unwrap();
}

/// Opens a live view with a token, and reads the beginning of the response.
fn open_live(page: &PageClient, token: &str, view: &str) -> Box<dyn Channel> {
    let mut live = page.connect();
    let request = format!(
        "GET /live/{view} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n",
        page.host
    );
    live.write_all(request.as_bytes()).unwrap();
    assert!(receives(&mut live, "event: pieces"), "{view}");
    live
}

#[test]
fn tokens_that_cannot_be_read_admit_nobody_until_they_can() {
    let coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    let [revoked, other] = ["ivan", "rita"].map(|name| coordinator.page_token(name, "reader"));
    let answer = |token: &str| page.get("/metrics", &[("Authorization", &format!("Bearer {token}"))]);
    let (cookie, _) = page.log_in(&other);
    let session = || page.get("/", &[("Cookie", &cookie)]);
    assert_eq!((answer(&revoked).status, session().status), (200, 200));
    let mut live = open_live(&page, &revoked, "fleet");

    rename(&coordinator, "page_tokens", "unreadable");
    let revocation = "UPDATE unreadable SET revoked = '2026-01-01T00:00:00Z' WHERE name = 'ivan'";
    store(&coordinator).execute_batch(revocation).unwrap();
    let begun = Instant::now();
    let closed = eventually("the refusal of everybody", 60, || {
        let answer = answer(&revoked);
        (answer.status != 200).then_some(answer)
    });
    assert!(begun.elapsed() < CLOSED, "{:?}", begun.elapsed());
    assert_eq!((closed.status, closed.header("retry-after")), (503, Some("5")));
    let sentence = "the tokens of this page cannot be read, so that it admits nobody";
    assert!(closed.body.contains(sentence), "{}", closed.body);
    let page_of_session = session();
    assert_eq!(page_of_session.status, 503);
    assert!(
        page_of_session.body.contains(sentence),
        "{}",
        page_of_session.body
    );
    assert_eq!(page.post("/login", "", &format!("token={other}")).status, 503);
    assert_eq!(page.get("/login", &[]).status, 200);
    assert!(!receives(&mut live, "the end of the live view"));
    let log = coordinator.printed();
    assert!(log.contains("cannot read the tokens of the live page"), "{log}");

    rename(&coordinator, "unreadable", "page_tokens");
    eventually("the other reader to be admitted", 30, || {
        (answer(&other).status == 200).then_some(())
    });
    assert_eq!((answer(&revoked).status, session().status), (401, 200));
}

#[test]
fn a_live_view_that_cannot_be_read_delays_no_other() {
    let coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    let token = coordinator.page_token("rita", "reader");
    let mut broken = open_live(&page, &token, "campaigns");
    // The order of the views is not specified.
    let orders = [
        "state",
        "health",
        "run",
        "queued",
        "temperature",
        "clock",
        "power",
    ];
    let mut others = orders.map(|order| open_live(&page, &token, &format!("fleet?sort={order}")));
    rename(&coordinator, "campaigns", "unreadable");
    let listed = coordinator.json(&["device", "list"]);
    let device = listed["devices"][0]["device"].as_str().unwrap();
    let _ = coordinator.json(&["device", "drain", device, "--note", "fan"]);
    for live in &mut others {
        assert!(receives(live, "in maintenance"));
    }
    let log = coordinator.printed();
    assert!(log.contains("a view of the live page is not updated"), "{log}");
    rename(&coordinator, "unreadable", "campaigns");
    let plan = coordinator.path("plan.toml");
    let text = "schema = 1\nname = \"night\"\n[[cells]]\nbenchmark = \"digits\"\nscenario = [\"Offline\"]\nengine = \"null\"\n";
    std::fs::write(&plan, text).unwrap();
    let _ = coordinator.json(&["campaign", "start", plan.to_str().unwrap()]);
    assert!(receives(&mut broken, "night"));
}
