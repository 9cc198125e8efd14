//! Standard output: its width, its colors, and a reader that may go away.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use terminal_size::{Height, Width, terminal_size_of};

/// Columns of an output that is not a terminal.
const PIPE_WIDTH: usize = 80;
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Columns, 40 to 200.
    pub width: usize,
    /// Lines, if it is a terminal.
    pub height: Option<usize>,
    /// Whether text may have colors.
    pub color: bool,
    /// Whether it is a terminal.
    pub is_live: bool,
}

impl Terminal {
    pub fn of_stdout() -> Self {
        let stdout = io::stdout();
        let is_live = stdout.is_terminal();
        let size = terminal_size_of(&stdout);
        let size = size.map(|(Width(columns), Height(lines))| (columns.into(), lines.into()));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::new(is_live, size, plain)
    }

    fn new(is_live: bool, size: Option<(usize, usize)>, plain: bool) -> Self {
        let size = size.filter(|(columns, _)| is_live && *columns > 0);
        let columns = size.map_or(PIPE_WIDTH, |(columns, _)| columns);
        Self {
            width: columns.clamp(WIDTH_MIN, WIDTH_MAX),
            height: size.map(|(_, lines)| lines),
            color: is_live && !plain,
            is_live,
        }
    }

    /// Replaces what the terminal shows. A text that is taller than the terminal is cut at its end.
    pub fn repaint(&self, text: &str) -> anyhow::Result<()> {
        // Home, the text with each line's rest cleared, then what is below.
        let text = self.fitted(text).replace('\n', "\x1b[K\n");
        print(&format!("\x1b[H{text}\x1b[J"))
    }

    /// The lines that the terminal can show, with one for the cursor.
    fn fitted(&self, text: &str) -> String {
        let lines = text.lines().count();
        match self.height {
            Some(height) if lines >= height => {
                let kept = text.split_inclusive('\n').take(height.saturating_sub(2));
                let hidden = lines - height.saturating_sub(2);
                format!("{}… {hidden} more lines\n", kept.collect::<String>())
            }
            _ => text.to_owned(),
        }
    }
}

pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// The code of a program that found all well, or did not.
pub fn exit_code(is_well: bool) -> ExitCode {
    ExitCode::from(u8::from(!is_well))
}

/// Writes a line to standard error. It may be closed.
pub fn warn(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Whether an error means that the reader of standard output went away: a closed pipe, a closed terminal.
pub fn is_reader_gone(error: &anyhow::Error) -> bool {
    // EIO is what a terminal that hung up returns; it has no stable kind.
    const EIO: i32 = 5;
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|error: &io::Error| {
        error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(EIO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_terminal_within_bounds() {
        let width = |is_live, columns: Option<usize>| {
            let size = columns.map(|columns| (columns, 24));
            Terminal::new(is_live, size, false).width
        };
        assert_eq!(width(true, Some(120)), 120);
        assert_eq!((width(true, Some(10)), width(true, Some(999))), (40, 200));
        assert_eq!((width(true, Some(0)), width(true, None)), (80, 80));
        assert_eq!(width(false, Some(120)), 80);
    }

    #[test]
    fn a_tall_text_is_cut_to_the_terminal() {
        let terminal = Terminal::new(true, Some((80, 4)), false);
        assert_eq!(terminal.fitted("a\nb\nc\n"), "a\nb\nc\n");
        assert_eq!(terminal.fitted("a\nb\nc\nd\n"), "a\nb\n… 2 more lines\n");
    }

    #[test]
    fn only_a_terminal_has_colors_and_only_if_they_are_wanted() {
        assert!(Terminal::new(true, None, false).color);
        assert!(!Terminal::new(true, None, true).color);
        assert!(!Terminal::new(false, None, false).color);
    }

    #[test]
    fn a_closed_pipe_is_recognized_through_its_context() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        let closed = anyhow::Error::from(closed).context("while printing");
        assert!(is_reader_gone(&closed));
        let other = io::Error::from(io::ErrorKind::NotFound);
        assert!(!is_reader_gone(&other.into()));
    }
}
