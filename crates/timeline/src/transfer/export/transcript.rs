//! Exports one take as JSON with all its entries.

use std::io::Write;

use retake_model::summary::summarize;
use retake_model::take::Take;
use retake_store::ThreadRow;

use super::{ExportError, ExportFormatter, ExportItem, Exporter, PAGE};
use crate::ReadError;

impl Exporter<'_> {
    /// Writes a take as JSON: the thread, the take, its draft, its entries. Returns the number of entries.
    pub fn json(
        &self,
        thread: &ThreadRow,
        take: &Take,
        front: &dyn ExportFormatter,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, ExportError> {
        let summary = summarize(take, &self.reader.queries()).map_err(ReadError::from)?;
        write!(out, "{{\"thread\":")?;
        front.json(out, &ExportItem::Thread(&thread.summary))?;
        write!(out, ",\"take\":")?;
        front.json(out, &ExportItem::Take(&summary))?;
        write!(out, ",\"draft\":")?;
        front.json(out, &ExportItem::Text(&take.draft))?;
        write!(out, ",\"draft_pictures\":")?;
        front.json(out, &ExportItem::Pictures(&take.attached))?;
        write!(out, ",\"entries\":[")?;
        let total = take.entries.len();
        let mut done = 0;
        while done < total {
            let page = self.reader.entries(thread.summary.id, take).page(done..(done + PAGE).min(total))?;
            for view in &page {
                if view.number > 1 {
                    write!(out, ",")?;
                }
                front.json(out, &ExportItem::Entry(view))?;
            }
            done += PAGE.min(total - done);
            progress(done, total);
        }
        writeln!(out, "]}}")?;
        out.flush()?;
        Ok(total)
    }
}
