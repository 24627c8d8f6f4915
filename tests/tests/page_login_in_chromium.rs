//! Tests an operator in Chromium, which trusts only the imported certificate: the login, an action by keyboard, one without
//! JavaScript, and the logout. `REGATTA_PICTURES=DIR` keeps a picture of each page.

#![expect(clippy::expect_used, reason = "test code")]

use std::{env, fs, path::PathBuf};

use regatta_test_support::oracle;
use regatta_tests::{Broker, Lab, chromium::Chromium, eventually, succeed_output};
use serde_json::Value;

/// A secure lab with its device, whose page needs a login.
fn lab_with_a_login() -> Lab {
    let mut lab = Lab::secure(Broker::Embedded).expect("it needs nothing that could be missing");
    let config = lab.workspace().join("regatta.toml");
    let text = fs::read_to_string(&config).expect("regatta.toml");
    let page = "dashboard_listen = \"127.0.0.1:0\"\ndashboard_login = true\n";
    fs::write(&config, format!("{text}{page}")).expect("regatta.toml");
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    lab
}

/// Checks that the open page has no finding of axe-core, and fits.
fn assert_accessible(browser: &mut Chromium, axe: Option<&str>, name: &str) {
    for (width, is_dark) in [(1400, false), (390, false), (1400, true)] {
        browser.resize(width, is_dark);
        let overflow = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        assert!(
            overflow.as_i64().is_some_and(|more| more <= 0),
            "{name} at {width}: {overflow}"
        );
        if let Some(axe) = axe {
            browser.evaluate(axe);
            let found = browser.evaluate(
                "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(one => \
                 [one.id, one.nodes.map(node => node.html + ' ' + node.failureSummary).slice(0, 3)]))",
            );
            assert_eq!(
                found,
                Value::Array(Vec::new()),
                "{name} at {width}, dark {is_dark}"
            );
        }
    }
    if let Some(pictures) = env::var_os("REGATTA_PICTURES").map(PathBuf::from) {
        browser.resize(1400, false);
        browser.picture(&pictures.join(format!("{name}.png")));
    }
}

/// Starts a campaign of one cell while the device is out of service, and waits until the cell has failed.
fn fail_a_campaign(lab: &Lab) {
    let plan = lab.scratch().join("night.toml");
    let text = "schema = 1\nname = \"night\"\nlose_device_after = \"1s\"\n[[cells]]\ndevices = [\"all\"]\n\
                benchmark = \"digits\"\nscenario = [\"Offline\"]\nengine = \"sim\"\nduration = \"100ms\"\n";
    fs::write(&plan, text).expect("a plan");
    let _ = succeed_output(lab.regatta().args(["campaign", "start"]).arg(&plan));
    eventually("the cell to fail", 60, || {
        (lab.judged(&["campaign", "status", "night"])["failed"] == 1).then_some(())
    });
}

