//! A reader that stops when the call is cancelled, between two reads.

use std::io::{self, Read};

use crate::cancel::Cancel;

pub(super) struct Interruptible<'a, R> {
    reader: R,
    cancel: &'a Cancel,
}

impl<'a, R> Interruptible<'a, R> {
    pub(super) fn new(reader: R, cancel: &'a Cancel) -> Self {
        Self { reader, cancel }
    }
}

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_set() {
            // Not `ErrorKind::Interrupted`, which makes readers try again.
            return Err(io::Error::other(super::INTERRUPTED));
        }
        self.reader.read(buffer)
    }
}
