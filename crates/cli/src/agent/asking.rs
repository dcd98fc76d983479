//! Asking the person at the terminal whether a call may run.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use retake_agent::approval::Question;
use retake_agent::{Cancel, Reply};

use crate::context::Context;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::stderr;

/// Lines of a question that are shown at once.
const MOST_LINES: usize = 40;

/// Whether there is anybody to ask.
pub(super) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until there is an answer. `None` if the turn was interrupted meanwhile.
pub(super) fn ask(context: &Context, question: &Question, cancel: &Cancel) -> io::Result<Option<Reply>> {
    let mut out = stderr(context.general.color);
    let (tool, warning, muted) = (context.styles.tool, context.styles.warning, context.styles.muted);
    writeln!(out, "{warning}?{warning:#} {tool}{}{tool:#}", sanitize(&question.tool, Lines::Fold))?;
    for line in question.what.iter().take(MOST_LINES) {
        writeln!(out, "  {muted}│{muted:#} {}", sanitize(line, Lines::Fold))?;
    }
    if let Some(more) = question.what.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        writeln!(out, "  {muted}│ and {more} more lines{muted:#}")?;
    }
    loop {
        write!(out, "  Allow it? [y]es, [a]lways this very call, [n]o, or say what to do instead: ")?;
        out.flush()?;
        let Some(line) = read_line(cancel)? else {
            writeln!(out)?;
            return Ok(None);
        };
        let decision = |allowed, remember, reason| Ok(Some(Reply { allowed, remember, reason }));
        match line.trim() {
            "y" | "Y" | "yes" => return decision(true, false, None),
            "a" | "A" | "always" => return decision(true, true, None),
            "n" | "N" | "no" => return decision(false, false, None),
            "" => {}
            other => {
                let reason = format!("The user does not allow this call, and says: {other}");
                return decision(false, false, Some(reason));
            }
        }
    }
}

/// A line that somebody types; `None` if there will be none.
fn read_line(cancel: &Cancel) -> io::Result<Option<String>> {
    let (sender, receiver) = mpsc::channel();
    // A thread of its own, since nothing can stop one that waits for the keyboard. After an interrupt the program
    // ends, and the thread with it.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.map(|count| (count > 0).then_some(line)));
    });
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return line,
            Err(mpsc::RecvTimeoutError::Timeout) if !cancel.is_set() => {}
            Err(_) => return Ok(None),
        }
    }
}