#[test]
fn an_operator_logs_in_drains_a_device_and_resumes_it() {
    let lab = lab_with_a_login();
    let url = lab.page_url();
    assert!(url.starts_with("https://"), "{url}");
    let certificate = lab.workspace().join("keys/page-ca.pem");
    let Some(mut browser) = Chromium::start_trusting(Some(&certificate)) else {
        return;
    };
    let axe = oracle::axe().map(|path| fs::read_to_string(path).expect("axe-core") + ";0");
    let token = |name: &str, role: &str| -> String {
        let added = lab.json(&["dashboard", "token", "add", name, "--role", role]);
        added["token"].as_str().expect("a token").to_owned()
    };
    let (reader, operator) = (token("rita", "reader"), token("olga", "operator"));

    // A form's answer may still be loading when the next page is opened.
    let show = |browser: &mut Chromium, path: &str, is_shown: &str| {
        browser.open(&format!("{url}{path}"));
        browser.wait_for(is_shown);
    };
    let has_form =
        "document.getElementById('token') !== null && document.querySelector('[role=alert]') === null";

    // The fleet leads to the login, and the login back.
    show(&mut browser, "/?text=boat", has_form);
    assert_accessible(&mut browser, axe.as_deref(), "login");
    let log_in = |browser: &mut Chromium, token: &str| {
        browser.evaluate("document.getElementById('token').focus(); 0");
        browser.type_text(token);
        browser.press("Enter", "\r");
    };
    log_in(&mut browser, "regatta_page_wrong");
    browser.wait_for("document.querySelector('[role=alert]') !== null");
    show(&mut browser, "/?text=boat", has_form);
    log_in(&mut browser, &reader);
    browser.wait_for("location.search === '?text=boat' && document.querySelector('tbody a') !== null");
    let device = browser.evaluate("document.querySelector('tbody a').getAttribute('href')");
    let device = device.as_str().expect("a device").to_owned();
    show(
        &mut browser,
        &device,
        "document.getElementById('actions') !== null && document.querySelector('.account') !== null",
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('#actions button').length"),
        0
    );
    browser.evaluate("document.querySelector('.account button').click(); 0");
    browser.wait_for("location.pathname === '/login' && document.getElementById('token') !== null");

    // By keyboard alone: Tab goes from the reason to the button.
    log_in(&mut browser, &operator);
    browser.wait_for("document.querySelector('.account') !== null");
    show(
        &mut browser,
        &device,
        "document.getElementById('actions') !== null && document.querySelector('.account') !== null",
    );
    assert_accessible(&mut browser, axe.as_deref(), "device-operator");
    browser.resize(1400, false);
    browser.evaluate("document.querySelector('#actions input[name=note]').focus(); 0");
    browser.type_text("<b>fan</b>");
    browser.press("Tab", "");
    assert_eq!(
        browser.evaluate("document.activeElement.innerText"),
        "Take out of service"
    );
    browser.press("Enter", "\r");
    browser.wait_for("document.getElementById('facts').innerText.includes('maintenance')");
    let shown = browser.evaluate("document.body.innerText").to_string();
    assert!(
        shown.contains("<b>fan</b>") && shown.contains("olga (live page)"),
        "{shown}"
    );
    // A reload repeats nothing.
    browser.evaluate("window.isOld = true; location.reload(); 0");
    browser.wait_for("!window.isOld && document.querySelectorAll('#log tbody tr').length === 1");

    // What the command line changes arrives without a reload.
    browser.evaluate("window.isSame = true; 0");
    let _ = succeed_output(lab.regatta().args(["device", "resume", "boat"]));
    browser.wait_for("window.isSame && document.querySelectorAll('#log tbody tr').length === 2");
    let _ = succeed_output(lab.regatta().args(["device", "drain", "boat"]));
    fail_a_campaign(&lab);

    browser.allow_scripts(false);
    show(
        &mut browser,
        &device,
        "document.getElementById('actions') !== null && document.querySelector('.account') !== null",
    );
    browser.evaluate("document.querySelector('#actions button').focus(); 0");
    browser.press("Enter", "\r");
    browser.wait_for("document.querySelectorAll('#log tbody tr').length === 4");
    let shown = browser
        .evaluate("document.getElementById('facts').innerText")
        .to_string();
    assert!(!shown.contains("maintenance"), "{shown}");
    browser.allow_scripts(true);

    // The device is back, so the cell that no device had taken is tried again and succeeds.
    show(
        &mut browser,
        "/campaign/night",
        "document.querySelector('[aria-label*=\": failed\"]') !== null",
    );
    assert_accessible(&mut browser, axe.as_deref(), "campaign-operator");
    let again = "[...document.querySelectorAll('button')].find(button => button.innerText === 'Try again')";
    browser.evaluate(&format!("{again}.focus(); 0"));
    browser.press("Enter", "\r");
    browser.wait_for("document.querySelector('[aria-label*=\": good\"]') !== null");
    let log = lab.json(&["campaign", "log", "night"]);
    assert_eq!(log["log"][0]["by"], "olga (live page)", "{log:#}");

    let urls = browser.requested_urls();
    let elsewhere: Vec<&String> = urls
        .iter()
        .filter(|one| !one.starts_with(&url) && *one != "about:blank")
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(
        urls.iter()
            .all(|one| !one.contains("regatta_page_") && !one.contains("csrf")),
        "{urls:?}"
    );
    // The login is shown with its status, which the console repeats.
    let findings = browser.console_findings().into_iter();
    let findings: Vec<String> = findings
        .filter(|finding| !finding.contains("status of 401"))
        .collect();
    assert_eq!(findings, Vec::<String>::new());
}
