//! Replaces the end of a log, when a thread takes over operations of another machine.
//!
//! ```text
//!   sequence   10  11  12              10  11  12  13  14  15
//!   version     1   2   3       ──►     1   -   -   2   3   4        2 and 3 were ours; ours follows theirs as 4
//! ```
//!
//! Only a merge does this ([`retake_model::rebase`]): the operations that it removes come back with new versions, so
//! that nothing is lost. Sequence numbers only grow, so that followers of the log see every new operation.

use retake_model::object::load;
use retake_model::operation::{Operation, Version};
use retake_model::state::ThreadState;
use retake_model::summary::{summarize, summarize_thread};
use rusqlite::params;

use crate::log::head::ThreadHead;
use crate::{StoreError, WriteTransaction};

impl WriteTransaction<'_> {
    /// Removes the operations of a thread after a version, and calls `publish`, which must publish at least one.
    /// Derived rows that describe several operations, such as branches, keep the values of the removed ones.
    pub fn replace_end<T, E: From<StoreError>>(
        &self,
        head: &ThreadHead,
        keep: Version,
        publish: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let placeholder = self.remove_end(head, keep)?;
        let published = publish()?;
        self.connection
            .prepare_cached("DELETE FROM operation WHERE sequence = ?1 AND thread < 0")
            .and_then(|mut statement| statement.execute([placeholder]))
            .map_err(StoreError::from)?;
        Ok(published)
    }

    /// Returns the sequence number of a row that stays until the new operations have higher ones.
    fn remove_end(&self, head: &ThreadHead, keep: Version) -> Result<i64, StoreError> {
        let (row, number) = (&head.row, head.row.number);
        let missing = || StoreError::Damaged(format!("operation {keep} is missing"));
        let kept = self.operation(number, keep)?.ok_or_else(missing)?.operation;
        let last = self.last_sequence()?;
        self.keep_removed_objects(number, keep, &head.last.operation)?;
        self.connection
            .prepare_cached("DELETE FROM operation WHERE thread = ?1 AND version > ?2 AND sequence < ?3")?
            .execute(params![number, keep as i64, last])?;
        // The highest number is not used again: its row waits under a thread that does not exist.
        self.connection
            .prepare_cached(
                "UPDATE operation SET thread = -thread WHERE sequence = ?1 AND thread = ?2 AND version > ?3",
            )?
            .execute(params![last, number, keep as i64])?;
        self.forget_operations();
        let state: ThreadState = load(&**self, kept.after)?;
        let summary = summarize_thread(Some(&row.summary), &kept, &state, &**self)?
            .expect("a summary that continues another one has its project");
        let summary = summary.with_sharing(row.summary.sharing());
        let active = summarize(&state.active_take(&**self)?, &**self)?;
        self.put_thread(number, &summary, row.home)?;
        self.put_takes(number, Some(head), &state, &active)?;
        self.put_facets(number, Some(&row.summary), &summary)?;
        Ok(last)
    }

    /// Gives the objects in the bundles of the removed operations rows of their own: these operations come back.
    fn keep_removed_objects(&self, number: i64, keep: Version, last: &Operation) -> Result<(), StoreError> {
        self.sort_recent()?;
        let bundles: Vec<i64> = {
            let mut statement = self.connection.prepare(
                "SELECT sequence FROM operation WHERE thread = ?1 AND version > ?2 AND bundle IS NOT NULL",
            )?;
            statement.query_map(params![number, keep as i64], |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        for sequence in bundles {
            let objects = self.dissolve_bundle(sequence)?;
            self.put_objects(&objects, last.time)?;
        }
        Ok(())
    }
}
