//! Tests of the page of a report in a real browser. It runs no script and fetches nothing, hostile names stay text, and it fits a
//! laptop's window and a telephone's.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]
#![expect(clippy::panic, reason = "under CI the browser is there")]

use std::{fs, path::Path, process::Command};

use regatta_catalogue::{known, round::Round};
use regatta_submission_check::{
    check::{as_official, format, strict},
    tree::Tree,
};
use regatta_test_requirements::program;
use regatta_test_support::{published_results, synthetic_endpoints, synthetic_submission};
use serde_json::Value;

/// Evaluates a page that is `width` pixels wide; records a skipped test without a browser.
fn evaluate(page: &str, width: u32) -> Option<Value> {
    program("chromium", "chromium")?;
    let desk = tempfile::tempdir().unwrap();
    fs::write(desk.path().join("page.html"), page).unwrap();
    let asking = format!(
        "<!doctype html><body style='margin:0'><iframe src=page.html style='width:{width}px;height:800px;border:0'></iframe>\
         <pre id=answer></pre><script>onload = () => {{ const page = frames[0], all = q => page.document.querySelectorAll(q);\
         document.getElementById('answer').textContent = 'ANSWER' + JSON.stringify({{\
         elements: all('script,img,iframe,link').length, fetched: page.performance.getEntriesByType('resource').length,\
         overflow: page.document.documentElement.scrollWidth - page.innerWidth, rows: all('td').length,\
         open: all('details[open]').length, text: page.document.body.innerText }}) + 'END' }}</script>"
    );
    fs::write(desk.path().join("ask.html"), asking).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--dump-dom",
        ])
        .arg(format!("--window-size={},900", width + 40))
        .arg(format!(
            "--user-data-dir={}",
            desk.path().join("profile").display()
        ))
        .arg(desk.path().join("ask.html"))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let Some((_, answer)) = dom.split_once("<pre id=\"answer\">ANSWER") else {
        panic!(
            "the browser gave no answer: {dom}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let answer = answer.split_once("END").unwrap().0;
    let answer = answer
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    Some(serde_json::from_str(&answer).unwrap())
}

fn assert_is_a_page(answer: &Value) {
    assert_eq!(answer["elements"], 0, "{answer}");
    assert_eq!(answer["fetched"], 0, "{answer}");
    assert!(answer["overflow"].as_i64().unwrap() <= 0, "{answer}");
    assert!(answer["rows"].as_u64().unwrap() > 5, "{answer}");
}

#[test]
fn a_browser_shows_the_page_and_nothing_else() {
    const HOSTILE: &str = "<img src=x onerror=alert(1)>";
    let rounds = known::rounds().unwrap();
    let round = rounds.iter().find(|round| round.name == "v6.0").unwrap();
    let root = tempfile::tempdir().unwrap();
    synthetic_submission::category(root.path(), round, "resnet", "edge");
    let scenarios = root.path().join("closed/Team/results/board/resnet");
    fs::write(scenarios.join("Offline").join(HOSTILE.replace('/', "_")), "x").unwrap();
    fs::remove_file(scenarios.join("SingleStream/user.conf")).unwrap();
    let tree = Tree::scan(root.path()).unwrap();
    let report = strict(&tree, round);
    assert!(!report.passes());
    let page = format::strict_html(&report, &round.name);
    for width in [1280, 400] {
        let Some(answer) = evaluate(&page, width) else {
            return;
        };
        assert_is_a_page(&answer);
        assert!(answer["open"].as_u64().unwrap() > 0, "errors are open: {answer}");
        let text = answer["text"].as_str().unwrap();
        for expected in ["does not pass", "user.conf", HOSTILE, "MultiStream", "99.9 %"] {
            assert!(text.contains(expected), "no {expected} in {text}");
        }
    }
    let official = as_official(&tree, round, None).unwrap();
    let answer = evaluate(&format::official_html(&official, &round.name), 1280).unwrap();
    assert!(answer["text"].as_str().unwrap().contains("rejected"), "{answer}");
}

#[test]
fn a_sound_submission_has_nothing_red_on_its_page() {
    type Writer = fn(&Path, &Round);
    let rounds = known::rounds().unwrap();
    let writers: [(&str, Writer); 2] = [
        ("v5.1", synthetic_submission::write),
        ("v6.1", synthetic_endpoints::write),
    ];
    for (name, write) in writers {
        let round = rounds.iter().find(|round| round.name == name).unwrap();
        let root = tempfile::tempdir().unwrap();
        write(root.path(), round);
        let report = strict(&Tree::scan(root.path()).unwrap(), round);
        let page = format::strict_html(&report, &round.name);
        let Some(answer) = evaluate(&page, 1280) else {
            return;
        };
        assert_is_a_page(&answer);
        let text = answer["text"].as_str().unwrap();
        assert!(text.contains("1 of 1 results pass · no errors"), "{text}");
        assert!(text.contains("There are none."), "{text}");
    }
}

#[test]
fn a_published_submission_fits_the_window() {
    let Some(published) = published_results("v2.1/closed") else {
        return;
    };
    let rounds = known::rounds().unwrap();
    let round = rounds.iter().find(|round| round.name == "v2.1").unwrap();
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(published, root.path().join("closed")).unwrap();
    let report = strict(&Tree::scan(root.path()).unwrap(), round);
    let page = format::strict_html(&report, &round.name);
    for width in [1280, 400] {
        let Some(answer) = evaluate(&page, width) else {
            return;
        };
        assert_is_a_page(&answer);
        let text = answer["text"].as_str().unwrap();
        assert!(text.contains("31 of 31 results pass"), "{text}");
        assert!(
            text.contains("Orin_TRT_MaxQ") && text.contains("Joules"),
            "{text}"
        );
    }
}
