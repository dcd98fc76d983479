//! Running turns, and messages to them.

use retake_model::id::TakeId;
use retake_model::turn::{RunningTurn, TurnMessage};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::RuntimeDatabase;
use crate::StoreError;
use crate::log::queries::{decode_checked, digest};

/// Changes whenever the runtime database changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeStamp {
    /// Counts commits of other connections.
    others: i64,
    /// Counts changes of this connection.
    own: u64,
}

/// The result of sending a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The decision was sent.
    Sent,
    /// An earlier decision was sent already.
    AlreadyDecided,
    /// No turn runs in the take.
    NoTurnRunning,
}

impl RuntimeDatabase {
    /// The current stamp. It is cheap to read, for callers that poll for changes.
    pub fn stamp(&self) -> Result<RuntimeStamp, StoreError> {
        let connection = self.connection();
        let others = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(RuntimeStamp { others, own: connection.total_changes() })
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
        found.map(|(record, guard)| decode_checked(&record, guard, "turn")).transpose()
    }

    /// All recorded turns.
    pub fn turns(&self) -> Result<Vec<RunningTurn>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached("SELECT record, digest FROM turn ORDER BY take")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))?;
        rows.map(|row| {
            let (record, guard) = row?;
            decode_checked(&record, guard, "turn")
        })
        .collect()
    }

    /// Removes the turn of a take; returns the messages that arrived too late.
    pub fn end_turn(&self, take: TakeId) -> Result<Vec<TurnMessage>, StoreError> {
        self.write(|transaction| {
            transaction.prepare_cached("DELETE FROM turn WHERE take = ?1")?.execute([take.key()])?;
            drain_messages(transaction, take)
        })
    }

    /// Sends a message to the running turn of a take; returns whether there is one.
    pub fn send_message(&self, take: TakeId, message: &TurnMessage) -> Result<bool, StoreError> {
        let record = minicbor::to_vec(message).expect("encoding into memory cannot fail");
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
    pub fn send_decision(&self, take: TakeId, decision: &TurnMessage) -> Result<DecisionOutcome, StoreError> {
        let record = minicbor::to_vec(decision).expect("encoding into memory cannot fail");
        self.write(|transaction| {
            let running =
                transaction.prepare_cached("SELECT 1 FROM turn WHERE take = ?1")?.exists([take.key()])?;
            if !running {
                return Ok(DecisionOutcome::NoTurnRunning);
            }
            let messages = read_messages(transaction, take)?;
            if messages
                .iter()
                .any(|(_, message)| message.call().is_some() && message.call() == decision.call())
            {
                return Ok(DecisionOutcome::AlreadyDecided);
            }
            transaction
                .prepare_cached("INSERT INTO letter (take, record, digest) VALUES (?1, ?2, ?3)")?
                .execute(params![take.key(), record, digest(&record)])?;
            Ok(DecisionOutcome::Sent)
        })
    }

    /// The messages to a take, oldest first, with their numbers.
    pub fn messages(&self, take: TakeId) -> Result<Vec<(i64, TurnMessage)>, StoreError> {
        read_messages(&self.connection(), take)
    }

    /// Deletes a handled message.
    pub fn delete_message(&self, number: i64) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.prepare_cached("DELETE FROM letter WHERE number = ?1")?.execute([number])?;
            Ok(())
        })
    }
}

fn drain_messages(transaction: &Transaction<'_>, take: TakeId) -> Result<Vec<TurnMessage>, StoreError> {
    let messages = read_messages(transaction, take)?;
    transaction.prepare_cached("DELETE FROM letter WHERE take = ?1")?.execute([take.key()])?;
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}

fn read_messages(connection: &Connection, take: TakeId) -> Result<Vec<(i64, TurnMessage)>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT number, record, digest FROM letter WHERE take = ?1 ORDER BY number")?;
    let rows =
        statement.query_map([take.key()], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?)))?;
    rows.map(|row| {
        let (number, record, guard) = row?;
        Ok((number, decode_checked(&record, guard, "letter")?))
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
        let (here, there) = (
            store.runtime_database().expect("a runtime database"),
            store.runtime_database().expect("a runtime database"),
        );
        let take = TakeId::from_bytes([1; 16]);
        assert!(!there.send_message(take, &TurnMessage::Interrupt).expect("a query"), "no turn runs yet");
        let turn = RunningTurn {
            thread: ThreadId::from_bytes([2; 16]),
            take,
            turn: TurnId::from_bytes([3; 16]),
            started: Timestamp::from_millis(5),
            process: 1,
            partial: None,
            state: None,
        };
        let stamp = |runtime_database: &RuntimeDatabase| runtime_database.stamp().expect("a query");
        let before = [stamp(&here), stamp(&there)];
        assert_eq!([stamp(&here), stamp(&there)], before, "nothing has changed");
        here.put_turn(&turn).expect("a write");
        assert!(stamp(&here) != before[0] && stamp(&there) != before[1], "both see the change");
        assert_eq!(there.turn(take).expect("a query"), Some(turn.clone()));
        let running = || store.running_turns(&there).expect("a query");
        assert_eq!(running(), [(turn.clone(), false)], "no process holds the lease");
        let lease = store.lease_turn(take).expect("a lock file");
        assert_eq!(running(), [(turn, true)]);
        drop(lease);
        let steer = TurnMessage::Steer { entry: EntryId::from_bytes([4; 16]), text: "shorter".to_owned() };
        for message in [&steer, &TurnMessage::Interrupt] {
            assert!(there.send_message(take, message).expect("a message"));
        }
        let read =
            |runtime_database: &super::RuntimeDatabase| runtime_database.messages(take).expect("a query");
        let messages = read(&here);
        assert_eq!(
            messages.iter().map(|(_, message)| message).collect::<Vec<_>>(),
            [&steer, &TurnMessage::Interrupt]
        );
        for (number, _) in messages {
            here.delete_message(number).expect("a write");
        }
        assert_eq!(read(&here), []);
        there.send_message(take, &TurnMessage::Interrupt).expect("a message");
        assert_eq!(here.end_turn(take).expect("a write"), [TurnMessage::Interrupt], "it arrived too late");
        assert!(here.turns().expect("a query").is_empty());
        assert_eq!(read(&here), []);
    }
}
