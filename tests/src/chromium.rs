//! A headless Chromium that a test drives over its remote debugging pipe: pages, their findings and their pictures. It starts no server and
//! knows no page.
//!
//! Messages are JSON with a zero byte behind each; Chromium reads them from descriptor 3 and writes them to descriptor 4.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use regatta_test_requirements::program;

/// The longest wait for an answer or an event, on a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one open page.
pub struct Chromium {
    process: Child,
    input: ChildStdin,
    messages: mpsc::Receiver<Value>,
    /// The events that were received so far.
    events: Vec<Value>,
    session: Option<String>,
    last_id: u64,
    _profile: TempDir,
}

impl Chromium {
    /// Starts the browser with an empty page. `None`, with the reason printed, where there is none; under CI that is a failure.
    ///
    /// # Panics
    /// Panics when it does not answer.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_trusting(None)
    }

    /// Does the same as [`Self::start`], and trusts an authority's certificate as a user's import makes it trusted.
    ///
    /// # Panics
    /// Panics when it does not answer, or the certificate cannot be imported.
    #[must_use]
    pub fn start_trusting(certificate: Option<&Path>) -> Option<Self> {
        program("chromium", "chromium")?;
        let profile = tempfile::tempdir().expect("a directory");
        if let Some(certificate) = certificate
            && !import(certificate, profile.path())
        {
            return None;
        }
        let mut process = Command::new("sh")
            .env("HOME", profile.path())
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
            ])
            .args([
                "--disable-background-networking",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium starts");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let mut output = BufReader::new(output.expect("its output"));
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message);
                if sender.send(parsed.expect("chromium writes JSON")).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            process,
            input: input.expect("its input"),
            messages,
            events: Vec::new(),
            session: None,
            last_id: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attached);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Opens a URL and waits until the page has loaded.
    ///
    /// # Panics
    /// Panics when it does not load.
    pub fn open(&mut self, url: &str) {
        self.events
            .retain(|event| event["method"] != "Page.loadEventFired");
        let answer = self.call("Page.navigate", &json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let message = self.messages.recv_timeout(PATIENCE).expect("the page loads");
            self.events.push(message);
        }
    }

    /// Sets the width of the window in pixels, and whether the user prefers dark colours.
    pub fn resize(&mut self, width: u32, is_dark: bool) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Evaluates JavaScript in the page and returns its value, or the value of the promise that it is.
    ///
    /// # Panics
    /// Panics when it throws.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let expression = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &expression);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// Writes a picture of the whole page as PNG.
    ///
    /// # Panics
    /// Panics when the file cannot be written.
    pub fn picture(&mut self, path: &Path) {
        let answer = self.call(
            "Page.captureScreenshot",
            &json!({ "captureBeyondViewport": true }),
        );
        let data = answer["data"].as_str().expect("a picture");
        let data = BASE64_STANDARD.decode(data).expect("base64");
        std::fs::write(path, data).expect("the picture is written");
    }

    /// Waits until the page that a form or link leads to has loaded, and `script` is true in it.
    ///
    /// # Panics
    /// Panics when it does not become true.
    pub fn wait_for(&mut self, script: &str) {
        let script = format!("document.readyState === 'complete' && ({script})");
        let expression = json!({ "expression": script, "returnByValue": true });
        // A page that is being replaced answers with an error.
        crate::eventually(&script, 30, || {
            let answer = self.try_call("Runtime.evaluate", &expression);
            answer.is_ok_and(|answer| answer["result"]["value"] == true)
        });
    }

    /// Switches JavaScript of pages on or off. The test's own still runs.
    pub fn allow_scripts(&mut self, is_allowed: bool) {
        let params = json!({ "value": !is_allowed });
        self.call("Emulation.setScriptExecutionDisabled", &params);
    }

    /// Presses and releases a key, by its name in the DOM and its text.
    pub fn press(&mut self, key: &str, text: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            _ => 0,
        };
        let mut event = json!({ "type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code });
        if !text.is_empty() {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", &event);
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &event);
    }

    /// Types a text into the element with the focus.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Returns the URLs that pages requested so far.
    #[must_use]
    pub fn requested_urls(&self) -> Vec<String> {
        let requests = self
            .events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = requests.filter_map(|event| event["params"]["request"]["url"].as_str());
        urls.map(str::to_owned).collect()
    }

    /// Returns the exceptions, errors and warnings of the console so far.
    #[must_use]
    pub fn console_findings(&self) -> Vec<String> {
        let is_finding =
            |event: &&Value| match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Runtime.consoleAPICalled") => ["error", "warning", "assert"]
                    .contains(&event["params"]["type"].as_str().unwrap_or_default()),
                Some("Log.entryAdded") => ["error", "warning"]
                    .contains(&event["params"]["entry"]["level"].as_str().unwrap_or_default()),
                _ => false,
            };
        let found = self.events.iter().filter(is_finding);
        found.map(|event| event["params"].to_string()).collect()
    }

    /// Calls a method of the protocol and returns its result.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.try_call(method, params);
        answer.unwrap_or_else(|message| panic!("{method}: {message}"))
    }

    /// Calls a method of the protocol and returns its result, or the message that has its error.
    fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("chromium reads");
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|error| panic!("no answer to {method}: {error}"));
            if message["id"] == self.last_id {
                return match message.get("error") {
                    Some(_) => Err(message),
                    None => Ok(message["result"].clone()),
                };
            }
            self.events.push(message);
        }
    }
}

/// Imports a certificate into the user's database below a home directory. Without the tool it records a skipped test and returns `false`.
fn import(certificate: &Path, home: &Path) -> bool {
    let database = home.join(".pki/nssdb");
    std::fs::create_dir_all(&database).expect("a directory");
    let database = format!("sql:{}", database.display());
    let Some(certutil) = program("certutil", "libnss3-tools") else {
        return false;
    };
    let run = |words: &[&str]| Command::new(&certutil).args(words).output();
    let made = run(&["-N", "-d", &database, "--empty-password"]).expect("certutil runs");
    assert!(made.status.success(), "{made:?}");
    let path = certificate.to_str().expect("a path");
    let imported = run(&["-A", "-d", &database, "-n", "lab", "-t", "C,,", "-i", path]);
    let imported = imported.expect("certutil runs");
    assert!(imported.status.success(), "{imported:?}");
    true
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
