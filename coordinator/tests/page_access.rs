//! Tests of access to the live page over TLS. Each route is requested without a login, as a reader and as an operator. There are
//! foreign forms, guessed, expired and revoked tokens, hostile bytes and slow clients.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, UdpSocket},
    path::Path,
    time::{Duration, Instant},
};

use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY},
    eventually,
    page_client::{FORM, PageClient, receives},
};

/// The lab's only device.
fn device(coordinator: &Coordinator) -> String {
    let listed = coordinator.json(&["device", "list"]);
    listed["devices"][0]["device"].as_str().unwrap().to_owned()
}

/// Starts a campaign whose cells wait, because the device is offline.
fn start_campaign(coordinator: &Coordinator) {
    let plan = coordinator.path("plan.toml");
    let text = "schema = 1\nname = \"night\"\n[[cells]]\nbenchmark = \"digits\"\nscenario = [\"Offline\"]\nengine = \"null\"\n";
    fs::write(&plan, text).unwrap();
    let started = coordinator.output(&["campaign", "start", plan.to_str().unwrap()]);
    assert!(started.status.success(), "{started:?}");
}

/// A path for a route's pattern.
fn filled(pattern: &str, device: &str) -> String {
    let parts = pattern.split('/').map(|part| match part {
        "{device}" => device,
        "{campaign}" => "night",
        "{name}" if pattern.starts_with("/static") => "regatta.css",
        "{name}" => "night",
        part if part.starts_with('{') => "any",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn every_route_is_for_whom_the_table_says() {
    let coordinator = Coordinator::with_a_login();
    start_campaign(&coordinator);
    let page = coordinator.page();
    assert!(page.origin().starts_with("https://lab.example:"));
    let device = device(&coordinator);
    let (reader, operator) = (
        coordinator.page_token("rita", "reader"),
        coordinator.page_token("olga", "operator"),
    );
    let as_program =
        [("Authorization", &*format!("Bearer {reader}"))].map(|(name, value)| (name, value.to_owned()));
    let as_program = [(as_program[0].0, as_program[0].1.as_str())];
    let (reading, reading_form) = page.log_in(&reader);
    let (operating, operating_form) = page.log_in(&operator);
    let routes = regatta_coordinator::page_routes();
    assert!(routes.len() > 25, "{routes:?}");
    let mut actions = 0;
    for [method, pattern, route_use] in &routes {
        let path = filled(pattern, &device);
        let sent = |headers: &[(&str, &str)], form: &str| {
            let body = if method == "POST" {
                format!("csrf={form}&cause=device")
            } else {
                String::new()
            };
            let origin = page.origin();
            let headers = [&[FORM, ("Origin", &origin)], headers].concat();
            page.send(method, &path, &headers, &body).status
        };
        let without_login = sent(&[], "");
        let as_reader = sent(&[("Cookie", &reading)], &reading_form);
        match (method.as_str(), route_use.as_str()) {
            ("GET", "everybody") => assert_eq!(without_login, 200, "{path}"),
            (_, "everybody") => assert_eq!((without_login, path.as_str()), (401, "/login")),
            _ => assert_eq!(without_login, 401, "{method} {path}"),
        }
        if method == "GET" {
            for status in [
                as_reader,
                sent(&as_program, ""),
                sent(&[("Cookie", &operating)], ""),
            ] {
                assert!([200, 400, 404].contains(&status), "{path}: {status}");
            }
            assert_eq!(page.send("HEAD", &path, &[], "").status, without_login, "{path}");
            // A page refuses a form from every sender.
            let form = page.post(&path, &operating, &format!("csrf={operating_form}"));
            assert!(
                [401, 405].contains(&form.status) || path == "/login",
                "{path}: {form:?}"
            );
        }
        if route_use == "operator" {
            actions += 1;
            assert_eq!(as_reader, 403, "{path}");
            assert_eq!(sent(&as_program, &reading_form), 403, "{path}");
            let done = sent(&[("Cookie", &operating)], &operating_form);
            assert!([303, 409].contains(&done), "{path}: {done}");
            assert_eq!(page.get(&path, &[("Cookie", &operating)]).status, 405, "{path}");
        }
    }
    assert_eq!(actions, 5);
    for path in ["/nothing", "/api/v1/nothing", "/static", "/device"] {
        assert_eq!(page.get(path, &[]).status, 401, "{path}");
        assert_eq!(page.get(path, &as_program).status, 404, "{path}");
    }
    // From other machines it answers only to its own names, and only over TLS.
    let own = UdpSocket::bind("0.0.0.0:0").unwrap();
    if own.connect("192.0.2.1:9").is_ok() {
        let own: IpAddr = own.local_addr().unwrap().ip();
        assert_eq!(page.at(own).get("/metrics", &as_program).status, 200);
    }
    for host in ["evil.example", "192.0.2.1:8886", "lab.example.evil.example"] {
        let request = format!("GET /login HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let mut channel = page.connect();
        channel.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = channel.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    }
}

#[test]
fn a_browser_that_speaks_http_without_tls_gets_a_sentence_with_the_address() {
    let coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    for request in [
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        format!(
            "POST /login HTTP/1.1\r\nHost: lab.example\r\nContent-Length: 20000\r\n\r\n{}",
            "token=x&".repeat(2_500)
        ),
        "HELO lab.example\r\n".to_owned(),
    ] {
        let mut plain = page.socket();
        plain.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        plain.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(body.contains(&format!("open {}/", page.origin())), "{answer}");
        assert!(
            !answer.contains("evil.example") && !answer.contains("Set-Cookie"),
            "{answer}"
        );
    }
    // Bytes that are neither get nothing.
    let mut other = page.socket();
    other.write_all(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    let mut answer = Vec::new();
    let _ = other.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|part| part == b"HTTP"), "{answer:?}");
    assert_eq!(page.get("/login", &[]).status, 200);
}

#[test]
fn a_token_has_its_share_of_live_views_and_its_sessions_end_with_the_coordinator() {
    let mut coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    let [greedy, modest] = ["greta", "maud"].map(|name| coordinator.page_token(name, "reader"));
    let open = |client: &PageClient, token: &str, number: usize| {
        let mut live = client.connect();
        let request = format!(
            "GET /live/fleet?text=a{number} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n",
            client.host
        );
        live.write_all(request.as_bytes()).unwrap();
        assert!(receives(&mut live, "text/event-stream"), "view {number}");
        live
    };
    let mut of_modest = open(&page.from(3), &modest, 0);
    let mut of_greedy: Vec<_> = (1..=100).map(|number| open(&page, &greedy, number)).collect();
    // The oldest views of the greedy token have ended, and nobody else's.
    for live in of_greedy.iter_mut().take(84) {
        assert!(!receives(live, "maintenance"));
    }
    let device = device(&coordinator);
    let drained = coordinator.output(&["device", "drain", &device, "--note", "fan"]);
    assert!(drained.status.success(), "{drained:?}");
    for live in of_greedy.iter_mut().skip(84).chain([&mut of_modest]) {
        assert!(receives(live, "in maintenance"));
    }

    let (cookie, _) = page.log_in(&modest);
    coordinator.kill();
    coordinator.serve();
    let page = coordinator.page();
    assert_eq!(page.get("/", &[("Cookie", &cookie)]).status, 401);
    assert_eq!(page.log_in(&modest).0.len(), cookie.len());
}

#[test]
fn operators_act_in_their_own_names_and_forms_from_elsewhere_change_nothing() {
    let coordinator = Coordinator::with_a_login();
    start_campaign(&coordinator);
    let (page, device) = (coordinator.page(), device(&coordinator));
    let (olga, anna) = (
        coordinator.page_token("olga", "operator"),
        coordinator.page_token("anna", "operator"),
    );
    let (cookie, form) = page.log_in(&olga);
    let (_, other_form) = page.log_in(&anna);
    let (origin, drain) = (page.origin(), format!("/device/{device}/drain"));
    let own = ("Origin", origin.as_str());
    let with = |form: &str| format!("csrf={form}&note=from+elsewhere");
    let session = ("Cookie", cookie.as_str());
    let bearer = format!("Bearer {olga}");
    for (headers, body, status) in [
        (
            vec![session, FORM, ("Origin", "https://evil.example")],
            with(&form),
            403,
        ),
        (vec![session, FORM, ("Origin", "null")], with(&form), 403),
        (vec![session, FORM], with(&form), 403),
        (
            vec![session, FORM, own, ("Sec-Fetch-Site", "cross-site")],
            with(&form),
            403,
        ),
        (
            vec![session, FORM, own, ("Sec-Fetch-Site", "same-site")],
            with(&form),
            403,
        ),
        (vec![session, FORM, own], with(""), 403),
        (vec![session, FORM, own], "note=x".to_owned(), 403),
        (vec![session, FORM, own], with(&other_form), 403),
        (vec![session, FORM, own], format!("csrf={form}&csrf={form}"), 400),
        (vec![session, own], with(&form), 415),
        (
            vec![session, own, ("Content-Type", "text/plain")],
            with(&form),
            415,
        ),
        (vec![("Cookie", "__Host-regatta=x"), FORM, own], with(&form), 401),
        (vec![("Authorization", &bearer), FORM, own], with(&form), 403),
        (vec![session, session, FORM, own], with(&form), 401),
    ] {
        let answer = page.send("POST", &drain, &headers, &body);
        assert_eq!(answer.status, status, "{headers:?} {body}: {}", answer.body);
        assert!(!answer.body.contains(&form) || status != 401, "{}", answer.body);
    }
    assert_eq!(page.get(&format!("{drain}?csrf={form}"), &[session]).status, 405);
    assert_eq!(
        coordinator.json(&["device", "log", &device])["log"]
            .as_array()
            .unwrap()
            .len(),
        0
    );

    let done = page.post(&drain, &cookie, &format!("csrf={form}&note=%3Cb%3Efan%3C%2Fb%3E"));
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some(&*format!("/device/{device}")))
    );
    let shown = page.get(&format!("/device/{device}"), &[session]).body;
    assert!(
        shown.contains("&lt;b&gt;fan&lt;/b&gt;") && shown.contains("olga (live page)"),
        "{shown}"
    );
    // The command line, which only repeats a request without a note, and the page refuse with the same sentence.
    let again = page.post(&drain, &cookie, &format!("csrf={form}"));
    let refused = coordinator.output(&["device", "drain", &device, "--note", "again"]);
    let sentence = String::from_utf8(refused.stderr).unwrap();
    let sentence = sentence
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("regatta: ")
        .to_owned();
    assert_eq!(again.status, 409);
    let escaped = sentence.replace('<', "&lt;").replace('>', "&gt;");
    assert!(again.body.contains(&escaped), "{sentence}: {}", again.body);
    let resumed = page.post(
        &format!("/device/{device}/resume"),
        &cookie,
        &format!("csrf={form}"),
    );
    assert_eq!(resumed.status, 303, "{}", resumed.body);
    let log = coordinator.json(&["device", "log", &device])["log"].clone();
    assert_eq!(
        (&log[0]["change"], &log[0]["by"]),
        (&"drained".into(), &"olga (live page)".into())
    );
    assert_eq!(
        (&log[1]["change"], log.as_array().unwrap().len()),
        (&"resumed".into(), 2)
    );

    let campaign = |action: &str, more: &str| {
        page.post(
            &format!("/campaign/night/{action}"),
            &cookie,
            &format!("csrf={form}{more}"),
        )
        .status
    };
    assert_eq!((campaign("pause", ""), campaign("pause", "")), (303, 409));
    assert_eq!(
        (campaign("resume", ""), campaign("retry", "&cause=device")),
        (303, 409)
    );
    assert_eq!(campaign("retry", "&cause=%3Cscript%3E"), 400);
    let paused = coordinator.output(&["campaign", "pause", "night"]);
    assert!(paused.status.success(), "{paused:?}");
    let log = coordinator.json(&["campaign", "log", "night"])["log"].clone();
    let changes: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["change"].as_str().unwrap())
        .collect();
    assert_eq!(changes, ["paused", "resumed", "paused"]);
    assert_eq!(log[0]["by"], "olga (live page)");
    assert!(!log[2]["by"].as_str().unwrap().contains("live page"));

    assert_eq!(page.post("/logout", &cookie, "csrf=x").status, 403);
    let left = page.post("/logout", &cookie, &format!("csrf={form}"));
    assert_eq!(left.status, 303);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(
        page.get("/", &[session]).status,
        401,
        "the cookie opens nothing any more"
    );
}

