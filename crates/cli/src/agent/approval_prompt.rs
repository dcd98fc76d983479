//! Asks the user at the terminal to approve a tool call.

use std::io::{self, BufRead, IsTerminal, Write};

use retake_agent::approval::ApprovalQuestion;
use retake_agent::{Cancel, Reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use crate::context::Context;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::stderr;

pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Repeats the question until it is answered. Returns `None` at the end of input, or if the call is
/// decided elsewhere or the turn is interrupted meanwhile.
pub(super) fn prompt_for_approval(
    context: &Context,
    question: &ApprovalQuestion,
    settled: &Cancel,
) -> io::Result<Option<Reply>> {
    let mut out = stderr(context.general.color);
    let (tool, warning, muted) = (context.styles.tool, context.styles.warning, context.styles.muted);
    writeln!(out, "{warning}?{warning:#} {tool}{}{tool:#}", sanitize(&question.tool, LineBreaks::Fold))?;
    for line in &question.what {
        writeln!(out, "  {muted}│{muted:#} {}", sanitize(line, LineBreaks::Fold))?;
    }
    // Discards input that was typed before the question appeared.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    loop {
        write!(out, "  Allow? [y]es, [a]lways allow this exact call, [n]o, or type what to do instead: ")?;
        out.flush()?;
        let Some(line) = read_line(settled)? else {
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
                let reason = format!("The user denied this call: {other}");
                return decision(false, false, Some(reason));
            }
        }
    }
}

/// Reads one typed line; `None` at the end of input.
fn read_line(settled: &Cancel) -> io::Result<Option<String>> {
    let input = io::stdin();
    loop {
        // Polls first: a read that waits for the keyboard cannot be interrupted.
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        let interval = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut waiting, Some(&interval)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                let mut line = String::new();
                let read = input.lock().read_line(&mut line)?;
                return Ok((read > 0).then_some(line));
            }
            Err(error) => return Err(error.into()),
        }
        if settled.is_set() {
            return Ok(None);
        }
    }
}
