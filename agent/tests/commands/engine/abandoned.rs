//! Tests of builds that a signal cancels: at TensorRT's next step if it reports steps, otherwise at once. They leave no files.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::Place;

/// A running build, and its output so far.
struct Build {
    child: Child,
    stderr: BufReader<ChildStderr>,
    output_text: String,
}

impl Build {
    fn start(place: &Place, fake: &[(&str, &str)]) -> Self {
        let mut command = place.command(&["build", "--onnx", "digits.onnx"]);
        command
            .envs(fake.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stderr,
            output_text: String::new(),
        }
    }

    /// Waits for a text on standard error, then sends a signal.
    fn signal_after(&mut self, words: &str, signal: Signal) {
        while !self.output_text.contains(words) {
            assert_ne!(
                self.stderr.read_line(&mut self.output_text).unwrap(),
                0,
                "{}",
                self.output_text
            );
        }
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Checks that the build ends with the exit code of a failure and leaves no files.
    fn ends_with_nothing(mut self, place: &Place) {
        self.stderr.read_to_string(&mut self.output_text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(3), "{}", self.output_text);
        let last = self.output_text.lines().next_back().unwrap();
        assert_eq!(
            last, "regatta-agent: the build was cancelled",
            "{}",
            self.output_text
        );
        let left = fs::read_dir(place.scratch.path().join("engines")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"]);
    }
}

#[test]
fn a_cancelled_build_leaves_nothing() {
    let place = Place::fake(&[]);
    place.become_version("libnvinfer.so.10", &["8.5.2", "10.3.0"]);
    let asks = ("FAKE_TRT_VERSION", "100300");
    for signal in [Signal::INT, Signal::TERM] {
        let mut build = Build::start(&place, &[asks, ("FAKE_TRT_STEPS", "100000")]);
        build.signal_after("fake build", signal);
        build.ends_with_nothing(&place);
    }
    // A long step, and a version that does not report steps.
    let lasts = ("FAKE_TRT_SLOW", "600000");
    let mut build = Build::start(&place, &[asks, lasts]);
    build.signal_after("building with", Signal::INT);
    build.signal_after("the build stops at TensorRT's next step", Signal::INT);
    build.ends_with_nothing(&place);
    let mut build = Build::start(&place, &[lasts]);
    build.signal_after("building with TensorRT 8.5.2", Signal::TERM);
    build.ends_with_nothing(&place);
}
