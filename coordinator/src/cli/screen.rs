//! A text that fills the terminal and is drawn again over itself. It decides nothing about the text.

use std::io;

use console::Term;
use regatta_terminal::fit;
use regatta_text::escape_lines;

/// The terminal's screen.
pub(super) struct Screen {
    terminal: Term,
    is_drawn: bool,
}

impl Screen {
    /// Creates the screen of the terminal of standard error, from which nothing is cleared yet.
    pub(super) fn new() -> Self {
        Self {
            terminal: Term::stderr(),
            is_drawn: false,
        }
    }

    /// Draws a text over the last one. A screen that is too low shows its beginning.
    pub(super) fn draw(&mut self, text: &str) {
        let text = fit(&escape_lines(text), &io::stderr()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let most = usize::from(self.terminal.size().0.saturating_sub(1)).max(1);
        // A terminal that is gone is noticed elsewhere.
        let _ = self.draw_lines(lines.get(..most).unwrap_or(&lines));
    }

    fn draw_lines(&mut self, lines: &[&str]) -> io::Result<()> {
        if !self.is_drawn {
            self.terminal.clear_screen()?;
            self.is_drawn = true;
        }
        self.terminal.move_cursor_to(0, 0)?;
        for line in lines {
            self.terminal.clear_line()?;
            self.terminal.write_line(line)?;
        }
        self.terminal.clear_to_end_of_screen()
    }

    /// Clears the drawn lines.
    pub(super) fn clear(&self) {
        if self.is_drawn {
            let _ = self.terminal.clear_screen();
        }
    }
}
