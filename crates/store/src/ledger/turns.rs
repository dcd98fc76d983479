//! Running turns, and messages to them.

use retake_model::id::TakeId;
use retake_model::turn::{Letter, RunningTurn};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Ledger;
use crate::StoreError;
use crate::queries::{checked, digest};

/// Changes whenever the runtime database changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerStamp {
    /// Counts commits of other connections.
    others: i64,
    /// Counts changes of this connection.
    own: u64,
}

/// The result of sending a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionSent {
    /// The decision was sent.
    Sent,
    /// An earlier decision was sent already.
    DecidedBefore,
    /// No turn runs in the take.
    NothingRuns,
}

impl Ledger {
    /// The current stamp. It is cheap to read, for callers that poll for changes.
    pub fn stamp(&self) -> Result<LedgerStamp, StoreError> {
        let connection = self.connection();
        let others = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(LedgerStamp { others, own: connection.total_changes() })
    }

    /// Records the running turn of a take; replaces the previous record.
    pub fn put_turn(&self, turn: &RunningTurn) -> Result<(), StoreError> {
        let record = minicbor::to_vec(turn).expect("encoding into memory cannot fail");
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO turn (take, record, digest) VALUES (?1, ?2, ?3)")?
                .execute(params![turn.take.key(), record, digest(&record)])?;
            Ok(())
        })
    }

    /// The turn that runs in a take, or that a crash left there.
    pub fn turn(&self, take: TakeId) -> Result<Option<RunningTurn>, StoreError> {
        let found = self
            .connection()
            .prepare_cached("SELECT record, digest FROM turn WHERE take = ?1")?
            .query_row([take.key()], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))
            .optional()?;
        found.map(|(record, guard)| checked(&record, guard, "turn")).transpose()
    }

    /// All recorded turns.
    pub fn turns(&self) -> Result<Vec<RunningTurn>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached("SELECT record, digest FROM turn ORDER BY take")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))?;
        rows.map(|row| {
            let (record, guard) = row?;
            checked(&record, guard, "turn")
        })
        .collect()
    }

    /// Removes the turn of a take; returns the messages that arrived too late.
    pub fn end_turn(&self, take: TakeId) -> Result<Vec<Letter>, StoreError> {
        self.write(|transaction| {
            transaction.prepare_cached("DELETE FROM turn WHERE take = ?1")?.execute([take.key()])?;
            take_out(transaction, take)
        })
    }

    /// Sends a message to the running turn of a take; returns whether there is one.
    pub fn send(&self, take: TakeId, letter: &Letter) -> Result<bool, StoreError> {
        let record = minicbor::to_vec(letter).expect("encoding into memory cannot fail");
        self.write(|transaction| {
            let running =
                transaction.prepare_cached("SELECT 1 FROM turn WHERE take = ?1")?.exists([take.key()])?;
            if running {
                transaction
                    .prepare_cached("INSERT INTO letter (take, record, digest) VALUES (?1, ?2, ?3)")?
                    .execute(params![take.key(), record, digest(&record)])?;
            }
            Ok(running)
        })
    }

    /// Sends a decision about a pending call in a take; the first decision applies. It stays until the turn ends or
    /// the call is pending again, so that a later decision gets `AlreadyDecided`.
    pub fn send_decision(&self, take: TakeId, decision: &Letter) -> Result<DecisionSent, StoreError> {
        let record = minicbor::to_vec(decision).expect("encoding into memory cannot fail");
        self.write(|transaction| {
            let running =
                transaction.prepare_cached("SELECT 1 FROM turn WHERE take = ?1")?.exists([take.key()])?;
            if !running {
                return Ok(DecisionSent::NothingRuns);
            }
            let letters = read_letters(transaction, take)?;
            if letters.iter().any(|(_, letter)| letter.call().is_some() && letter.call() == decision.call()) {
                return Ok(DecisionSent::DecidedBefore);
            }
            transaction
                .prepare_cached("INSERT INTO letter (take, record, digest) VALUES (?1, ?2, ?3)")?
                .execute(params![take.key(), record, digest(&record)])?;
            Ok(DecisionSent::Sent)
        })
    }

    /// The messages to a take, oldest first, with their numbers.
    pub fn letters(&self, take: TakeId) -> Result<Vec<(i64, Letter)>, StoreError> {
        read_letters(&self.connection(), take)
    }

    /// Deletes a handled message.
    pub fn forget_letter(&self, number: i64) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.prepare_cached("DELETE FROM letter WHERE number = ?1")?.execute([number])?;
            Ok(())
        })
    }
}

fn take_out(transaction: &Transaction<'_>, take: TakeId) -> Result<Vec<Letter>, StoreError> {
    let letters = read_letters(transaction, take)?;
    transaction.prepare_cached("DELETE FROM letter WHERE take = ?1")?.execute([take.key()])?;
    Ok(letters.into_iter().map(|(_, letter)| letter).collect())
}

fn read_letters(connection: &Connection, take: TakeId) -> Result<Vec<(i64, Letter)>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT number, record, digest FROM letter WHERE take = ?1 ORDER BY number")?;
    let rows =
        statement.query_map([take.key()], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?)))?;
    rows.map(|row| {
        let (number, record, guard) = row?;
        Ok((number, checked(&record, guard, "letter")?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use retake_model::id::{EntryId, ThreadId, TurnId};
    use retake_model::time::Timestamp;

    use super::*;
    use crate::Store;

    #[test]
    fn messages_reach_only_running_turns() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let (here, there) = (store.ledger().expect("a ledger"), store.ledger().expect("a ledger"));
        let take = TakeId::from_bytes([1; 16]);
        assert!(!there.send(take, &Letter::Interrupt).expect("a query"), "no turn runs yet");
        let turn = RunningTurn {
            thread: ThreadId::from_bytes([2; 16]),
            take,
            turn: TurnId::from_bytes([3; 16]),
            started: Timestamp::from_millis(5),
            process: 1,
            partial: None,
        };
        let stamp = |ledger: &Ledger| ledger.stamp().expect("a query");
        let before = [stamp(&here), stamp(&there)];
        assert_eq!([stamp(&here), stamp(&there)], before, "nothing has changed");
        here.put_turn(&turn).expect("a write");
        assert!(stamp(&here) != before[0] && stamp(&there) != before[1], "both see the change");
        assert_eq!(there.turn(take).expect("a query"), Some(turn.clone()));
        let running = || store.running(&there).expect("a query");
        assert_eq!(running(), [(turn.clone(), false)], "no process holds the lease");
        let lease = store.lease_turn(take).expect("a lock file");
        assert_eq!(running(), [(turn, true)]);
        drop(lease);
        let steer = Letter::Steer { entry: EntryId::from_bytes([4; 16]), text: "shorter".to_owned() };
        for letter in [&steer, &Letter::Interrupt] {
            assert!(there.send(take, letter).expect("a message"));
        }
        let read = |ledger: &crate::Ledger| ledger.letters(take).expect("a query");
        let letters = read(&here);
        assert_eq!(
            letters.iter().map(|(_, letter)| letter).collect::<Vec<_>>(),
            [&steer, &Letter::Interrupt]
        );
        for (number, _) in letters {
            here.forget_letter(number).expect("a write");
        }
        assert_eq!(read(&here), []);
        there.send(take, &Letter::Interrupt).expect("a message");
        assert_eq!(here.end_turn(take).expect("a write"), [Letter::Interrupt], "it arrived too late");
        assert!(here.turns().expect("a query").is_empty());
        assert_eq!(read(&here), []);
    }
}
