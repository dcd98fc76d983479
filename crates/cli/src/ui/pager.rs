//! Standard output, through a pager if it is longer than the screen.
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
//! The pager starts as soon as the output exceeds the screen. A closed pager is not an error: commands write with `?`
//! and finish with [`Pager::finish`], which turns a broken pipe into success. Dropping a pager also waits for it, so
//! that two programs never share the terminal.

use std::io::{self, BufWriter, Write};
use std::mem;
use std::process::{Child, ChildStdin, Stdio};

use anstream::ColorChoice;
use anstream::adapter::{StripBytes, strip_bytes};

use super::command::{Environment, Program, ProgramChoice};
use super::screen::Screen;
use super::signals::Foreground;
use super::width;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    Allowed,
    /// `--no-pager`, or output for a program.
    Off,
}

#[derive(Debug)]
pub(crate) struct Pager {
    page: PagerOutput,
    /// Strips colours if they are unwanted. Keeps state across writes, for split sequences.
    strip: Option<StripBytes>,
}

impl Pager {
    /// Output to this screen, with the configured pager.
    pub(crate) fn new(
        screen: Screen,
        paging: Paging,
        colours: ColorChoice,
        environment: &impl Environment,
    ) -> Self {
        let state = match (screen, paging, choose(environment)) {
            (Screen::Terminal { columns, rows }, Paging::Allowed, Some(program)) => {
                let less = environment.get("LESS").is_none().then_some(LESS_DEFAULTS);
                PagerState::Held {
                    buffered: Vec::new(),
                    line_start: 0,
                    used: 0,
                    columns,
                    rows,
                    program,
                    less,
                }
            }
            _ => PagerState::plain(),
        };
        Self { page: PagerOutput { state }, strip: (colours == ColorChoice::Never).then(StripBytes::new) }
    }

