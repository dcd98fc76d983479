//! Changes of entries: append; edit, insert and delete at the front, in the middle and at the end.
//!
//! A delete removes another entry than the one just inserted; otherwise the resulting list would already be stored, and
//! the measurement would be too favourable. New entries have the user's role, so that there is always a message to fork
//! at nearby.

use retake_model::id::EntryId;
use retake_timeline::{Command, InsertPosition, NewEntry};

use crate::Outcome;
use crate::operations::{Goal, Operation, PreparedOperation};
use crate::subject::MeasuredThread;

pub(crate) const OPERATIONS: &[Operation] = &[
    Operation { name: "append", most: 1.5, rule: Goal::Flat, prepare: |subject| Ok(append(subject)) },
    edit_row("edit, front", |subject| edit(subject, Position::Front)),
    edit_row("edit, middle", |subject| edit(subject, Position::Middle)),
    edit_row("edit, end", |subject| edit(subject, Position::End)),
    edit_row("insert, front", |subject| insert(subject, Position::Front)),
    edit_row("insert, middle", |subject| insert(subject, Position::Middle)),
    edit_row("insert, end", |subject| insert(subject, Position::End)),
    edit_row("delete, front", |subject| delete(subject, Position::Front)),
    edit_row("delete, middle", |subject| delete(subject, Position::Middle)),
    edit_row("delete, end", |subject| delete(subject, Position::End)),
];

const fn edit_row(
    name: &'static str,
    prepare: fn(&mut MeasuredThread) -> Outcome<PreparedOperation<'_>>,
) -> Operation {
    Operation { name, most: 2.0, rule: Goal::FewBytes, prepare }
}

#[derive(Clone, Copy)]
enum Position {
    Front,
    Middle,
    End,
}

fn append(subject: &mut MeasuredThread) -> PreparedOperation<'_> {
    let entries = vec![NewEntry::from(subject.messages.question())];
    let take = subject.take;
    change(subject, Command::AddEntries { take, at: InsertPosition::End, entries })
}

fn edit(subject: &mut MeasuredThread, place: Position) -> Outcome<PreparedOperation<'_>> {
    let entry = target(subject, place)?;
    let (take, text) = (subject.take, subject.messages.text());
    Ok(change(subject, Command::EditEntry { take, entry, text }))
}

fn insert(subject: &mut MeasuredThread, place: Position) -> Outcome<PreparedOperation<'_>> {
    let before = target(subject, place)?;
    let entries = vec![NewEntry::from(subject.messages.question())];
    let take = subject.take;
    Ok(change(subject, Command::AddEntries { take, at: InsertPosition::Before(before), entries }))
}

fn delete(subject: &mut MeasuredThread, place: Position) -> Outcome<PreparedOperation<'_>> {
    let entries = vec![match place {
        // The entry after the one just inserted.
        Position::Front => subject.entry_at(1)?,
        Position::Middle | Position::End => target(subject, place)?,
    }];
    let take = subject.take;
    Ok(change(subject, Command::DeleteEntries { take, entries }))
}

fn change(subject: &MeasuredThread, command: Command) -> PreparedOperation<'_> {
    Box::new(move || Ok(subject.change(command)?.new_bytes))
}

/// The entry at this position; in the middle, another one each time.
fn target(subject: &mut MeasuredThread, place: Position) -> Outcome<EntryId> {
    let length = subject.current_take()?.entries.len();
    let position = match place {
        Position::Front => 0,
        Position::Middle => {
            subject.turn += 1;
            length / 4 + subject.turn * 7919 % (length / 2).max(1)
        }
        Position::End => length - 1,
    };
    subject.entry_at(position)
}
