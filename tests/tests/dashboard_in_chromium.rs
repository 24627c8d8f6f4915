//! Tests of every page in a real browser, over a lab of active simulated devices. There is no error in the console, no request to
//! other servers, nothing that does not fit, and no finding of axe-core. Changes appear live. `REGATTA_PICTURES=DIR` keeps a
//! picture of each page.

#![expect(clippy::expect_used, reason = "test code")]

use std::{env, fs, path::PathBuf, process::Command};

use regatta_test_support::{oracle, recorded_runs::LATENCY};
use regatta_tests::{
    Broker, Lab, Process, agent,
    chromium::Chromium,
    eventually,
    filled_store::{FilledStore, PowerSessionTexts, session_record},
    hostile_texts, succeed_output,
};
use serde_json::{Value, json};

const DEVICES: usize = 20;

/// A comparison of the past runs.
const COMPARE: &str = "/compare?a=set%3Abatch_size%3D1&b=set%3Abatch_size%3D2&benchmark=digits";

/// A lab with devices, recorded runs and a campaign.
struct BusyLab {
    lab: Lab,
    url: String,
    run: String,
    _fleet: Process,
}

impl BusyLab {
    fn start() -> Self {
        let mut lab = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
        let config = lab.workspace().join("regatta.toml");
        let text = fs::read_to_string(&config).expect("regatta.toml");
        fs::write(&config, format!("{text}dashboard_listen = \"127.0.0.1:0\"\n")).expect("regatta.toml");
        lab.start_coordinator();
        let count = DEVICES.to_string();
        let broker = format!("mqtt://127.0.0.1:{}", lab.port);
        let mut simulated = Command::new(agent());
        simulated
            .args([
                "simulate",
                "--devices",
                &count,
                "--concurrent-runs",
                "2",
                "--broker",
                &broker,
                "--state-dir",
            ])
            .arg(lab.scratch().join("fleet"));
        let fleet = Process::start(&mut simulated, &lab.scratch().join("fleet.log"));
        let online = || {
            let listed = lab.json(&["device", "list"])["devices"].clone();
            let devices = listed.as_array().cloned().unwrap_or_default();
            devices.iter().filter(|device| device["online"] == true).count()
        };
        eventually("every device to be online", 90, || online() == DEVICES);
        for (device, change) in [("boat-sim-0003", "+edge"), ("boat-sim-0004", "+rack-2")] {
            let _ = succeed_output(lab.regatta().args(["device", "label", device, change]));
        }
        let note = "the fan of this board rattles";
        let _ = succeed_output(
            lab.regatta()
                .args(["device", "drain", "boat-sim-0007", "--note", note]),
        );
        let requested = lab.json(&[
            "run",
            "--device",
            "boat-sim-0001,boat-sim-0002",
            "--benchmark",
            "digits",
            "--engine",
            "sim",
            "--scenario",
            "SingleStream,MultiStream,Server,Offline",
            "--duration",
            "2s",
            "--no-wait",
        ]);
        let run = requested["runs"][0]["run"].as_str().expect("a run").to_owned();
        eventually("the run's record", 120, || lab.show(&run)["recorded"].is_string());
        let tree = lab.scratch().join("tree");
        let words = [
            "run",
            "--device",
            "boat-sim-0005",
            "--benchmark",
            "digits",
            "--engine",
            "sim",
            "--scenario",
            "Offline",
            "--mode",
            "AccuracyOnly,PerformanceOnly",
            "--duration",
            "1s",
            "--round",
            "v6.1",
        ];
        // The exit code is 1, because the answers of this engine are not judged.
        let _ = lab.regatta().args(words).output().expect("regatta runs");
        let words = [
            "submission",
            "stage",
            "--round",
            "v6.1",
            "--rehearsal",
            "--device",
            "boat-sim-0005",
            "--output",
        ];
        let _ = succeed_output(lab.regatta().args(words).arg(&tree));
        let plan = lab.scratch().join("plan.toml");
        let text = "schema = 1\nname = \"nightly\"\n[[cells]]\ndevices = [\"all\"]\nplacement = \"each\"\n\
                    benchmark = \"digits\"\nscenario = [\"Offline\", \"SingleStream\"]\nengine = \"sim\"\n\
                    duration = \"1s\"\nrepeat = 3\n";
        fs::write(&plan, text).expect("a plan");
        let _ = succeed_output(lab.regatta().args(["campaign", "start"]).arg(&plan));
        fail_a_campaign(&lab);
        let url = lab.page_url();
        fill_with_past_runs(&lab);
        Self {
            lab,
            url,
            run,
            _fleet: fleet,
        }
    }
}

