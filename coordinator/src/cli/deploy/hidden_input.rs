//! Reads a line at the terminal without echo, such as a password or a passphrase. It does not know the question.
//!
//! Keys are read one by one, Ctrl-C among them. A program that the terminal ends during such a line leaves a shell without echo.

use std::{
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
};

use rustix::process::{Signal, getpid, kill_process};

/// Reads one line from the terminal at standard input. Ctrl-C ends this process as usual, after the terminal's settings are restored.
///
/// # Errors
/// Returns an error when the terminal cannot be read or set, or closes before the line ends.
pub(super) fn read_line() -> io::Result<String> {
    let hidden_input = HiddenInput::begin()?;
    let typed = Keys::of(&hidden_input.before).read(io::stdin().lock().bytes());
    drop(hidden_input);
    // The line end that was not echoed.
    let _ = writeln!(io::stderr());
    match typed? {
        TypedLine::Line(line) => Ok(line),
        TypedLine::Ended => Err(io::ErrorKind::UnexpectedEof.into()),
        TypedLine::Interrupted => {
            kill_process(getpid(), Signal::INT)?;
            Err(io::ErrorKind::Interrupted.into())
        }
    }
}

/// The settings of the terminal at standard input. `rustix` has these calls only with a feature that rebuilds half the dependency tree.
#[derive(Clone, Copy)]
struct Settings(libc::termios);

impl Settings {
    fn read() -> io::Result<Self> {
        let mut settings = MaybeUninit::uninit();
        // SAFETY: the pointer is to a `termios`, which the call fills in when it returns 0.
        let done = unsafe { libc::tcgetattr(libc::STDIN_FILENO, settings.as_mut_ptr()) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned 0, so the value is initialized.
        Ok(Self(unsafe { settings.assume_init() }))
    }

    /// Applies the settings and discards pending input.
    fn set(&self) -> io::Result<()> {
        // SAFETY: the pointer is to an initialized `termios`, which the call only reads.
        match unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, &raw const self.0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn key(&self, index: usize) -> u8 {
        self.0.c_cc.get(index).copied().unwrap_or_default()
    }
}

/// A terminal without echo. Dropping it restores the previous settings.
struct HiddenInput {
    before: Settings,
}

impl HiddenInput {
    fn begin() -> io::Result<Self> {
        let before = Settings::read()?;
        let mut quiet = before;
        quiet.0.c_lflag &= !(libc::ECHO | libc::ICANON | libc::ISIG | libc::IEXTEN);
        for (index, value) in [(libc::VMIN, 1), (libc::VTIME, 0)] {
            if let Some(place) = quiet.0.c_cc.get_mut(index) {
                *place = value;
            }
        }
        quiet.set()?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = self.before.set();
    }
}

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
enum TypedLine {
    Line(String),
    Interrupted,
    Ended,
}

/// The control keys of the user's terminal.
struct Keys {
    interrupt: u8,
    end: u8,
    erase: u8,
    kill: u8,
}

impl Keys {
    fn of(terminal: &Settings) -> Self {
        Self {
            interrupt: terminal.key(libc::VINTR),
            end: terminal.key(libc::VEOF),
            erase: terminal.key(libc::VERASE),
            kill: terminal.key(libc::VKILL),
        }
    }

    /// Reads keys until one ends the line.
    fn read(&self, keys: impl Iterator<Item = io::Result<u8>>) -> io::Result<TypedLine> {
        let mut line = String::new();
        let mut message = Vec::with_capacity(4);
        for key in keys {
            match key? {
                // A terminal sends 0 for a disabled key.
                0 => {}
                b'\r' | b'\n' => return Ok(TypedLine::Line(line)),
                key if key == self.interrupt => return Ok(TypedLine::Interrupted),
                key if key == self.end && line.is_empty() => return Ok(TypedLine::Ended),
                key if key == self.erase || key == 0x7f || key == 0x08 => drop(line.pop()),
                key if key == self.kill => line.clear(),
                key => {
                    message.push(key);
                    match std::str::from_utf8(&message) {
                        Ok(whole) => {
                            line.push_str(whole);
                            message.clear();
                        }
                        Err(half) if half.error_len().is_none() => {}
                        Err(_) => message.clear(),
                    }
                }
            }
        }
        Ok(TypedLine::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> TypedLine {
        let usual = Keys {
            interrupt: 3,
            end: 4,
            erase: 0x7f,
            kill: 0x15,
        };
        usual.read(keys.iter().map(|&key| Ok(key))).unwrap()
    }

    #[test]
    fn hidden_input_can_be_edited() {
        let line = |text: &str| TypedLine::Line(text.to_owned());
        assert_eq!(typed(b"secret\n"), line("secret"));
        assert_eq!(typed(b"secret\r"), line("secret"));
        assert_eq!(typed(b"wrong\x15right\n"), line("right"));
        assert_eq!(typed("sä\u{7f}e\n".as_bytes()), line("se"));
        assert_eq!(typed(b"\x7f\x08a b\n"), line("a b"));
        assert_eq!(typed(b"a\xff\xfeb\n"), line("ab"), "bytes that are not letters");
        assert_eq!(typed(b"half\x03"), TypedLine::Interrupted);
        assert_eq!(typed(b"\x04"), TypedLine::Ended);
        assert_eq!(typed(b"a\x04b\n"), line("a\x04b"), "only an empty line ends so");
        assert_eq!(typed(b"no end"), TypedLine::Ended);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_keys_do_not_panic_in_hidden_input(keys: Vec<u8>) {
            let _ = typed(&keys);
        }
    }
}