/// Whether any file below a directory contains a text.
fn is_in_a_file(directory: &Path, text: &str) -> bool {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => is_in_a_file(&path, text),
        false => fs::read(&path)
            .unwrap_or_default()
            .windows(text.len())
            .any(|part| part == text.as_bytes()),
    })
}

#[test]
fn tokens_expire_and_are_revoked_at_once_and_are_nowhere_on_disk() {
    let coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    let token = coordinator.page_token("rita", "reader");
    let refused = coordinator.output(&["dashboard", "token", "add", "rita"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let short = ["dashboard", "token", "add", "gus", "--lifetime", "2s"];
    let short = coordinator.json(&short)["token"].as_str().unwrap().to_owned();
    let bearer = |token: &str| {
        page.get("/metrics", &[("Authorization", &format!("Bearer {token}"))])
            .status
    };
    assert_eq!((bearer(&token), bearer(&short)), (200, 200));
    let answer = page.post("/login", "", &format!("token={token}&next=//evil.example/"));
    assert_eq!(answer.header("location"), Some("/"));
    let cookie = answer.header("set-cookie").unwrap();
    for part in [
        "__Host-regatta=",
        "; Secure",
        "; HttpOnly",
        "; SameSite=Strict",
        "; Path=/",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let (cookie, _) = page.log_in(&token);
    let mut live = page.connect();
    let request = format!(
        "GET /live/fleet HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n",
        page.host
    );
    live.write_all(request.as_bytes()).unwrap();
    let mut part = [0; 64];
    assert!(live.read(&mut part).unwrap() > 0);
    eventually("the end of the short token", 30, || {
        (bearer(&short) == 401).then_some(())
    });

    let listed = coordinator.json(&["dashboard", "token", "list"])["tokens"].clone();
    assert_eq!(
        (&listed[0]["state"], &listed[1]["state"]),
        (&"valid".into(), &"expired".into())
    );
    assert!(
        listed[0]["last_used"].as_str().unwrap().ends_with(":00:00Z"),
        "{listed}"
    );
    let revoked = Instant::now();
    let _ = coordinator.json(&["dashboard", "token", "revoke", "rita"]);
    // The stream ends by itself, and everything else is refused.
    let mut rest = Vec::new();
    let _ = live.read_to_end(&mut rest);
    assert!(
        revoked.elapsed() < Duration::from_secs(8),
        "{:?}",
        revoked.elapsed()
    );
    assert_eq!(bearer(&token), 401);
    assert_eq!(page.get("/", &[("Cookie", &cookie)]).status, 401);
    assert_eq!(page.post("/login", "", &format!("token={token}")).status, 401);
    let secret = token.trim_start_matches("regatta_page_");
    assert!(
        !is_in_a_file(&coordinator.path(""), secret),
        "a file has the token"
    );
    let id = cookie.split_once('=').unwrap().1;
    assert!(!is_in_a_file(&coordinator.path(""), id), "a file has the session");
}

/// The page has a form's head before the revocation, and the rest after it.
#[test]
fn an_action_whose_form_arrives_after_the_revocation_changes_nothing() {
    let coordinator = Coordinator::with_a_login();
    let (page, device) = (coordinator.page(), device(&coordinator));
    let token = coordinator.page_token("olga", "operator");
    let (cookie, form) = page.log_in(&token);
    let body = format!("csrf={form}&note=late");
    let (begin, rest) = body.split_at(8);
    let head = format!(
        "POST /device/{device}/drain HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nOrigin: {}\r\nCookie: {cookie}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{begin}",
        page.host,
        page.origin(),
        body.len()
    );
    let mut channel = page.connect();
    channel.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let _ = coordinator.json(&["dashboard", "token", "revoke", "olga"]);
    std::thread::sleep(Duration::from_secs(2));
    channel.write_all(rest.as_bytes()).unwrap();
    let mut answer = [0; 64];
    let read = channel.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let log = coordinator.json(&["device", "log", &device])["log"].clone();
    assert_eq!(log.as_array().unwrap().len(), 0, "{log}");
}

#[test]
fn a_download_in_progress_ends_when_its_token_is_revoked() {
    let mut run = String::new();
    let coordinator = Coordinator::with_a_login_after(|coordinator, device| {
        run = coordinator.request_run("PerformanceOnly");
        device.play(Faults::default(), &mut Dice::new(1));
        coordinator.record(&run);
    });
    let file = coordinator.path(&format!("runs/{run}/files/{SUMMARY}"));
    let file = fs::File::options().write(true).open(file).unwrap();
    // It has no blocks on the disk.
    file.set_len(8 << 30).unwrap();
    let page = coordinator.page();
    let token = coordinator.page_token("rita", "reader");
    let mut download = page.connect();
    let request = format!(
        "GET /run/{run}/file/{SUMMARY} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        page.host
    );
    download.write_all(request.as_bytes()).unwrap();
    let mut part = vec![0; 1 << 20];
    let mut begin = String::new();
    while begin.len() < part.len() {
        let read = download.read(&mut part).unwrap();
        begin.push_str(std::str::from_utf8(&part[..read]).unwrap());
    }
    assert!(begin.starts_with("HTTP/1.1 200 "), "{}", &begin[..500]);
    let _ = coordinator.json(&["dashboard", "token", "revoke", "rita"]);
    // Within a second, as the documentation says.
    std::thread::sleep(Duration::from_secs(1));
    let mut rest = 0;
    while let Ok(read) = download.read(&mut part)
        && read > 0
    {
        rest += read;
        assert!(rest < 64 << 20, "more than buffers hold");
    }
}

#[test]
fn guessing_slow_and_hostile_clients_do_not_block_others() {
    let coordinator = Coordinator::with_a_login();
    let page = coordinator.page();
    let token = coordinator.page_token("rita", "reader");
    let guess = |token: &str| page.from(9).post("/login", "", &format!("token={token}"));
    let statuses: Vec<u16> = (0..14).map(|_| guess("regatta_page_guess").status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 401).count(),
        10,
        "{statuses:?}"
    );
    let refused = guess("regatta_page_guess");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("5")));
    assert_eq!(
        guess(&token).status,
        303,
        "whoever shares the address has the right token"
    );
    // A program that still sends a revoked token has attempts of its own.
    let gone = coordinator.page_token("gus", "reader");
    let gone = format!("Bearer {gone}");
    let scrape = |last: u8| {
        let answer = page.from(last).get("/metrics", &[("Authorization", &gone)]);
        (answer.status, answer.header("retry-after").map(str::to_owned))
    };
    assert_eq!(scrape(5).0, 200);
    let _ = coordinator.json(&["dashboard", "token", "revoke", "gus"]);
    eventually("the end of the token", 10, || (scrape(5).0 == 401).then_some(()));
    eventually("the end of its attempts", 10, || {
        (scrape(5) == (429, Some("5".to_owned()))).then_some(())
    });
    assert_eq!(scrape(4).0, 429, "from every address");
    let typing = page.from(5).post("/login", "", "token=regatta_page_typo");
    assert_eq!(typing.status, 401, "its address has all attempts");
    let (cookie, _) = page.log_in(&token);

    let silent: Vec<_> = (0..300).map(|_| page.from(8).socket()).collect();
    let begun = Instant::now();
    assert_eq!(page.get("/", &[("Cookie", &cookie)]).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // Connections that send their requests byte by byte have their own limit.
    let mut slow: Vec<_> = (0..100).map(|_| page.from(7).connect()).collect();
    for channel in &mut slow {
        let _ = channel.write_all(b"GET / HTTP/1.1\r\nX: ");
    }
    assert_eq!(page.get("/", &[("Cookie", &cookie)]).status, 200);
    drop((silent, slow));

    let mut dice = Dice::new(20);
    let long = "a".repeat(100_000);
    let many = "X: y\r\n".repeat(2_000);
    let requests = [
        format!("GET / HTTP/1.1\r\nHost: lab.example\r\nCookie: __Host-regatta={long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: lab.example\r\n{many}\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: lab.example\r\n\r\n"),
        format!("POST /login HTTP/1.1\r\nHost: lab.example\r\nOrigin: https://lab.example\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\ntoken={long}"),
        "POST /login HTTP/1.1\r\nHost: lab.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nffffffffffffffffff\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: lab.example\r\nCookie: \u{ff}\u{202e}=;;=;\r\nAuthorization: Bearer \u{ff}\r\nConnection: close\r\n\r\n".to_owned(),
    ];
    for round in 0..40 {
        let bytes = match requests.get(round) {
            Some(request) => request.clone().into_bytes(),
            None => dice.bytes(500),
        };
        let mut channel = page.from(6).connect();
        let _ = channel.write_all(&bytes);
        let mut answer = [0; 64];
        if round < requests.len() {
            let read = channel.read(&mut answer).unwrap_or(0);
            let head = String::from_utf8_lossy(&answer[..read]).into_owned();
            assert!(
                head.is_empty() || head.starts_with("HTTP/1.1 4"),
                "{round}: {head}"
            );
        }
    }
    assert_eq!(page.get("/", &[("Cookie", &cookie)]).status, 200);
    assert!(!coordinator.printed().contains("panicked"));
}

#[test]
fn on_loopback_everybody_reads_and_an_action_needs_its_operators_token() {
    let mut coordinator = Coordinator::with_a_known_device();
    let config = coordinator.path("regatta.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}dashboard_listen = \"127.0.0.1:0\"\n")).unwrap();
    coordinator.serve();
    let (page, device) = (coordinator.page(), device(&coordinator));
    let (reader, operator) = (
        coordinator.page_token("rita", "reader"),
        coordinator.page_token("olga", "operator"),
    );
    let drain = format!("/device/{device}/drain");
    let shown = page.get(&format!("/device/{device}"), &[]).body;
    assert!(
        shown.contains("Take out of service") && shown.contains("Operator's token"),
        "{shown}"
    );
    for (token, status) in [
        ("", 401),
        ("regatta_page_x", 401),
        (&*reader, 403),
        (&*operator, 303),
    ] {
        let answer = page.post(&drain, "", &format!("token={token}&note=fan"));
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    let foreign = [FORM, ("Origin", "http://evil.example")];
    let resume = format!("/device/{device}/resume");
    assert_eq!(
        page.send("POST", &resume, &foreign, &format!("token={operator}"))
            .status,
        403
    );
    assert_eq!(
        page.send("POST", &resume, &[FORM], &format!("token={operator}"))
            .status,
        403
    );
    assert_eq!(page.get("/login", &[]).status, 404);
    assert_eq!(page.post("/logout", "", "").status, 403);
    let log = coordinator.json(&["device", "log", &device])["log"].clone();
    assert_eq!(
        (&log[0]["by"], log.as_array().unwrap().len()),
        (&"olga (live page)".into(), 1)
    );
}
