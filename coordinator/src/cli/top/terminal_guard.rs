//! The terminal in raw mode with a separate screen, as `ratatui_core` draws on it. Dropping it restores the terminal, also when a panic
//! unwinds.

use std::{
    fmt,
    io::{self, Stdout, Write as _},
};

use ratatui_core::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
    terminal::Terminal,
};
use termion::{
    clear, color, cursor,
    raw::{IntoRawMode as _, RawTerminal},
    screen::{AlternateScreen, IntoAlternateScreen as _},
    style,
};

/// The screen of standard output.
pub(super) type GuardedTerminal = Terminal<TerminalGuard>;

/// The terminal of standard output.
pub(super) struct TerminalGuard {
    output: AlternateScreen<RawTerminal<Stdout>>,
}

/// Opens the screen.
///
/// # Errors
/// Returns an error when standard output is not a terminal.
pub(super) fn open_screen() -> io::Result<GuardedTerminal> {
    let mut output = io::stdout().into_raw_mode()?.into_alternate_screen()?;
    write!(output, "{}{}", cursor::Hide, clear::All)?;
    Terminal::new(TerminalGuard { output })
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // A terminal that is gone needs no cursor.
        let _ = write!(self.output, "{}{}", style::Reset, cursor::Show);
        let _ = self.output.flush();
    }
}

impl Backend for TerminalGuard {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut at = None;
        let mut styled = None;
        for (column, row, cell) in content {
            // Without a move where the last symbol has left the cursor.
            if at != Some((column, row)) {
                write!(self.output, "{}", cursor::Goto(column + 1, row + 1))?;
            }
            if styled != Some((cell.fg, cell.modifier)) {
                write!(self.output, "{}", CellStyle(cell.fg, cell.modifier))?;
                styled = Some((cell.fg, cell.modifier));
            }
            write!(self.output, "{}", cell.symbol())?;
            // A wide symbol takes two columns.
            at = (cell.symbol().len() == 1).then_some((column + 1, row));
        }
        write!(self.output, "{}", style::Reset)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        write!(self.output, "{}", cursor::Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        write!(self.output, "{}", cursor::Show)
    }

    /// Returns any position: the cursor is hidden, so nothing depends on it.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.output, "{}", cursor::Goto(x + 1, y + 1))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        match region {
            ClearType::All => write!(self.output, "{}", clear::All),
            ClearType::AfterCursor => write!(self.output, "{}", clear::AfterCursor),
            ClearType::BeforeCursor => write!(self.output, "{}", clear::BeforeCursor),
            ClearType::CurrentLine => write!(self.output, "{}", clear::CurrentLine),
            ClearType::UntilNewLine => write!(self.output, "{}", clear::UntilNewline),
        }
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = termion::terminal_size()?;
        Ok(Size::new(width, height))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// The escape sequences of a cell's style. `draw` uses no other colours and modifiers.
struct CellStyle(Color, Modifier);

impl fmt::Display for CellStyle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(colour, modifier) = *self;
        write!(out, "{}", style::Reset)?;
        match colour {
            Color::Red => write!(out, "{}", color::Fg(color::Red))?,
            Color::Green => write!(out, "{}", color::Fg(color::Green))?,
            Color::Yellow => write!(out, "{}", color::Fg(color::Yellow))?,
            _ => {}
        }
        if modifier.contains(Modifier::BOLD) {
            write!(out, "{}", style::Bold)?;
        }
        if modifier.contains(Modifier::DIM) {
            write!(out, "{}", style::Faint)?;
        }
        if modifier.contains(Modifier::UNDERLINED) {
            write!(out, "{}", style::Underline)?;
        }
        if modifier.contains(Modifier::REVERSED) {
            write!(out, "{}", style::Invert)?;
        }
        Ok(())
    }
}