/// Starts a campaign with long names on devices of which one is out of service, and waits until its cells have failed.
fn fail_a_campaign(lab: &Lab) {
    let plan = lab.scratch().join("broken.toml");
    let text = "schema = 1\nname = \"broken\"\nlose_device_after = \"1s\"\n[[cells]]\n\
                devices = [\"boat-sim-0007\", \"boat-sim-0008\"]\nplacement = \"each\"\nbenchmark = \"digits\"\n\
                scenario = [\"Offline\", \"SingleStream\", \"MultiStream\", \"Server\"]\nmode = [\"PerformanceOnly\", \"AccuracyOnly\"]\n\
                engine = \"sim\"\nduration = \"100ms\"\n";
    fs::write(&plan, text).expect("a plan");
    let _ = succeed_output(lab.regatta().args(["campaign", "start"]).arg(&plan));
    eventually("the cells to fail", 90, || {
        // The exit code is 1 when cells have failed.
        let words = ["campaign", "status", "broken", "--format", "json"];
        let printed = lab.regatta().args(words).output().expect("regatta runs");
        let status: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
        status["failed"].as_u64() >= Some(8)
    });
}

/// Returns the words in tables that are broken across lines: short ones that are neither a file nor an id, and names of devices at a hyphen.
const BROKEN_WORDS: &str = "(() => {
    const broken = new Set();
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    for (let text; (text = walker.nextNode());) {
        const cell = text.parentElement.closest('th, td');
        if (!cell) continue;
        const isName = cell.dataset.title === 'Device' || cell.matches('.matrix tbody th');
        for (const word of text.data.matchAll(isName ? /\\S+/g : /[^\\s/-]+/g)) {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            const lines = new Set([...range.getClientRects()].map((part) => Math.round(part.top)));
            const token = text.data.slice(0, word.index).match(/\\S*$/)[0] + text.data.slice(word.index).match(/^\\S*/)[0];
            const isFileOrId = !isName && (/[._0-9]/.test(word[0]) || token.includes('/'));
            if (word[0].length <= 20 && !isFileOrId && lines.size > 1) broken.add(word[0]);
        }
    }
    return [...broken];
})()";

/// The id of the power session.
const SESSION: &str = "01a1fd91-2a94-7230-9870-000000000001";

/// Adds runs that can be compared, a history that changes its level, and a rehearsed power session.
fn fill_with_past_runs(lab: &Lab) {
    // A run of full length, which still runs when the test ends.
    let words = [
        "run",
        "--device",
        "boat-sim-0016",
        "--benchmark",
        "digits",
        "--engine",
        "sim",
        "--scenario",
        "SingleStream",
    ];
    let requested = lab.json(&[&words[..], &["--no-wait"]].concat());
    let mut filled = FilledStore::of(lab, requested["runs"][0]["run"].as_str().expect("a run"));
    for (device, pairs, effect) in [
        ("boat-sim-0010", 9, 0.03),
        ("boat-sim-0011", 9, -0.04),
        ("boat-sim-0012", 12, 0.0),
        ("boat-sim-0013", 9, 0.009),
        ("boat-sim-0014", 2, 0.02),
    ] {
        filled.use_device(device);
        filled.add_pairs(pairs, effect);
    }
    filled.use_device("boat-sim-0015");
    for number in 0..36 {
        let effect = if number < 22 { 1.0 } else { 1.06 };
        let noise = f64::from(number % 7) * 0.002;
        filled.add(if number < 22 { 4 } else { 8 }, LATENCY * (effect + noise));
    }
    let record = session_record(&json!({
        "official_summary": "10 of 11 checks passed", "findings": ["Check power: the runs took 3 min"],
        "official_checks": [{ "name": "Check client sources checksum", "passed": true }, { "name": "Check power", "passed": false }],
        "energy": { "watts": 21.0, "seconds": 120.0, "joules": 2520.0, "millijoules_per_query": 25.2, "samples_per_joule": 39.683 },
        "sha256": { "run_1/spl.txt": "5d41402abc4b2a76b9719d911017c592ae2fd4a3b1f1c5e4a0a3d2e1b6d9c8f7" },
    }));
    filled.add_power_session(SESSION, &PowerSessionTexts::rehearsal(), &record);
}

