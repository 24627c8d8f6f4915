//! A program at its own terminal (a pty), as a user runs it. Tests wait for its output and type its input. This module does not know the
//! programs.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    process::{Child, Command, ExitStatus},
    ptr,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use crate::eventually;

/// The longest wait for output, because these tests run beside others.
const PATIENCE_S: u64 = 60;

/// A program at a terminal. Dropping it kills the program.
pub struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    read: usize,
    child: Child,
}

impl Terminal {
    /// Starts `command` with its own controlling terminal of 80 columns for standard input and both outputs.
    ///
    /// # Panics
    /// Panics when the command cannot be started.
    #[must_use]
    pub fn start(command: &Command) -> Self {
        let (near, far) = pty().expect("a terminal");
        // setsid (util-linux) makes it the controlling terminal.
        let mut own = Command::new("setsid");
        own.arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => own.env(name, value),
                None => own.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            own.current_dir(directory);
        }
        let end = || far.try_clone().expect("the terminal's other end");
        own.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        let child = own
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {own:?}: {error}"));
        let keyboard = File::from(near);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (keyboard.try_clone().expect("the terminal"), Arc::clone(&shown));
        let reader = thread::spawn(move || {
            let mut piece = [0; 1024];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                let piece = piece.get(..length).unwrap_or_default();
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(piece);
            }
        });
        Self {
            keyboard,
            shown,
            reader: Some(reader),
            read: 0,
            child,
        }
    }

    /// Returns all output so far.
    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Returns all output of a program that has ended.
    #[must_use]
    pub fn shown_at_end(&mut self) -> String {
        // The reader ends when the last descriptor of the programs' end is closed.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.shown()
    }

    /// Waits until `text` appears in the output after the previously awaited text. A space also matches a line break, because long
    /// messages are wrapped.
    ///
    /// # Panics
    /// Panics when it does not appear.
    pub fn wait_for(&mut self, text: &str) {
        let from = self.read;
        let end = |shown: String| end_of(text, shown.get(from..)?);
        eventually(&format!("`{text}` at the terminal"), PATIENCE_S, || {
            end(self.shown()).is_some()
        });
        self.read = from + end(self.shown()).unwrap_or_default();
    }

    /// Types keys: `\n` is Enter, `\x03` is Ctrl-C.
    ///
    /// # Panics
    /// Panics when the terminal is gone.
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal");
    }

    /// Returns whether the terminal echoes input, is in line mode and handles Ctrl-C, as a shell leaves it.
    ///
    /// # Panics
    /// Panics when the terminal is gone.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let mut settings = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the pointer is to a `termios`, which the call fills in when it returns 0.
        let done = unsafe { libc::tcgetattr(self.keyboard.as_raw_fd(), settings.as_mut_ptr()) };
        assert_eq!(done, 0, "the terminal's settings");
        // SAFETY: the call returned 0, so the value is initialized.
        let flags = unsafe { settings.assume_init() }.c_lflag;
        let usual = libc::ECHO | libc::ICANON | libc::ISIG;
        flags & usual == usual
    }

    /// Waits until the program prompts for a secret and turns echo off.
    ///
    /// # Panics
    /// Panics when that does not happen.
    pub fn wait_until_hidden(&self) {
        eventually("a prompt for a secret", PATIENCE_S, || !self.is_in_order());
    }

    /// Returns the program's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// Panics when it does not end.
    pub fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program to end", PATIENCE_S, || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

/// Opens a terminal of 80 columns. Returns the user's end and the programs' end.
fn pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut near, mut far) = (-1, -1);
    // SAFETY: two valid places for descriptors, and a size that the call only reads. Name and settings are null.
    let done = unsafe {
        libc::openpty(
            &raw mut near,
            &raw mut far,
            ptr::null_mut(),
            ptr::null(),
            &raw const size,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just opened and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(near), OwnedFd::from_raw_fd(far)) })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the end of the first place in `shown` that has the words of `text`, with any white space where `text` has a space.
fn end_of(text: &str, shown: &str) -> Option<usize> {
    let mut places = shown.char_indices().filter_map(|(at, _)| shown.get(at..));
    let rest = places.find_map(|place| after(text, place))?;
    Some(shown.len() - rest.len())
}

/// Returns the rest of `shown` after `text` at its beginning.
fn after<'a>(text: &str, shown: &'a str) -> Option<&'a str> {
    text.chars().try_fold(shown, |rest, expected| {
        if expected == ' ' {
            let trimmed = rest.trim_start();
            (trimmed.len() < rest.len()).then_some(trimmed)
        } else {
            rest.strip_prefix(expected)
        }
    })
}
