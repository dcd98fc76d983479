//! Leftovers of crashed commands: what this command finished, and what is still pending.

use std::io::Write;

use retake_model::id::ThreadId;
use retake_timeline::{PendingMove, Timeline};

use super::Context;
use crate::describe;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::stderr;

impl Context {
    /// Removes leftovers of worktrees and purges after a crash. Failures are ignored: they must not block the command.
    pub(super) fn clean_up(&self, timeline: &Timeline) {
        if let Ok(true) = timeline.store().finish_erasure() {
            let _ = self.note("Finished an interrupted purge or redaction.");
        }
        let Ok(cleaned) = timeline.clean_up() else { return };
        if cleaned.is_empty() {
            return;
        }
        if self.general.json {
            let mut out = stderr(self.general.color);
            let _ = json::write(&mut out, &serde_json::json!({"cleaned_up": cleaned}))
                .and_then(|()| writeln!(out));
            return;
        }
        for path in &cleaned.removed {
            let _ = self.note(&format!("Finished the interrupted removal of {path}."));
        }
        for path in &cleaned.left {
            let text = format!("could not delete {path}; it is no longer recorded, so delete it yourself");
            let _ = self.warn(&sanitize(&text, LineBreaks::Fold));
        }
        for path in &cleaned.temporary {
            let _ = self.note(&format!("Removed {path}, left by a killed command."));
        }
    }

    /// Reports file moves of crashed commands that this command finished.
    pub(crate) fn report_recovered(&self) {
        let recovered = self.timeline.get().map(Timeline::take_recovered).unwrap_or_default();
        let mut out = stderr(self.general.color);
        for recovered in &recovered {
            // The change succeeded: a failing report must not look like a failed change.
            let _ = if self.general.json {
                json::write(&mut out, &serde_json::json!({"recovered": recovered}))
                    .and_then(|()| writeln!(out))
            } else {
                describe::files::write_recovered(&mut out, self, recovered)
            };
        }
        let emptied = self.timeline.get().map(Timeline::take_emptied).unwrap_or_default();
        if !emptied.is_empty() {
            let _ = if self.general.json {
                json::write(&mut out, &serde_json::json!({"emptied": emptied})).and_then(|()| writeln!(out))
            } else {
                describe::files::write_emptied(&mut out, self, &emptied)
            };
        }
    }

    /// Unfinished file moves of the selected threads. Text output warns about each; JSON output includes them.
    pub(crate) fn pending_moves(&self, of: impl Fn(ThreadId) -> bool) -> Result<Vec<PendingMove>, Failure> {
        let mut moves = self.timeline()?.pending_moves()?;
        moves.retain(|pending| of(pending.thread));
        if self.general.json {
            return Ok(moves);
        }
        for PendingMove { thread, kind, time, folder, running, next, .. } in &moves {
            let what = if *running { "is in progress" } else { "was interrupted" };
            let kind = serde_json::to_value(kind).unwrap_or_default();
            let kind = kind["type"].as_str().unwrap_or("a move").replace('_', " ");
            let text = format!(
                "a file move in {folder} {what} (thread {}, {kind}, {}); {next}",
                thread.short(),
                self.ago(*time)
            );
            self.warn(&sanitize(&text, LineBreaks::Fold))?;
        }
        Ok(moves)
    }
}
