//! How browsers come in: a ticket that serves once becomes a visit, which lasts as long as the token it came from.
//!
//! Only hashes are kept. Whoever reads the file can let nobody in with what stands there.

use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::Ledger;
use crate::StoreError;

/// The bytes of a hash.
type Hash = [u8; 32];

impl Ledger {
    /// Remembers a ticket until it is used or expires.
    pub fn add_ticket(&self, hash: &Hash, expires: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO ticket (hash, expires) VALUES (?1, ?2)",
                params![hash, expires.millis()],
            )?;
            Ok(())
        })
    }

    /// Uses a ticket up; says whether it was one.
    pub fn use_ticket(&self, hash: &Hash, now: Timestamp) -> Result<bool, StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM ticket WHERE expires <= ?1", [now.millis()])?;
            Ok(transaction.execute("DELETE FROM ticket WHERE hash = ?1", [hash])? > 0)
        })
    }

    /// Remembers a browser that came in, and with which token its ticket was made. Those that came in before `since` are
    /// forgotten.
    pub fn add_visitor(
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

    /// The hash of the token that a browser came in with; `None` if it is not known, or came in before `since`.
    pub fn visitor_token(&self, hash: &Hash, since: Timestamp) -> Result<Option<Hash>, StoreError> {
        Ok(self
            .connection()
            .prepare_cached("SELECT token FROM visitor WHERE hash = ?1 AND created >= ?2")?
            .query_row(params![hash, since.millis()], |row| row.get(0))
            .optional()?)
    }

    /// Forgets a browser: it has gone.
    pub fn remove_visitor(&self, hash: &Hash) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM visitor WHERE hash = ?1", [hash])?;
            Ok(())
        })
    }

    /// Forgets all browsers that came in with another token than this, and all tickets; says how many browsers.
    pub fn forget_visitors_but(&self, token: &Hash) -> Result<usize, StoreError> {
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
    fn a_ticket_serves_once_and_a_visit_ends_with_its_token() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ledger = Store::open(folder.path()).expect("a store").ledger().expect("a ledger");
        let at = Timestamp::from_millis;
        let uses = |ticket: u8, now: i64| ledger.use_ticket(&[ticket; 32], at(now)).expect("it is asked");
        for ticket in 1..=3 {
            ledger.add_ticket(&[ticket; 32], at(100)).expect("it is written");
        }
        assert!(uses(1, 99));
        assert!(!uses(1, 99), "it serves once");
        assert!(!uses(2, 100), "it has expired");
        assert!(!uses(3, 99), "it was forgotten as it expired");
        let (old, new) = ([7; 32], [8; 32]);
        for (visitor, token) in [(1, old), (2, old), (3, new)] {
            ledger.add_visitor(&[visitor; 32], &token, at(5), at(0)).expect("it is written");
        }
        let token_since =
            |visitor: u8, since: i64| ledger.visitor_token(&[visitor; 32], at(since)).expect("it is asked");
        assert_eq!([token_since(1, 5), token_since(1, 6)], [Some(old), None], "a visit has an end");
        let token = |visitor: u8| token_since(visitor, 0);
        assert_eq!([token(1), token(3), token(4)], [Some(old), Some(new), None]);
        ledger.remove_visitor(&[1; 32]).expect("it is forgotten");
        assert_eq!(ledger.forget_visitors_but(&new).expect("they are forgotten"), 1);
        assert_eq!([token(1), token(2), token(3)], [None, None, Some(new)]);
        ledger.add_visitor(&[5; 32], &new, at(9), at(6)).expect("it is written");
        assert_eq!([token(3), token(5)], [None, Some(new)], "who came in long ago is forgotten");
    }
}
