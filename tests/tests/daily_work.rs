//! Tests what a lab does all week, with a real coordinator and a real agent: a campaign with two variants of a setting, whose runs are
//! selected, compared, annotated, exported and imported; logs and accuracies by run; completion of names; errors for programs.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, process::Command};

use regatta_tests::{Broker, Lab, eventually, regatta, succeed_output};
use serde_json::{Value, json};

const PLAN: &str = r#"
schema = 1
name = "week"
[[cells]]
devices = ["all"]
benchmark = "digits"
engine = "tract"
scenario = ["Offline"]
mode = ["AccuracyOnly", "PerformanceOnly"]
duration = "1s"
settings = [
    { name = "small", set = { batch_size = 1 } },
    { name = "large", set = { batch_size = 16 } },
]
"#;

impl Week {
    fn text(&self, words: &[&str]) -> String {
        let output = succeed_output(self.lab.regatta().args(words));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the exit code and the text of a command that is refused.
    fn refusal(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.lab.regatta().args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// Returns the runs that filters select.
    fn runs(&self, filters: &[&str]) -> Vec<Value> {
        let listed = self.lab.json(&[&["runs", "list"], filters].concat());
        listed["runs"].as_array().unwrap().clone()
    }

    /// Returns the values that a shell offers for the last word.
    fn completed(&self, words: &[&str]) -> Vec<String> {
        let mut command = Command::new(regatta());
        command
            .env("REGATTA_COMPLETE", "fish")
            .args(["--", "regatta", "--workspace"]);
        command.arg(self.lab.workspace()).args(words);
        let output = succeed_output(&mut command);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
            .collect()
    }
}

struct Week {
    lab: Lab,
}

fn begin() -> Option<Week> {
    let mut lab = Lab::secure(Broker::Embedded)?;
    lab.start_coordinator();
    lab.enroll_device();
    lab.start_device();
    lab.wait_for_device();
    let week = Week { lab };
    week.text(&["asset", "add", "--benchmark", "digits"]);
    let plan = week.lab.workspace().join("week.toml");
    fs::write(&plan, PLAN).unwrap();
    week.text(&["campaign", "start", plan.to_str().unwrap()]);
    eventually("the campaign to end", 120, || {
        let listed = week.lab.json(&["campaign", "list"]);
        listed["campaigns"][0]["ended"].is_string()
    });
    Some(week)
}

#[test]
fn a_weeks_work() {
    let Some(week) = begin() else { return };
    week.runs_have_their_settings_and_campaign();
    week.sides_are_compared_with_their_figures();
    week.runs_are_annotated_exported_and_imported();
    week.logs_and_accuracies_are_found_by_run();
    week.names_are_completed();
    week.mistakes_are_explained();
}

impl Week {
    fn runs_have_their_settings_and_campaign(&self) {
        assert_eq!(self.runs(&[]).len(), 4);
        for (filters, count) in [
            (&["--campaign", "week"][..], 4),
            (&["--campaign", "week/large"], 2),
            (&["--set", "batch_size=16"], 2),
            (&["--set", "batch_size="], 0),
            (&["--state", "as-is"], 4),
            (&["--state", "MaxP"], 0),
            (&["--campaign", "week/small", "--set", "batch_size=16"], 0),
        ] {
            assert_eq!(self.runs(filters).len(), count, "{filters:?}");
        }
        let run = &self.runs(&["--campaign", "week/large"])[0];
        assert_eq!(run["settings"], json!({ "batch_size": 16 }));
        assert_eq!(
            (&run["campaign"], &run["variant"], &run["requested_state"]),
            (&json!("week"), &json!("large"), &json!("as-is"))
        );
        let table = self.text(&["runs", "list"]);
        assert!(
            table.contains("batch_size=16") && table.contains("week/large"),
            "{table}"
        );
        let csv = self.text(&["runs", "list", "--set", "batch_size=16", "--format", "csv"]);
        assert!(
            csv.lines()
                .skip(1)
                .all(|line| line.contains(",batch_size=16,") && line.contains(",week,")),
            "{csv}"
        );
        let shown = self.text(&["runs", "show", run["run"].as_str().unwrap()]);
        assert!(
            shown.contains("settings   batch_size=16") && shown.contains("campaign   week, cell"),
            "{shown}"
        );
        let (code, errors) = self.refusal(&["runs", "list", "--campaign", "week/medium"]);
        assert!(
            code == Some(2) && errors.contains("it has large, small"),
            "{errors}"
        );
    }

    fn sides_are_compared_with_their_figures(&self) {
        let sides = ["compare", "campaign:week/small", "campaign:week/large"];
        let (code, errors) = self.refusal(&sides);
        assert!(
            code == Some(2) && errors.contains("`--include short` includes short runs"),
            "{errors}"
        );
        let compared = self.lab.json(&[&sides[..], &["--include", "short"]].concat());
        let row = &compared["rows"][0];
        assert!(row["median_a"].as_f64().unwrap() > 0.0 && row["median_b"].as_f64().unwrap() > 0.0);
        assert_eq!(row["better"], "larger");
        assert_eq!(
            compared["differences"],
            json!([{ "name": "setting batch_size", "a": ["1"], "b": ["16"] }])
        );
        let text = self.text(&[&sides[..], &["--include", "short"]].concat());
        assert!(
            text.contains(" samples/s → ") && text.contains("differs: setting batch_size: A 1, B 16"),
            "{text}"
        );
        let (_, errors) = self.refusal(&["compare", "week/small", "week/large"]);
        assert!(
            errors.contains("`campaign:week/small` selects the runs of week/small"),
            "{errors}"
        );
    }

    fn runs_are_annotated_exported_and_imported(&self) {
        self.text(&["runs", "note", "last", "fan unplugged"]);
        assert_eq!(self.lab.show("last")["note"], "fan unplugged");
        assert!(self.text(&["runs", "list"]).contains("“fan unplugged”"));
        assert_eq!(self.text(&["runs", "note", "last"]), "fan unplugged\n");
        self.text(&["runs", "note", "last", "--remove"]);
        assert_eq!(self.lab.show("last")["note"], Value::Null);

        let directory = tempfile::tempdir().unwrap();
        let exported = directory.path().join("exported");
        let path = exported.to_str().unwrap();
        self.text(&["runs", "export", "--campaign", "week/large", "--output", path]);
        let copies: Vec<_> = fs::read_dir(&exported)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(copies.len(), 2);
        let shown = self.text(&["runs", "show", copies[0].to_str().unwrap()]);
        assert!(
            shown.contains("settings   batch_size=16") && shown.contains("complete"),
            "{shown}"
        );

        let (code, errors) = self.refusal(&["runs", "import", path]);
        assert!(
            code == Some(2) && errors.contains("has run") && errors.contains("already"),
            "{errors}"
        );
        let other = directory.path().join("other");
        let other = other.to_str().unwrap();
        let in_other = |words: &[&str]| {
            let mut command = Command::new(regatta());
            command.args(words).args(["--workspace", other]);
            command.output().unwrap()
        };
        assert!(in_other(&["init", "--host", "127.0.0.1"]).status.success());
        assert!(in_other(&["runs", "import", path]).status.success());
        let listed: Value =
            serde_json::from_slice(&in_other(&["runs", "list", "--format", "json"]).stdout).unwrap();
        assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
        // Its devices are not devices of this lab.
        let devices: Value =
            serde_json::from_slice(&in_other(&["device", "list", "--format", "json"]).stdout).unwrap();
        assert_eq!(devices["devices"], json!([]));
        assert!(in_other(&["runs", "verify"]).status.success());
        // A changed copy is not imported.
        let record = copies[0].join("record.json");
        let changed = fs::read_to_string(&record)
            .unwrap()
            .replace("\"written\":", "\"written\": ");
        fs::write(&record, changed).unwrap();
        let refused = in_other(&["runs", "import", copies[0].to_str().unwrap()]);
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(
            errors.contains("is not as its device left it: record.json"),
            "{errors}"
        );
    }

    fn logs_and_accuracies_are_found_by_run(&self) {
        let performance = &self.runs(&["--verdict", "valid"])[0];
        let run = performance["run"].as_str().unwrap();
        assert!(
            self.text(&["runs", "logs", run, "summary"])
                .contains("Result is : VALID")
        );
        assert!(
            self.text(&["runs", "logs", run, "telemetry", "-f"])
                .starts_with("seconds,")
        );
        let (code, errors) = self.refusal(&["runs", "logs", run, "nosuch"]);
        assert!(
            code == Some(2) && errors.contains("it has attempt.json"),
            "{errors}"
        );
        let all = self.lab.json(&["accuracy", "--all"]);
        let found = all["accuracy"].as_array().unwrap();
        assert!(
            found.len() == 2 && found.iter().all(|found| found["run"].is_string()),
            "{all}"
        );
        let one = self.lab.json(&["accuracy", found[0]["run"].as_str().unwrap()]);
        assert_eq!(one["accuracy"][0], found[0]);
        let (code, errors) = self.refusal(&["accuracy", run]);
        assert!(
            code == Some(2) && errors.contains("has no accuracy log"),
            "{errors}"
        );
    }

    fn names_are_completed(&self) {
        let device = self.lab.json(&["device", "list"])["devices"][0]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            self.completed(&["run", "--device", &device[..2]]),
            [device.as_str()]
        );
        assert_eq!(self.completed(&["run", "--benchmark", "resn"]), ["resnet50"]);
        assert_eq!(self.completed(&["run", "--scenario", "Off"]), ["Offline"]);
        assert_eq!(self.completed(&["run", "--set", "batch_s"]), ["batch_size="]);
        assert_eq!(self.completed(&["campaign", "status", "we"]), ["week"]);
        assert_eq!(self.completed(&["run", "--round", "v6.1"]), ["v6.1"]);
        assert_eq!(self.completed(&["runs", "show", "la"]), ["last"]);
        assert_eq!(self.completed(&["compare", "campaign:"]), ["campaign:week"]);
    }

    fn mistakes_are_explained(&self) {
        let (code, errors) = self.refusal(&["runs", "show", "nosuch", "--format", "json"]);
        let document: Value = serde_json::from_str(&errors).unwrap();
        assert_eq!(
            (code, &document["error"]),
            (Some(2), &json!("unknown run `nosuch`"))
        );
        let (code, errors) = self.refusal(&["run", "--benchmrk", "x", "--format", "json"]);
        let document: Value = serde_json::from_str(&errors).unwrap();
        assert!(
            code == Some(2) && document["hint"].as_str().unwrap().contains("--benchmark"),
            "{document}"
        );
        let (code, errors) = self.refusal(&["run", "show", "last"]);
        assert!(
            code == Some(2) && errors.contains("`regatta runs show last`"),
            "{errors}"
        );
        let plan = self.lab.workspace().join("wrong.toml");
        fs::write(&plan, "schema = 1\nname = \"w\"\nsede = 1\n[[cells]]\nbenchmark = \"digits\"\nscenarios = \"Offline\"\nrepeat = \"2\"\n").unwrap();
        let (code, errors) = self.refusal(&["campaign", "plan", plan.to_str().unwrap()]);
        assert_eq!(code, Some(2));
        for part in [
            "3 errors",
            "line 3: unknown field `sede`; did you mean `seed`?",
            "3 | sede = 1",
            "line 6: unknown field `scenarios`; did you mean `scenario`?",
            "line 7: `repeat`: expected an integer, found string",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}