    /// Writes the buffered output, waits for the pager, and returns the result. A closed pager is not an error.
    pub(crate) fn finish(mut self, written: io::Result<()>) -> io::Result<()> {
        // After a failed write, the output so far is still shown.
        let shown = self.page.close();
        ignore_closed_pipe(written.and(shown))
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

/// Treats a broken pipe as success.
pub(crate) fn ignore_closed_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Quit if one screen, raw colours, no screen reset, quit on Ctrl-C.
const LESS_DEFAULTS: &str = "FRXK";

/// The configured pager, if any. An invalid value disables the pager, not the output.
fn choose(environment: &impl Environment) -> Option<Program> {
    match Program::from_variables(&["RETAKE_PAGER", "PAGER"], environment) {
        // `cat` conventionally means "no pager".
        Ok(Some(ProgramChoice::Program(program))) if program.name() == "cat" => None,
        Ok(Some(ProgramChoice::Program(program))) => Some(program),
        Ok(None) => Some(Program::named("less")),
        Ok(Some(ProgramChoice::Nothing)) | Err(_) => None,
    }
}

#[derive(Debug)]
struct PagerOutput {
    state: PagerState,
}

#[derive(Debug)]
enum PagerState {
    Held {
        buffered: Vec<u8>,
        /// Start of the unfinished line.
        line_start: usize,
        /// Screen rows of the finished lines.
        used: usize,
        columns: usize,
        rows: usize,
        program: Program,
        less: Option<&'static str>,
    },
    Paged {
        child: Child,
        foreground: Foreground,
        /// `None` once the pager is closed.
        input: Option<BufWriter<ChildStdin>>,
    },
    Plain(BufWriter<io::Stdout>),
    Closed,
}

impl PagerState {
    /// Buffered, because standard output alone flushes every line.
    fn plain() -> Self {
        Self::Plain(BufWriter::new(io::stdout()))
    }
}

impl PagerOutput {
    fn close(&mut self) -> io::Result<()> {
        match mem::replace(&mut self.state, PagerState::Closed) {
            PagerState::Held { buffered, .. } => {
                io::stdout().write_all(&buffered).and_then(|()| io::stdout().flush())
            }
            PagerState::Paged { mut child, foreground, input } => {
                let shown = input.map_or(Ok(()), |mut input| input.flush());
                // The pager's exit status is irrelevant.
                child.wait()?;
                foreground.end();
                shown
            }
            PagerState::Plain(mut output) => output.flush(),
            PagerState::Closed => Ok(()),
        }
    }

    /// Switches from buffering to output.
    fn open(&mut self) -> io::Result<()> {
        let PagerState::Held { buffered, program, less, .. } =
            mem::replace(&mut self.state, PagerState::plain())
        else {
            return Ok(());
        };
        let mut command = program.command();
        command.stdin(Stdio::piped());
        if let Some(options) = less {
            command.env("LESS", options);
        }
        let foreground = Foreground::begin()?;
        // If the pager cannot start, the output goes to the terminal.
        if let Ok(mut child) = command.spawn() {
            foreground.started(child.id());
            let input = child.stdin.take().map(BufWriter::new);
            self.state = PagerState::Paged { child, foreground, input };
        }
        self.write_all(&buffered)?;
        self.flush()
    }
}

impl Write for PagerOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            PagerState::Held { buffered, line_start, used, columns, rows, .. } => {
                buffered.extend_from_slice(bytes);
                while let Some(length) = buffered[*line_start..].iter().position(|&byte| byte == b'\n') {
                    *used += line_rows(&buffered[*line_start..*line_start + length], *columns);
                    *line_start += length + 1;
                    // Leaves one row for the shell's prompt.
                    if *used >= *rows {
                        self.open()?;
                        break;
                    }
                }
                Ok(bytes.len())
            }
            PagerState::Paged { input, .. } => unless_closed(input, |open| open.write(bytes)),
            PagerState::Plain(output) => output.write(bytes),
            PagerState::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            PagerState::Paged { input, .. } => unless_closed(input, Write::flush),
            PagerState::Plain(output) => output.flush(),
            PagerState::Held { .. } | PagerState::Closed => Ok(()),
        }
    }
}

/// Runs an action on the pager's input, and closes it once the reader has quit.
fn unless_closed<Done>(
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

impl Drop for PagerOutput {
    fn drop(&mut self) {
        // Only reached after a failure that is already being reported.
        let _ = self.close();
    }
}

/// The number of rows of a wrapped line.
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
        matches!(pager.page.state, PagerState::Held { .. })
    }

    #[test]
    fn short_output_is_printed_directly_and_long_output_is_paged() {
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
    fn a_closed_pager_stops_the_writer_without_an_error() {
        let mut pager = pager("true", Paging::Allowed);
        let written = (0..1_000_000).try_for_each(|number| writeln!(pager, "line {number}"));
        assert_eq!(written.as_ref().map_err(io::Error::kind), Err(io::ErrorKind::BrokenPipe));
        pager.finish(written).expect("leaving is no failure");
    }

    #[test]
    fn a_missing_pager_is_ignored() {
        let mut pager = pager("retake-no-such-pager", Paging::Allowed);
        for number in 0..5 {
            writeln!(pager, "line {number}").expect("standard output is open");
        }
        assert!(matches!(pager.page.state, PagerState::Plain(_)));
        pager.finish(Ok(())).expect("standard output is open");
    }

    #[test]
    fn other_failures_of_the_pager_are_errors() {
        let pager = pager("true", Paging::Allowed);
        let error = pager.finish(Err(io::ErrorKind::StorageFull.into())).expect_err("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_program_is_chosen_by_the_environment() {
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
    fn without_a_pager_output_is_not_buffered() {
        assert!(!is_held(&pager("cat", Paging::Allowed)));
        assert!(!is_held(&pager("more", Paging::Off)));
    }

    #[test]
    fn rows_include_wrapped_lines() {
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
