//! Browser sessions: a single-use ticket becomes a session, which lasts as long as the token that the ticket was made
//! with.
//!
//! Only hashes are stored, so the file alone does not allow a login.

use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::RuntimeDatabase;
use crate::StoreError;

type Hash = [u8; 32];

impl RuntimeDatabase {
    /// Stores a ticket until it is used or expires.
    pub fn add_ticket(&self, hash: &Hash, expires: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO ticket (hash, expires) VALUES (?1, ?2)",
                params![hash, expires.millis()],
            )?;
            Ok(())
        })
    }

    /// Uses a ticket; returns whether it was valid.
    pub fn use_ticket(&self, hash: &Hash, now: Timestamp) -> Result<bool, StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM ticket WHERE expires <= ?1", [now.millis()])?;
            Ok(transaction.execute("DELETE FROM ticket WHERE hash = ?1", [hash])? > 0)
        })
    }

    /// Starts a session, with the token that its ticket was made with. Sessions that started before `since` are
    /// removed.
    pub fn add_browser_session(
        &self,
        hash: &Hash,
        token: &Hash,
        now: Timestamp,
        since: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM visitor WHERE created < ?1", [since.millis()])?;
            transaction.execute(
                "INSERT OR REPLACE INTO visitor (hash, token, created) VALUES (?1, ?2, ?3)",
                params![hash, token, now.millis()],
            )?;
            Ok(())
        })
    }

    /// The hash of a session's token; `None` if the session is unknown or started before `since`.
    pub fn browser_session_token(&self, hash: &Hash, since: Timestamp) -> Result<Option<Hash>, StoreError> {
        Ok(self
            .connection()
            .prepare_cached("SELECT token FROM visitor WHERE hash = ?1 AND created >= ?2")?
            .query_row(params![hash, since.millis()], |row| row.get(0))
            .optional()?)
    }

    /// Ends a session.
    pub fn remove_browser_session(&self, hash: &Hash) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM visitor WHERE hash = ?1", [hash])?;
            Ok(())
        })
    }

    /// Ends all sessions of other tokens, and removes all tickets; returns the number of sessions.
    pub fn revoke_other_browser_sessions(&self, token: &Hash) -> Result<usize, StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM ticket", [])?;
            Ok(transaction.execute("DELETE FROM visitor WHERE token <> ?1", [token])?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn a_ticket_is_single_use_and_a_session_ends_with_its_token() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let runtime_database =
            Store::open(folder.path()).expect("a store").runtime_database().expect("a runtime database");
        let at = Timestamp::from_millis;
        let uses =
            |ticket: u8, now: i64| runtime_database.use_ticket(&[ticket; 32], at(now)).expect("a query");
        for ticket in 1..=3 {
            runtime_database.add_ticket(&[ticket; 32], at(100)).expect("a write");
        }
        assert!(uses(1, 99));
        assert!(!uses(1, 99), "it is single-use");
        assert!(!uses(2, 100), "it has expired");
        assert!(!uses(3, 99), "expired tickets are removed");
        let (old, new) = ([7; 32], [8; 32]);
        for (visitor, token) in [(1, old), (2, old), (3, new)] {
            runtime_database.add_browser_session(&[visitor; 32], &token, at(5), at(0)).expect("a write");
        }
        let token_since = |visitor: u8, since: i64| {
            runtime_database.browser_session_token(&[visitor; 32], at(since)).expect("a query")
        };
        assert_eq!([token_since(1, 5), token_since(1, 6)], [Some(old), None], "sessions expire");
        let token = |visitor: u8| token_since(visitor, 0);
        assert_eq!([token(1), token(3), token(4)], [Some(old), Some(new), None]);
        runtime_database.remove_browser_session(&[1; 32]).expect("a write");
        assert_eq!(runtime_database.revoke_other_browser_sessions(&new).expect("a write"), 1);
        assert_eq!([token(1), token(2), token(3)], [None, None, Some(new)]);
        runtime_database.add_browser_session(&[5; 32], &new, at(9), at(6)).expect("a write");
        assert_eq!([token(3), token(5)], [None, Some(new)], "old sessions are removed");
    }
}
