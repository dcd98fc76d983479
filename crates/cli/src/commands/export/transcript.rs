//! One take as JSON: the shape of `thread show --json`, with all entries.

use std::io::Write;

use retake_timeline::{LookError, Looking};

use super::Counts;
use crate::context::Meant;
use crate::failure::Failure;

/// Entries that are held at a time.
pub(super) const PAGE: u64 = 500;

pub(super) fn write(
    out: &mut dyn Write,
    looking: &Looking<'_>,
    meant: &Meant,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Counts, Failure> {
    let take = retake_model::summary::summarize(&meant.take, &looking.queries()).map_err(LookError::from)?;
    write!(out, "{{\"thread\":")?;
    json(out, &meant.thread.summary)?;
    write!(out, ",\"take\":")?;
    json(out, &take)?;
    write!(out, ",\"draft\":")?;
    json(out, &meant.take.draft)?;
    write!(out, ",\"entries\":[")?;
    let total = meant.take.entries.len();
    let mut done = 0;
    while done < total {
        let page = looking.page(meant.thread.summary.id, &meant.take, done..(done + PAGE).min(total))?;
        for view in &page {
            if view.number > 1 {
                write!(out, ",")?;
            }
            json(out, view)?;
        }
        done += PAGE.min(total - done);
        progress(done, total);
    }
    writeln!(out, "]}}")?;
    Ok(Counts { entries: Some(total), ..Counts::default() })
}

fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), Failure> {
    Ok(crate::ui::json::write(out, value)?)
}
