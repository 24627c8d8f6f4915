//! A program at a terminal of its own (a pty), as a person has it: what it shows is waited for, what is typed goes to it. Knows
//! nothing of the programs.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    process::{Child, Command, ExitStatus},
    ptr,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use crate::eventually;

/// How long a program may take to show something: these tests run beside others.
const PATIENCE_S: u64 = 60;

/// A program at a terminal; killed when dropped.
pub struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    read: usize,
    child: Child,
}

impl Terminal {
    /// Starts `command` with a terminal of 80 columns as its only one: standard input, both outputs, and where its signals come from.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(command: &Command) -> Self {
        let (near, far) = pty().expect("a terminal");
        // util-linux: what it starts has the terminal to itself.
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
        let end = || far.try_clone().expect("the terminal's other end");
        own.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        let child = own
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {own:?}: {error}"));
        let keyboard = File::from(near);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (keyboard.try_clone().expect("the terminal"), Arc::clone(&shown));
        thread::spawn(move || {
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
            read: 0,
            child,
        }
    }

    /// Everything that was shown so far.
    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until `text` is shown, after what was waited for before.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for(&mut self, text: &str) {
        let from = self.read;
        let at = |shown: String| shown.get(from..).and_then(|new| new.find(text));
        eventually(&format!("`{text}` at the terminal"), PATIENCE_S, || {
            at(self.shown()).is_some()
        });
        self.read = from + at(self.shown()).unwrap_or_default() + text.len();
    }

    /// Types: `\n` is Enter, `\x03` Ctrl-C.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal");
    }

    /// Whether the terminal shows what is typed, line by line, and takes Ctrl-C itself: as a shell leaves it to a program.
    ///
    /// # Panics
    /// When the terminal is gone.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let mut settings = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the pointer is to a `termios` that the call fills in when it says 0.
        let done = unsafe { libc::tcgetattr(self.keyboard.as_raw_fd(), settings.as_mut_ptr()) };
        assert_eq!(done, 0, "the terminal's settings");
        // SAFETY: filled in, as was just looked at.
        let flags = unsafe { settings.assume_init() }.c_lflag;
        let usual = libc::ECHO | libc::ICANON | libc::ISIG;
        flags & usual == usual
    }

    /// Waits until a secret is asked for: until what is typed is not shown any more.
    ///
    /// # Panics
    /// When that does not come.
    pub fn wait_until_hidden(&self) {
        eventually("a secret to be asked for", PATIENCE_S, || !self.is_in_order());
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// When it does not come.
    pub fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program to end", PATIENCE_S, || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

/// A new terminal of 80 columns: where its user is, and where its programs are.
fn pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut near, mut far) = (-1, -1);
    // SAFETY: two places for descriptors and a size that the call only reads; no name and no settings are wanted.
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
    // SAFETY: both were just opened, and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(near), OwnedFd::from_raw_fd(far)) })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
