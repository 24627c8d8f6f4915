//! Runs a Python program that examines this machine, with limits on its time and output.

use std::{
    io::{self, Read, Write as _},
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{error::MachineError, link::MAX_ERROR};

/// The interval between checks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum number of bytes to read from each output. A program that prints more gets a write error.
const MAX_OUTPUT: u64 = 1 << 20;
/// The time that a program has to end after SIGTERM. The program that reads a meter then ends PTDaemon, and waits 10 s for it.
const TERM_PATIENCE: Duration = Duration::from_secs(12);
/// The time that it has to end after SIGKILL. A program that waits for a disk may not end.
const KILL_PATIENCE: Duration = Duration::from_secs(1);

/// Runs a program with one line of input, and returns its output.
///
/// # Errors
/// Returns an error when Python does not start, or when the program fails or does not end within `longest`.
pub(super) fn run(
    python: &str,
    program: &str,
    input: &str,
    longest: Duration,
) -> Result<String, MachineError> {
    let refused = |source| MachineError::Python {
        python: python.to_owned(),
        source,
    };
    let mut process = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(refused)?;
    let printed = process.stdout.take().map(read_in_background);
    let errors = process.stderr.take().map(read_in_background);
    if let Some(mut stdin) = process.stdin.take() {
        // A program that does not read its input has failed, which its exit status reports. The line fits into the pipe.
        let _ = writeln!(stdin, "{input}");
    }
    let Some(status) = end_within(&mut process, longest).map_err(refused)? else {
        end(&mut process, TERM_PATIENCE).map_err(refused)?;
        return Err(MachineError::Endless {
            python: python.to_owned(),
            waited: longest,
        });
    };
    match status.success() {
        true => Ok(text_of(printed)),
        false => {
            let text = text_of(errors);
            let mut last = text.lines().last().unwrap_or_default().to_owned();
            last.truncate(last.floor_char_boundary(MAX_ERROR));
            Err(MachineError::Failed {
                python: python.to_owned(),
                last_line: format!("{last} ({status})"),
            })
        }
    }
}

/// Waits until a program has ended. Returns `None` if it is still running after `longest`.
fn end_within(process: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() >= longest {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a program with SIGTERM, and with SIGKILL if it has not ended after `patience`.
fn end(process: &mut Child, patience: Duration) -> io::Result<()> {
    for (signal, patience) in [(Signal::TERM, patience), (Signal::KILL, KILL_PATIENCE)] {
        // The process was not waited for yet, so no other process can have its number.
        kill_process(Pid::from_child(process), signal)?;
        if end_within(process, patience)?.is_some() {
            break;
        }
    }
    Ok(())
}

fn read_in_background(output: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // The part that was read before a pipe broke is the most useful message.
        let _ = output.take(MAX_OUTPUT).read_to_end(&mut bytes);
        bytes
    })
}

/// Returns the output of a program that has ended.
fn text_of(output: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = output.map(|reader| reader.join().unwrap_or_default());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Duration = Duration::from_secs(30);

    #[test]
    fn program_that_does_not_end_is_ended_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let started = directory.path().join("started");
        // As the program that reads a meter starts PTDaemon.
        let program = format!(
            "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\n\
             ptd = subprocess.Popen(['sleep', '600'])\nopen({started:?}, 'w').write(str(ptd.pid))\n\
             try:\n    time.sleep(600)\nfinally:\n    ptd.terminate()\n    ptd.wait()\n"
        );
        let begun = Instant::now();
        let error = run("python3", &program, "", Duration::from_secs(2)).unwrap_err();
        assert_eq!(error.to_string(), "python3 has not ended within 2 s");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        let pid = std::fs::read_to_string(started).unwrap();
        assert!(!std::path::Path::new("/proc").join(pid).exists());
    }

    #[test]
    fn program_that_ignores_a_request_to_end_is_killed() {
        let mut process = Command::new("sh")
            .args(["-c", "trap '' TERM; echo; while :; do sleep 0.1; done"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It ignores the signal once it has printed its first line.
        let mut line = [0];
        process.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        end(&mut process, Duration::from_millis(300)).unwrap();
        assert!(process.try_wait().unwrap().is_some());
    }

    #[test]
    fn output_without_end_is_cut_off_and_the_end_of_a_program_is_reported() {
        let endless = "while True: print('x' * 65536)";
        let error = run("python3", endless, "", LATER).unwrap_err();
        assert!(error.to_string().contains("BrokenPipeError"), "{error}");
        let error = run("python3", "import sys\nsys.exit('no meter')", "", LATER).unwrap_err();
        assert_eq!(error.to_string(), "python3 fails: no meter (exit status: 1)");
        let printed = run("python3", "print(input() + '!')", "ahoy", LATER).unwrap();
        assert_eq!(printed, "ahoy!\n");
    }
}
