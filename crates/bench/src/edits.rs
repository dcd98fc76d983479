//! Changes of entries: append; edit, insert and delete at the front, in the middle and at the end.
//!
//! A delete removes another entry than the one just inserted; otherwise the resulting list would already be stored, and
//! the measurement would be too favourable. New entries have the user's role, so that there is always a message to fork
//! at nearby.

use retake_timeline::model::id::EntryId;
use retake_timeline::{Command, NewEntry, Spot};

use crate::Outcome;
use crate::operations::{Operation, Ready, Rule};
use crate::subject::Subject;

pub(crate) const OPERATIONS: &[Operation] = &[
    Operation { name: "append", most: 1.5, rule: Rule::Flat, prepare: |subject| Ok(append(subject)) },
    edit_row("edit, front", |subject| edit(subject, Where::Front)),
    edit_row("edit, middle", |subject| edit(subject, Where::Middle)),
    edit_row("edit, end", |subject| edit(subject, Where::End)),
    edit_row("insert, front", |subject| insert(subject, Where::Front)),
    edit_row("insert, middle", |subject| insert(subject, Where::Middle)),
    edit_row("insert, end", |subject| insert(subject, Where::End)),
    edit_row("delete, front", |subject| delete(subject, Where::Front)),
    edit_row("delete, middle", |subject| delete(subject, Where::Middle)),
    edit_row("delete, end", |subject| delete(subject, Where::End)),
];

const fn edit_row(name: &'static str, prepare: fn(&mut Subject) -> Outcome<Ready<'_>>) -> Operation {
    Operation { name, most: 2.0, rule: Rule::FewBytes, prepare }
}

#[derive(Clone, Copy)]
enum Where {
    Front,
    Middle,
    End,
}

fn append(subject: &mut Subject) -> Ready<'_> {
    let entries = vec![NewEntry::from(subject.messages.question())];
    let take = subject.take;
    change(subject, Command::AddEntries { take, at: Spot::End, entries })
}

fn edit(subject: &mut Subject, place: Where) -> Outcome<Ready<'_>> {
    let entry = target(subject, place)?;
    let (take, text) = (subject.take, subject.messages.text());
    Ok(change(subject, Command::EditEntry { take, entry, text }))
}

fn insert(subject: &mut Subject, place: Where) -> Outcome<Ready<'_>> {
    let before = target(subject, place)?;
    let entries = vec![NewEntry::from(subject.messages.question())];
    let take = subject.take;
    Ok(change(subject, Command::AddEntries { take, at: Spot::Before(before), entries }))
}

fn delete(subject: &mut Subject, place: Where) -> Outcome<Ready<'_>> {
    let entries = vec![match place {
        // The entry after the one just inserted.
        Where::Front => subject.entry_at(1)?,
        Where::Middle | Where::End => target(subject, place)?,
    }];
    let take = subject.take;
    Ok(change(subject, Command::DeleteEntries { take, entries }))
}

fn change(subject: &Subject, command: Command) -> Ready<'_> {
    Box::new(move || Ok(subject.change(command)?.new_bytes))
}

/// The entry at this position; in the middle, another one each time.
fn target(subject: &mut Subject, place: Where) -> Outcome<EntryId> {
    let length = subject.look()?.entries.len();
    let position = match place {
        Where::Front => 0,
        Where::Middle => {
            subject.turn += 1;
            length / 4 + subject.turn * 7919 % (length / 2).max(1)
        }
        Where::End => length - 1,
    };
    subject.entry_at(position)
}
