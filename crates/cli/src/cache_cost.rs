//! The cost of a change to entries in lost prompt cache.

use retake_model::id::TakeId;
use retake_model::projection::{Conversation, converse, uncached_tokens};
use retake_model::take::Take;
use retake_timeline::{ChangeOutcome, ReadError, Reader};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::count;

/// Longer conversations are never sent as a whole.
const MAX_ENTRIES: u64 = 5_000;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    done: &'a ChangeOutcome,
    /// How many tokens the next request can no longer read from the cache; absent if no request was sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncached_tokens: Option<u64>,
}

impl Context {
    /// Reports a change to entries and its effect on the prompt cache.
    pub(crate) fn report_cache_cost(&self, done: &ChangeOutcome, take: TakeId) -> Result<(), Failure> {
        let uncached_tokens = if done.changed() { self.uncached_after(done, take)? } else { None };
        if self.general.json {
            return self.report(&Answer { done, uncached_tokens }, |_, _| Ok(()));
        }
        self.report_done(done)?;
        match uncached_tokens {
            Some(tokens) if tokens > 0 => {
                self.note(&format!("The next request reads about {} tokens again, uncached.", count(tokens)))
            }
            _ => Ok(()),
        }
    }

    fn uncached_after(&self, done: &ChangeOutcome, take: TakeId) -> Result<Option<u64>, Failure> {
        let reader = self.timeline()?.read()?;
        let at = |version: u64| -> Result<Option<Take>, Failure> {
            let state = reader.state_at(done.thread, version)?;
            Ok(state.take(&reader.queries(), take).map_err(ReadError::from)?)
        };
        let (Some(before), Some(after)) = (at(done.version - 1)?, at(done.version)?) else { return Ok(None) };
        if before.sent.is_none() || before.entries.len().max(after.entries.len()) > MAX_ENTRIES {
            return Ok(None);
        }
        let before = conversation(&reader, done, &before)?;
        Ok(Some(uncached_tokens(&before, &conversation(&reader, done, &after)?)))
    }
}

fn conversation(reader: &Reader<'_>, done: &ChangeOutcome, take: &Take) -> Result<Conversation, Failure> {
    let page = reader.entries(done.thread, take).page(0..take.entries.len())?;
    let entries: Vec<_> = page.into_iter().map(|view| (view.id, view.entry)).collect();
    Ok(converse(&entries))
}