/// Returns what axe-core finds wrong in the open page.
fn violations(browser: &mut Chromium, axe: &str) -> Vec<Value> {
    browser.evaluate(axe);
    let found = browser.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(one => \
         [one.id, one.help, one.nodes.map(node => node.html + ' ' + node.failureSummary).slice(0, 3)]))",
    );
    found.as_array().expect("a list").clone()
}

#[test]
fn every_page_works_in_a_browser_and_for_everybody() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let axe = oracle::axe().map(|path| fs::read_to_string(path).expect("axe-core") + ";0");
    let busy = BusyLab::start();
    let run = format!("/run/{}", busy.run);
    let session = format!("/power/{SESSION}");
    browser.open(&format!("{}/submission", busy.url));
    let tree = browser.evaluate("document.querySelector('a[href^=\"/submission/\"]').getAttribute('href')");
    let tree = tree.as_str().expect("a staged tree").to_owned();
    browser.open(&format!("{}/?text=sim-0007", busy.url));
    let device = browser.evaluate("document.querySelector('a[href^=\"/device/\"]').getAttribute('href')");
    let device = device.as_str().expect("a device").to_owned();
    let pages = [
        ("fleet", "/"),
        ("device", device.as_str()),
        ("runs", "/runs"),
        ("run", run.as_str()),
        ("campaigns", "/campaigns"),
        ("campaign", "/campaign/nightly"),
        ("campaign-broken", "/campaign/broken"),
        ("compare", COMPARE),
        ("compare-empty", "/compare"),
        ("history", "/history?runs=device%3Aboat-sim-0015"),
        ("histories", "/history?benchmark=digits"),
        ("power", "/power"),
        ("session", session.as_str()),
        ("submission", "/submission"),
        ("tree", tree.as_str()),
        ("error", "/nothing"),
    ];
    let pictures = env::var_os("REGATTA_PICTURES").map(PathBuf::from);
    for (name, path) in pages {
        for (width, is_dark) in [(1400, false), (500, false), (390, false), (1400, true)] {
            browser.resize(width, is_dark);
            browser.open(&format!("{}{path}", busy.url));
            if let Some(pictures) = &pictures {
                let dark = if is_dark { "-dark" } else { "" };
                browser.picture(&pictures.join(format!("{name}-{width}{dark}.png")));
            }
            let broken = browser.evaluate(BROKEN_WORDS);
            assert_eq!(broken, json!([]), "{name} at {width}: words on two lines");
            // Folded sections are inspected as well.
            browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true }); 0");
            let overflow = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth");
            assert!(
                overflow.as_i64().is_some_and(|more| more <= 0),
                "{name} at {width}: {overflow} too wide"
            );
            if let Some(axe) = &axe {
                let violations = violations(&mut browser, axe);
                assert!(
                    violations.is_empty(),
                    "{name} at {width}, dark {is_dark}: {violations:#?}"
                );
            }
        }
    }

    let submission = browser
        .evaluate("fetch('/submission').then(page => page.text())")
        .to_string();
    for part in ["the sim engine computes nothing", "set `submitter`", "/run/"] {
        assert!(submission.contains(part), "{part}: {submission}");
    }
    // The rehearsal's page has what the strict check finds.
    let checked = browser
        .evaluate(&format!("fetch('{tree}').then(page => page.text())"))
        .to_string();
    let words = ["submission", "check", "--round", "v6.1", "--format", "json"];
    let printed = busy
        .lab
        .regatta()
        .args(words)
        .arg(busy.lab.scratch().join("tree"))
        .output();
    let printed: Value = serde_json::from_slice(&printed.expect("regatta runs").stdout).expect("JSON");
    let first = printed["findings"][0]["path"]
        .as_str()
        .expect("a finding")
        .to_owned();
    assert!(checked.contains(&first), "{first}: {checked}");

    browser.resize(1400, false);
    browser.open(&format!("{}/campaign/broken", busy.url));
    let campaign = browser
        .evaluate("document.querySelector('main').innerText")
        .to_string();
    for part in ["regatta campaign retry broken --cause ", "boat-sim-0007"] {
        assert!(campaign.contains(part), "{part}: {campaign}");
    }
    let bar = browser.evaluate(
        "[...document.querySelectorAll('svg.progress rect')].map(part => [part.className.baseVal, part.getBoundingClientRect().width > 5])",
    );
    assert!(
        bar.as_array()
            .is_some_and(|parts| parts.contains(&json!(["failed", true]))),
        "{bar}"
    );

    // A change arrives without a reload, and the link with the keyboard's focus keeps it.
    browser.resize(1400, false);
    browser.open(&format!("{}/?text=sim-0009", busy.url));
    browser.evaluate("window.isSame = true; document.querySelector('tbody a').focus(); 0");
    let row = "document.querySelector('tbody').innerText";
    assert!(!browser.evaluate(row).to_string().contains("maintenance"));
    let _ = succeed_output(busy.lab.regatta().args([
        "device",
        "drain",
        "boat-sim-0009",
        "--note",
        "<b>moved</b>",
    ]));
    eventually("the change on the page", 30, || {
        browser.evaluate(row).to_string().contains("<b>moved</b>")
    });
    assert_eq!(
        browser.evaluate("window.isSame && document.activeElement.tagName"),
        "A"
    );
    let status = browser
        .evaluate("document.getElementById('live').innerText")
        .to_string();
    assert!(status.contains("Live"), "{status}");

    let elsewhere: Vec<String> = browser
        .requested_urls()
        .into_iter()
        .filter(|url| !url.starts_with(&busy.url) && url != "about:blank")
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
    // The page that does not exist is the only one whose answer is an error.
    let findings = browser.console_findings().into_iter();
    let findings: Vec<String> = findings.filter(|finding| !finding.contains("/nothing")).collect();
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn no_text_from_outside_runs_in_a_browser() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let mut lab = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
    let config = lab.workspace().join("regatta.toml");
    let text = fs::read_to_string(&config).expect("regatta.toml");
    fs::write(&config, format!("{text}dashboard_listen = \"127.0.0.1:0\"\n")).expect("regatta.toml");
    let mut filled = FilledStore::new(&mut lab);
    let url = lab.page_url();
    for path in hostile_texts::fill(&lab, &mut filled) {
        browser.open(&format!("{url}{path}"));
        let found = browser.evaluate(
            "[typeof window.hostile, document.scripts.length, document.images.length, \
             [...document.querySelectorAll('*')].filter(one => [...one.attributes].some(held => held.name.startsWith('on'))).length]",
        );
        let found = found.as_array().expect("a list").clone();
        assert_eq!(found[0], "undefined", "{path}");
        let numbers: Vec<i64> = found[1..].iter().filter_map(Value::as_i64).collect();
        let [scripts, images, handlers] = numbers[..] else {
            unreachable!("{path}: {found:?}");
        };
        assert!(scripts <= 1 && images == 0 && handlers == 0, "{path}: {found:?}");
    }
    let elsewhere: Vec<String> = browser
        .requested_urls()
        .into_iter()
        .filter(|requested| !requested.starts_with(&url) && requested != "about:blank")
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
    // A page that does not exist, or does not understand its URL, is no finding; a refused script would be one.
    let findings: Vec<String> = browser
        .console_findings()
        .into_iter()
        .filter(|finding| !finding.contains("Failed to load resource"))
        .collect();
    assert_eq!(findings, Vec::<String>::new());
}
