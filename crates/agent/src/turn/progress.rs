//! Progress of a running tool, from the tool's thread to the driver's.
//!
//! The mailbox holds one report: a newer fraction replaces the older one, and output is appended up to a
//! limit and counted beyond it. So neither a tool that prints without end nor an observer that reads slowly
//! costs memory, and the tool never waits for the observer. The trace has the stored output.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::tools::{Progress, Units};

/// Maximum bytes of output in a report.
const REPORT_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Mailbox {
    contents: Mutex<Contents>,
    changed: Condvar,
}

#[derive(Default)]
struct Contents {
    waiting: Option<Report>,
    closed: bool,
}

/// The merged progress since the last report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) fraction: Option<f64>,
    pub(super) message: String,
    pub(super) units: Option<Units>,
    pub(super) output: String,
    /// Bytes of output beyond the limit.
    pub(super) omitted: u64,
}

/// The result of waiting for a report.
#[derive(Debug, PartialEq)]
pub(super) enum MailboxItem {
    Report(Report),
    Nothing,
    /// The tool has ended and all reports were taken.
    Closed,
}

impl Mailbox {
    /// Adds progress. Never waits.
    pub(super) fn push(&self, progress: Progress) {
        let mut contents = self.lock();
        contents.waiting.get_or_insert_default().add(progress);
        drop(contents);
        self.changed.notify_all();
    }

    /// Marks the end of the tool.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for a report up to `longest`.
    pub(super) fn take(&self, longest: Duration) -> MailboxItem {
        let empty = |contents: &mut Contents| contents.waiting.is_none() && !contents.closed;
        let waited = self.changed.wait_timeout_while(self.lock(), longest, empty);
        let mut contents = waited.unwrap_or_else(PoisonError::into_inner).0;
        match contents.waiting.take() {
            Some(report) => MailboxItem::Report(report),
            None if contents.closed => MailboxItem::Closed,
            None => MailboxItem::Nothing,
        }
    }

    /// Waits for `time` or the end of the tool, so that reports are merged.
    pub(super) fn gather(&self, time: Duration) {
        let open = |contents: &mut Contents| !contents.closed;
        drop(self.changed.wait_timeout_while(self.lock(), time, open));
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    fn add(&mut self, progress: Progress) {
        let Progress { fraction, message, units, chunk } = progress;
        self.fraction = fraction.or(self.fraction);
        self.units = units.or(self.units);
        if !message.is_empty() {
            self.message = message;
        }
        let room = REPORT_BYTES.saturating_sub(self.output.len());
        // After a gap, drop all further output.
        let end = if self.omitted > 0 { 0 } else { chunk.floor_char_boundary(room) };
        self.output.push_str(&chunk[..end]);
        self.omitted += (chunk.len() - end) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(chunk: &str) -> Progress {
        Progress { chunk: chunk.to_owned(), ..Progress::default() }
    }

    #[test]
    fn one_bounded_progress_report_waits_and_omitted_ones_are_counted() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.take(Duration::ZERO), MailboxItem::Nothing);
        for _ in 0..1_000 {
            mailbox.push(output(&"é".repeat(1_000)));
        }
        mailbox.push(Progress { fraction: Some(0.5), ..Progress::default() });
        let MailboxItem::Report(report) = mailbox.take(Duration::ZERO) else { panic!("a report waits") };
        assert_eq!(report.fraction, Some(0.5));
        assert!(report.output.len() <= REPORT_BYTES && report.output.len() > REPORT_BYTES - 2);
        assert_eq!(report.output.len() as u64 + report.omitted, 2_000_000);
        mailbox.push(output("the end"));
        mailbox.close();
        assert!(
            matches!(mailbox.take(Duration::ZERO), MailboxItem::Report(last) if last.output == "the end")
        );
        assert_eq!(mailbox.take(Duration::from_mins(1)), MailboxItem::Closed);
    }
}
