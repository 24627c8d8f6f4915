//! The commands of `docs/resnet50-on-orin.md`, and how a test executes them.

use std::{collections::BTreeSet, fs, path::Path};

use regatta_tests::free_port;
use serde_json::Value;

use super::{
    board::{Board, LOADGEN},
    workstation::Workstation,
};

/// Returns the code blocks of the page.
fn blocks() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/resnet50-on-orin.md");
    let page = fs::read_to_string(page).unwrap();
    let commands = |block: &str| {
        let lines = block.split("```").next().unwrap().lines();
        let lines = lines.map(|line| line.split(" #").next().unwrap_or_default().trim());
        lines.map(str::to_owned).collect()
    };
    page.split("```sh\n").skip(1).map(commands).collect()
}

/// Returns the commands in the page's first block, without their comments.
pub(crate) fn main_commands() -> Vec<String> {
    let commands = blocks().swap_remove(0);
    assert_eq!(commands.len(), 6, "{commands:?}");
    commands
}

/// Returns the page's commands with those that a variant replaces.
pub(crate) fn variant_commands(benchmark: &str) -> Vec<String> {
    let mut blocks = blocks();
    let mut commands = blocks.remove(0);
    let is_variant =
        |block: &Vec<String>| block[0].starts_with(&format!("regatta benchmark prepare {benchmark} "));
    let variant = blocks.into_iter().find(is_variant).unwrap();
    let [prepare, run] = <[String; 2]>::try_from(variant).unwrap();
    assert!(run.contains(benchmark), "{run}");
    (commands[3], commands[4]) = (prepare, run);
    commands
}

/// What a test replaces in the page's commands: the page's words and the test's.
pub(crate) type Substitution = (&'static str, String);

/// Executes commands of the page. Each of these words must occur in them, and those of the board and the ports. `init` gets the workspace as soon as it is
/// there.
pub(crate) fn execute(
    commands: &[String],
    own: &[Substitution],
    board: &Board,
    workstation: &Workstation,
    init: impl Fn(&Path),
) {
    let substitutions = [&usual_substitutions(board)[..], own].concat();
    let mut unused: BTreeSet<&str> = substitutions.iter().map(|(from, _)| *from).collect();
    for command in commands {
        let mut line = command.clone();
        for (from, to) in &substitutions {
            if line.contains(from) {
                line = line.replace(from, to);
                unused.remove(from);
            }
        }
        // A busy machine may fail an audit of the speed.
        let judges = command.contains("submission");
        let input = board.password.as_deref().unwrap_or_default();
        let _ = workstation.ends(&line, input, if judges { &[0, 1] } else { &[0] });
        if command.contains("regatta init") {
            init(&workstation.path("lab"));
        }
    }
    assert!(unused.is_empty(), "not in the page: {unused:?}");
}

fn usual_substitutions(board: &Board) -> [Substitution; 4] {
    let [broker, enrollment, assets] = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
    [
        // Tests run as root, for whom the script installs into /usr/local.
        (
            "sh install.sh",
            "sh install.sh --prefix \"$HOME/.local\"".to_owned(),
        ),
        // Other tests need the usual ports as well.
        (
            "regatta init lab",
            format!(
                "regatta init lab --host 127.0.0.1 --listen {broker} --enroll-listen {enrollment} --assets-listen {assets}"
            ),
        ),
        // The test's board, and answers to the questions about its key and password.
        ("nvidia@192.168.1.20", format!("{} {}", board.login, board.flags)),
        // A run of ten minutes becomes one of a second. The test's board has no clocks that could be set, and the LoadGen of the package
        // registry, which no round accepts.
        (
            " --submission",
            format!(" --submission --duration 1s --state as-is --loadgen official:{LOADGEN}-NA"),
        ),
    ]
}

/// Checks that each result has its accuracy, performance and audits, and that there are no others. They are a rehearsal because of the LoadGen, and the
/// runs are short.
pub(crate) fn results_are_complete(workstation: &Workstation, scenarios: &[&str], audits: &[&str]) {
    let status = workstation.document("regatta submission status");
    let results = status["results"].as_array().unwrap();
    let found = results.iter().map(|result| result["scenario"].as_str().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), scenarios, "{status:#}");
    for result in results {
        for part in ["accuracy", "performance"] {
            assert_eq!(result[part]["state"], "rehearsal", "{result:#}");
        }
        let found = result["audits"].as_object().unwrap().keys();
        assert_eq!(found.collect::<Vec<_>>(), audits, "{result:#}");
        for audit in audits {
            // Whether its speed is that of the submission's run depends on the machine.
            let state = result["audits"][audit]["state"].as_str().unwrap();
            assert!(["rehearsal", "failed"].contains(&state), "{result:#}");
        }
    }
}

/// Returns the measured runs of a scenario, and the log of its engine build.
pub(crate) fn runs_of(workstation: &Workstation, scenario: &str) -> (Vec<Value>, String) {
    let listed = workstation.document("regatta runs list");
    let runs = listed["runs"].as_array().unwrap().iter();
    let own = runs.filter(|run| run["scenario"] == scenario).cloned();
    let (builds, measured): (Vec<Value>, Vec<Value>) = own.partition(|run| run["task"] == "engine-build");
    let build = builds.first().unwrap_or_else(|| panic!("{listed:#}"));
    let directory = workstation.path("lab/runs").join(build["run"].as_str().unwrap());
    let log = fs::read_to_string(directory.join("files/run.log")).unwrap();
    (measured, log)
}
