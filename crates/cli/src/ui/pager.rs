//! Standard output, through a pager once it is longer than the screen.
//!
//! ```text
//!            fits on the screen until the end          ┌──► stdout
//!   held ────────────────────────────────────────────┤
//!     │      not a terminal, or --no-pager             └──► (never held: straight to stdout)
//!     │ one row more than the screen has
//!     └──► paged (or stdout, if the pager cannot start)
//!             │ the reader quits
//!             └──► closed: every write says `BrokenPipe`, so that the writer stops early
//! ```
//!
//! Nothing waits for the end of a long output: the pager shows its first page as soon as it is there.
//! A reader who leaves is not an error: commands write with `?` and wrap up with [`Pager::finish`], which
//! turns that one error into success. Dropping a pager waits for it too, so no failure leaves the
//! terminal to two programs at once.

use std::io::{self, BufWriter, Write};
use std::mem;
use std::process::{Child, ChildStdin, Stdio};

use anstream::ColorChoice;
use anstream::adapter::{StripBytes, strip_bytes};

use super::command::{Chosen, Environment, Program};
use super::screen::Screen;
use super::signals::Foreground;
use super::width;

/// Whether long output may go through a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    Allowed,
    /// `--no-pager`, or output for a program.
    Off,
}

/// Standard output of one command.
#[derive(Debug)]
pub(crate) struct Pager {
    page: Page,
    /// Takes colours out, where they are unwanted. It remembers a sequence that spans two writes.
    strip: Option<StripBytes>,
}

impl Pager {
    /// Output to this screen, with the pager that the environment names.
    pub(crate) fn new(
        screen: Screen,
        paging: Paging,
        colours: ColorChoice,
        environment: &impl Environment,
    ) -> Self {
        let state = match (screen, paging, choose(environment)) {
            (Screen::Terminal { columns, rows }, Paging::Allowed, Some(program)) => {
                let less = environment.get("LESS").is_none().then_some(LESS_DEFAULTS);
                State::Held { held: Vec::new(), line_start: 0, used: 0, columns, rows, program, less }
            }
            _ => State::plain(),
        };
        Self { page: Page { state }, strip: (colours == ColorChoice::Never).then(StripBytes::new) }
    }

    /// Shows what is still held, waits for the reader, and turns the outcome of writing into that of
    /// showing: a reader who left is no failure.
    pub(crate) fn finish(mut self, written: io::Result<()>) -> io::Result<()> {
        // Even after a failed write the reader gets to see what came before.
        let shown = self.page.close();
        reader_may_leave(written.and(shown))
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.strip {
            Some(strip) => strip.strip_next(bytes).try_for_each(|visible| self.page.write_all(visible))?,
            None => self.page.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.page.flush()
    }
}

/// A broken pipe as what it is at the end of a command: someone has read enough.
pub(crate) fn reader_may_leave(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Quit if it fits, keep colours, leave the text on the screen, and quit on Ctrl-C.
const LESS_DEFAULTS: &str = "FRXK";

/// The pager, if there is to be one. A variable that makes no sense costs the pager, never the output.
fn choose(environment: &impl Environment) -> Option<Program> {
    match Program::from_variables(&["RETAKE_PAGER", "PAGER"], environment) {
        // The customary way to say "no pager".
        Ok(Some(Chosen::Program(program))) if program.name() == "cat" => None,
        Ok(Some(Chosen::Program(program))) => Some(program),
        Ok(None) => Some(Program::named("less")),
        Ok(Some(Chosen::Nothing)) | Err(_) => None,
    }
}

#[derive(Debug)]
struct Page {
    state: State,
}

#[derive(Debug)]
enum State {
    Held {
        held: Vec<u8>,
        /// Where the line begins that is still being written.
        line_start: usize,
        /// Screen rows of the lines before it.
        used: usize,
        columns: usize,
        rows: usize,
        program: Program,
        less: Option<&'static str>,
    },
    Paged {
        child: Child,
        foreground: Foreground,
        /// Gone once the reader has left.
        input: Option<BufWriter<ChildStdin>>,
    },
    Plain(BufWriter<io::Stdout>),
    Closed,
}

impl State {
    /// Standard output alone writes every line by itself, which is slow for many.
    fn plain() -> Self {
        Self::Plain(BufWriter::new(io::stdout()))
    }
}

impl Page {
    fn close(&mut self) -> io::Result<()> {
        match mem::replace(&mut self.state, State::Closed) {
            State::Held { held, .. } => io::stdout().write_all(&held).and_then(|()| io::stdout().flush()),
            State::Paged { mut child, foreground, input } => {
                let shown = input.map_or(Ok(()), |mut input| input.flush());
                // How a pager exits says something about its reader, nothing about us.
                child.wait()?;
                foreground.end();
                shown
            }
            State::Plain(mut output) => output.flush(),
            State::Closed => Ok(()),
        }
    }

    /// Hands over from holding to showing.
    fn open(&mut self) -> io::Result<()> {
        let State::Held { held, program, less, .. } = mem::replace(&mut self.state, State::plain()) else {
            return Ok(());
        };
        let mut command = program.command();
        command.stdin(Stdio::piped());
        if let Some(options) = less {
            command.env("LESS", options);
        }
        let foreground = Foreground::begin()?;
        // A pager that cannot start is no reason to show nothing: the output then goes to the terminal.
        if let Ok(mut child) = command.spawn() {
            foreground.started(child.id());
            let input = child.stdin.take().map(BufWriter::new);
            self.state = State::Paged { child, foreground, input };
        }
        self.write_all(&held)?;
        self.flush()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Held { held, line_start, used, columns, rows, .. } => {
                held.extend_from_slice(bytes);
                while let Some(length) = held[*line_start..].iter().position(|&byte| byte == b'\n') {
                    *used += line_rows(&held[*line_start..*line_start + length], *columns);
                    *line_start += length + 1;
                    // The shell's next prompt takes a row as well.
                    if *used >= *rows {
                        self.open()?;
                        break;
                    }
                }
                Ok(bytes.len())
            }
            State::Paged { input, .. } => unless_left(input, |open| open.write(bytes)),
            State::Plain(output) => output.write(bytes),
            State::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Paged { input, .. } => unless_left(input, Write::flush),
            State::Plain(output) => output.flush(),
            State::Held { .. } | State::Closed => Ok(()),
        }
    }
}

/// Does something with the pager's input, and closes it for good once the reader has left.
fn unless_left<Done>(
    input: &mut Option<BufWriter<ChildStdin>>,
    act: impl FnOnce(&mut BufWriter<ChildStdin>) -> io::Result<Done>,
) -> io::Result<Done> {
    let Some(open) = input else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let result = act(open);
    if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        *input = None;
    }
    result
}

