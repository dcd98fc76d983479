//! Progress of a snapshot.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files checked so far.
    pub files: u64,
    /// Files read so far.
    pub read_files: u64,
    /// Bytes of those.
    pub read_bytes: u64,
}

/// Files between two reports.
const REPORT_INTERVAL: u64 = 512;

pub(super) struct Counter<'progress> {
    files: AtomicU64,
    read_files: AtomicU64,
    read_bytes: AtomicU64,
    cancelled: AtomicBool,
    report: &'progress (dyn Fn(Progress) -> ControlFlow<()> + Sync),
}

impl<'progress> Counter<'progress> {
    pub(super) fn new(report: &'progress (dyn Fn(Progress) -> ControlFlow<()> + Sync)) -> Self {
        Self {
            files: AtomicU64::new(0),
            read_files: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            report,
        }
    }

    pub(super) fn add_files(&self, files: u64) {
        let before = self.files.fetch_add(files, Ordering::Relaxed);
        if before / REPORT_INTERVAL != (before + files) / REPORT_INTERVAL {
            self.send_report();
        }
    }

    pub(super) fn read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        let before = self.read_files.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(REPORT_INTERVAL) {
            self.send_report();
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn send_report(&self) {
        let progress = Progress {
            files: self.files.load(Ordering::Relaxed),
            read_files: self.read_files.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
        };
        if (self.report)(progress).is_break() {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }
}
