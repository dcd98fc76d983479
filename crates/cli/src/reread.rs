//! The cost of a change to entries in lost prompt cache.

use retake_model::id::TakeId;
use retake_model::projection::{Conversation, converse, reread_tokens};
use retake_model::take::Take;
use retake_timeline::{Done, LookError, Looking};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::count;

/// Longer conversations are never sent as a whole.
const MOST_ENTRIES: u64 = 5_000;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    done: &'a Done,
    /// How many tokens the next request can no longer read from the cache; absent if no request was sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    reread_tokens: Option<u64>,
}

impl Context {
    /// Reports a change to entries and its effect on the prompt cache.
    pub(crate) fn report_reread(&self, done: &Done, take: TakeId) -> Result<(), Failure> {
        let reread_tokens = if done.changed() { self.reread(done, take)? } else { None };
        if self.general.json {
            return self.report(&Answer { done, reread_tokens }, |_, _| Ok(()));
        }
        self.report_done(done)?;
        match reread_tokens {
            Some(tokens) if tokens > 0 => self
                .remark(&format!("The next request reads about {} tokens again, uncached.", count(tokens))),
            _ => Ok(()),
        }
    }

    fn reread(&self, done: &Done, take: TakeId) -> Result<Option<u64>, Failure> {
        let looking = self.timeline()?.look()?;
        let at = |version: u64| -> Result<Option<Take>, Failure> {
            let state = looking.state_at(done.thread, version)?;
            Ok(state.take(&looking.queries(), take).map_err(LookError::from)?)
        };
        let (Some(before), Some(after)) = (at(done.version - 1)?, at(done.version)?) else { return Ok(None) };
        if before.sent.is_none() || before.entries.len().max(after.entries.len()) > MOST_ENTRIES {
            return Ok(None);
        }
        let before = conversation(&looking, done, &before)?;
        Ok(Some(reread_tokens(&before, &conversation(&looking, done, &after)?)))
    }
}

fn conversation(looking: &Looking<'_>, done: &Done, take: &Take) -> Result<Conversation, Failure> {
    let page = looking.page(done.thread, take, 0..take.entries.len())?;
    let entries: Vec<_> = page.into_iter().map(|view| (view.id, view.entry)).collect();
    Ok(converse(&entries))
}