impl Drop for Page {
    fn drop(&mut self) {
        // Only reached with something open after a failure that is already being reported.
        let _ = self.close();
    }
}

/// The rows that a line takes once the terminal has wrapped it.
fn line_rows(line: &[u8], columns: usize) -> usize {
    let visible = strip_bytes(line).into_vec();
    width::width(&String::from_utf8_lossy(&visible)).div_ceil(columns.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn pager(command: &str, paging: Paging) -> Pager {
        let screen = Screen::Terminal { columns: 20, rows: 5 };
        let environment = |name: &str| (name == "RETAKE_PAGER").then(|| command.to_owned());
        Pager::new(screen, paging, ColorChoice::Never, &environment)
    }

    fn is_held(pager: &Pager) -> bool {
        matches!(pager.page.state, State::Held { .. })
    }

    #[test]
    fn short_output_is_held_and_long_output_is_paged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("shown");
        let mut pager = pager(&format!("sh -c 'cat > \"{}\"'", file.display()), Paging::Allowed);
        let mut lines = String::new();
        for number in 0..200 {
            assert_eq!(is_held(&pager), number < 5, "line {number}");
            writeln!(pager, "\u{1b}[31mline {number}\u{1b}[0m").expect("the pager reads on");
            lines.extend(["line ", &number.to_string(), "\n"]);
        }
        pager.finish(Ok(())).expect("the pager has read everything");
        assert_eq!(fs::read_to_string(file).expect("the pager wrote a file"), lines);
    }

    #[test]
    fn a_reader_who_leaves_stops_the_writer_without_an_error() {
        let mut pager = pager("true", Paging::Allowed);
        let written = (0..1_000_000).try_for_each(|number| writeln!(pager, "line {number}"));
        assert_eq!(written.as_ref().map_err(io::Error::kind), Err(io::ErrorKind::BrokenPipe));
        pager.finish(written).expect("leaving is no failure");
    }

    #[test]
    fn a_pager_that_is_not_there_costs_nothing() {
        let mut pager = pager("retake-no-such-pager", Paging::Allowed);
        for number in 0..5 {
            writeln!(pager, "line {number}").expect("standard output is open");
        }
        assert!(matches!(pager.page.state, State::Plain(_)));
        pager.finish(Ok(())).expect("standard output is open");
    }

    #[test]
    fn other_failures_stay_failures() {
        let pager = pager("true", Paging::Allowed);
        let error = pager.finish(Err(io::ErrorKind::StorageFull.into())).expect_err("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_environment_chooses() {
        for (variables, wanted) in [
            (&[][..], Some("less")),
            (&[("PAGER", "more")], Some("more")),
            (&[("PAGER", "more"), ("RETAKE_PAGER", "most -w")], Some("most")),
            (&[("PAGER", "more"), ("RETAKE_PAGER", "")], None),
            (&[("PAGER", "cat")], None),
            (&[("PAGER", "less '")], None),
        ] {
            let environment = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            };
            let chosen = choose(&environment);
            assert_eq!(chosen.as_ref().map(Program::name), wanted, "{variables:?}");
        }
    }

    #[test]
    fn nothing_is_held_where_there_is_no_pager() {
        assert!(!is_held(&pager("cat", Paging::Allowed)));
        assert!(!is_held(&pager("more", Paging::Off)));
    }

    #[test]
    fn rows_count_what_the_terminal_wraps() {
        for (line, rows) in [
            ("", 1),
            ("ab", 1),
            ("abcdefghij", 1),
            ("abcdefghijk", 2),
            ("\u{1b}[31mab\u{1b}[0m", 1),
            ("日本語日本語", 2),
        ] {
            assert_eq!(line_rows(line.as_bytes(), 10), rows, "{line:?}");
        }
    }
}
