//! Tests that readers of the live page cannot keep devices, other readers and the revocation of tokens waiting.

use std::{
    collections::VecDeque,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_tests::{
    Broker, Lab,
    browser_client::PageAnswer,
    certificates, eventually,
    filled_store::FilledStore,
    page_reader::{PageReader, read_answer},
    raw_client::RawClient,
    succeed_output,
};

use crate::{authority, enroll_another, port_of};

/// The time within which a revoked token is refused, according to docs/dashboard.md.
const REVOCATION: Duration = Duration::from_secs(1);
/// What a busy machine may add to a time that is promised.
const SLACK: Duration = Duration::from_secs(3);

/// A lab with a login, and with so many runs that a comparison takes a while.
fn lab_with_many_runs() -> Option<(Lab, String)> {
    let mut lab = Lab::secure(Broker::Embedded)?;
    let config = lab.workspace().join("regatta.toml");
    let text = fs::read_to_string(&config).expect("regatta.toml");
    let page = "dashboard_listen = \"127.0.0.1:0\"\ndashboard_login = true\n";
    fs::write(&config, format!("{text}{page}")).expect("regatta.toml");
    let mut filled = FilledStore::new(&mut lab);
    filled.store.execute_batch("BEGIN").expect("a transaction");
    filled.add_pairs(700, 0.01);
    filled.store.execute_batch("COMMIT").expect("a transaction");
    let url = lab.page_url();
    Some((lab, url))
}

/// A reader with a token of this name, at an address of its own.
fn reader(lab: &Lab, url: &str, own: u8, name: &str) -> PageReader {
    let added = lab.json(&["dashboard", "token", "add", name]);
    let token = added["token"].as_str().expect("a token");
    let reader = PageReader::new(url, &lab.workspace(), own, token);
    eventually("the token to be known", 10, || {
        reader.get("/metrics").is_ok_and(|answer| answer.status == 200)
    });
    reader
}

/// A comparison that nobody has requested yet.
fn comparison(number: u32) -> String {
    format!("/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2&floor=1.{number:06}")
}

#[test]
fn abandoned_requests_do_not_delay_other_readers() {
    let Some((lab, url)) = lab_with_many_runs() else {
        return;
    };
    let [flooding, honest, revoked] =
        [(2, "mallory"), (3, "rita"), (4, "ivan")].map(|(own, name)| reader(&lab, &url, own, name));
    let added = lab.json(&["asset", "add", "--benchmark", "digits"]);
    let assets = added["assets"].as_array().expect("assets");
    let model = assets
        .iter()
        .find(|asset| asset["kind"] == "file")
        .expect("a model");
    let model = format!("/v1/file/{}", model["sha256"].as_str().expect("a hash"));
    let (own, _) = certificates::of_device(&lab.state());
    let ca = authority(&lab).certificate;

    let (sent, is_over) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let crowd: Vec<_> = (0..4)
        .map(|_| {
            let (flooding, sent, is_over) = (flooding.clone(), Arc::clone(&sent), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut open = VecDeque::new();
                while !is_over.load(Ordering::Relaxed) {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    open.extend(flooding.request(&comparison(number)).ok());
                    // The oldest connection ends without reading the answer, whose work has begun or waits.
                    if open.len() > 12 {
                        open.pop_front();
                    }
                }
            })
        })
        .collect();
    eventually("many abandoned requests", 120, || {
        sent.load(Ordering::Relaxed) >= 1_000
    });

    let _ = succeed_output(lab.regatta().args(["dashboard", "token", "revoke", "ivan"]));
    let begun = Instant::now();
    let status = |reader: &PageReader, path: &str| reader.get(path).map_or(0, |answer| answer.status);
    eventually("the refusal of the revoked token", 60, || {
        status(&revoked, "/metrics") == 401
    });
    let refused = begun.elapsed();
    let timed = |what: &str, work: &dyn Fn()| {
        let begun = Instant::now();
        work();
        println!("{what}: {:?}", begun.elapsed());
        begun.elapsed()
    };
    let enrolled = timed("enrolled", &|| drop(enroll_another(&lab, "late")));
    let served = timed("served an asset", &|| {
        let answer = RawClient::reach(port_of(&lab, "assets_listen"), &ca, Some(&own))
            .and_then(|mut device| device.get(&model, ""));
        assert!(answer.expect("an answer").starts_with("HTTP/1.1 200"));
    });
    let shown = timed("showed the fleet", &|| assert_eq!(status(&honest, "/"), 200));
    let compared = timed("compared for another reader", &|| {
        assert_eq!(status(&honest, &comparison(999_999)), 200);
    });
    is_over.store(true, Ordering::Relaxed);
    crowd
        .into_iter()
        .for_each(|flooding| flooding.join().expect("it ends"));
    println!(
        "{} abandoned requests; refused after {refused:?}",
        sent.load(Ordering::Relaxed)
    );
    assert!(refused < REVOCATION + SLACK, "{refused:?}");
    assert!(enrolled < Duration::from_secs(10), "{enrolled:?}");
    assert!(served < SLACK, "{served:?}");
    assert!(shown < SLACK, "{shown:?}");
    assert!(compared < Duration::from_secs(20), "{compared:?}");
    // The work of the abandoned requests has ended with them. Their address had too many connections, and may connect again soon.
    let begun = Instant::now();
    eventually("the fleet for the flooding reader", 10, || {
        status(&flooding, "/") == 200
    });
    assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
}

#[test]
fn a_reader_with_many_requests_gets_a_retry_after_and_other_readers_their_turn() {
    let Some((lab, url)) = lab_with_many_runs() else {
        return;
    };
    let [greedy, honest] = [(2, "greta"), (3, "rita")].map(|(own, name)| reader(&lab, &url, own, name));
    let open: Vec<_> = (0..40)
        .map(|number| greedy.request(&comparison(number)).expect("a connection"))
        .collect();
    let begun = Instant::now();
    assert_eq!(honest.get(&comparison(999_999)).expect("an answer").status, 200);
    let waited = begun.elapsed();
    println!("compared after {waited:?}");
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    let answers: Vec<PageAnswer> = open
        .into_iter()
        .map(|open| read_answer(open).expect("an answer"))
        .collect();
    let of = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!(of(200) + of(503), answers.len());
    // On a busy machine the last ones wait too long.
    assert!(of(200) >= 2, "{} were answered", of(200));
    let refused = answers
        .iter()
        .find(|answer| answer.status == 503)
        .expect("a refusal");
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(
        refused.body.contains("too many of your requests"),
        "{}",
        refused.body
    );
}
