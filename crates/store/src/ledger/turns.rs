//! Turns that run, and letters to them.

use retake_model::id::TakeId;
use retake_model::turn::{Letter, RunningTurn};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Ledger;
use crate::StoreError;
use crate::queries::{checked, digest};

/// A moment of the ledger: as long as it is the same, nothing in it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerStamp {
    /// Counts what others commit.
    others: i64,
    /// Counts what is changed here.
    own: u64,
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionSent {
    /// It is the one that holds.
    Sent,
    /// Another one was first.
    DecidedBefore,
    /// No turn runs in the take.
    NothingRuns,
}

impl Ledger {
    /// The present moment of the ledger, for who asks often whether anything has changed; it takes microseconds.
    pub fn stamp(&self) -> Result<LedgerStamp, StoreError> {
        let connection = self.connection();
        let others = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(LedgerStamp { others, own: connection.total_changes() })
    }

    /// Writes down what runs in a take, in place of what was written there before.
    pub fn put_turn(&self, turn: &RunningTurn) -> Result<(), StoreError> {
        let record = minicbor::to_vec(turn).expect("encoding into memory cannot fail");
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO turn (take, record, digest) VALUES (?1, ?2, ?3)")?
                .execute(params![turn.take.key(), record, digest(&record)])?;
            Ok(())
        })
    }

    /// What runs in a take, or was left there.
    pub fn turn(&self, take: TakeId) -> Result<Option<RunningTurn>, StoreError> {
        let found = self
            .connection()
            .prepare_cached("SELECT record, digest FROM turn WHERE take = ?1")?
            .query_row([take.key()], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))
            .optional()?;
        found.map(|(record, guard)| checked(&record, guard, "turn")).transpose()
    }

    /// All turns that run or were left.
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

    /// Forgets what ran in a take; gives the letters that came too late.
    pub fn end_turn(&self, take: TakeId) -> Result<Vec<Letter>, StoreError> {
        self.write(|transaction| {
            transaction.prepare_cached("DELETE FROM turn WHERE take = ?1")?.execute([take.key()])?;
            take_out(transaction, take)
        })
    }

    /// Sends a letter to the turn that runs in a take; says whether one is written down there.
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

    /// Sends a decision about a call that waits in a take: the first one holds. It stays until the turn has ended, or
    /// the call is asked about again, so that whoever decides later learns that it is decided.
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

    /// The letters to a take, oldest first, each with its number.
    pub fn letters(&self, take: TakeId) -> Result<Vec<(i64, Letter)>, StoreError> {
        read_letters(&self.connection(), take)
    }

    /// Forgets a letter: what it asked for is done.
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
    fn letters_reach_a_turn_that_runs_and_no_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("a store");
        let (here, there) = (store.ledger().expect("a ledger"), store.ledger().expect("a ledger"));
        let take = TakeId::from_bytes([1; 16]);
        assert!(!there.send(take, &Letter::Interrupt).expect("it is asked"), "nothing runs yet");
        let turn = RunningTurn {
            thread: ThreadId::from_bytes([2; 16]),
            take,
            turn: TurnId::from_bytes([3; 16]),
            started: Timestamp::from_millis(5),
            process: 1,
            partial: None,
        };
        let stamp = |ledger: &Ledger| ledger.stamp().expect("it is asked");
        let before = [stamp(&here), stamp(&there)];
        assert_eq!([stamp(&here), stamp(&there)], before, "nothing has changed");
        here.put_turn(&turn).expect("it is written");
        assert!(stamp(&here) != before[0] && stamp(&there) != before[1], "both see that something has");
        assert_eq!(there.turn(take).expect("it is read"), Some(turn.clone()));
        let running = || store.running(&there).expect("it is read");
        assert_eq!(running(), [(turn.clone(), false)], "its process has died, as it were");
        let lease = store.lease_turn(take).expect("a lock file");
        assert_eq!(running(), [(turn, true)]);
        drop(lease);
        let steer = Letter::Steer { entry: EntryId::from_bytes([4; 16]), text: "shorter".to_owned() };
        for letter in [&steer, &Letter::Interrupt] {
            assert!(there.send(take, letter).expect("it is sent"));
        }
        let read = |ledger: &crate::Ledger| ledger.letters(take).expect("they are read");
        let letters = read(&here);
        assert_eq!(
            letters.iter().map(|(_, letter)| letter).collect::<Vec<_>>(),
            [&steer, &Letter::Interrupt]
        );
        for (number, _) in letters {
            here.forget_letter(number).expect("it is forgotten");
        }
        assert_eq!(read(&here), []);
        there.send(take, &Letter::Interrupt).expect("it is sent");
        assert_eq!(here.end_turn(take).expect("it ends"), [Letter::Interrupt], "it came too late");
        assert!(here.turns().expect("they are read").is_empty());
        assert_eq!(read(&here), []);
    }
}
