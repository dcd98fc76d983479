//! Fork, switch, undo, redo and jump. Their cost must not depend on the length of the thread.

use retake_model::operation::Version;
use retake_timeline::{Caller, Command, Unit};

use crate::Outcome;
use crate::operations::{Goal, Operation, PreparedOperation};
use crate::subject::MeasuredThread;

pub(crate) const OPERATIONS: &[Operation] = &[
    move_row("undo", |subject| Ok(undo(subject))),
    move_row("redo", |subject| Ok(redo(subject))),
    move_row("jump, far back", jump_back),
    move_row("jump, to the newest", |subject| Ok(jump(subject, subject.newest))),
    move_row("fork, middle", |subject| fork(subject, 2)),
    move_row("fork, end", |subject| fork(subject, 1)),
    move_row("switch", |subject| Ok(switch(subject))),
];

const fn move_row(
    name: &'static str,
    prepare: fn(&mut MeasuredThread) -> Outcome<PreparedOperation<'_>>,
) -> Operation {
    Operation { name, most: 1.5, rule: Goal::Flat, prepare }
}

fn undo(subject: &MeasuredThread) -> PreparedOperation<'_> {
    let (timeline, thread) = (&subject.timeline, subject.thread);
    Box::new(move || Ok(timeline.undo(thread, Unit::Turn, 1, Caller::human())?.done.new_bytes))
}

fn redo(subject: &MeasuredThread) -> PreparedOperation<'_> {
    let (timeline, thread) = (&subject.timeline, subject.thread);
    Box::new(move || Ok(timeline.redo(thread, Unit::Turn, 1, Caller::human())?.done.new_bytes))
}

/// Jumps to one of the first versions with entries, another one each time.
fn jump_back(subject: &mut MeasuredThread) -> Outcome<PreparedOperation<'_>> {
    let undo_status = subject.lookup.read()?.history(subject.thread).undo_status()?;
    subject.newest = undo_status.position;
    subject.turn += 1;
    Ok(jump(subject, 3 + subject.turn % 50))
}

fn jump(subject: &MeasuredThread, to: Version) -> PreparedOperation<'_> {
    Box::new(move || Ok(subject.timeline.jump(subject.thread, to, Caller::human())?.done.new_bytes))
}

/// Forks at a user message: the last one, or one at a fraction of the thread.
fn fork(subject: &mut MeasuredThread, part: u64) -> Outcome<PreparedOperation<'_>> {
    subject.turn += 1;
    let wander = if part == 1 { 0 } else { subject.turn * 31 % (subject.size / 4).max(1) };
    let at = subject.user_message_at(subject.size / part + wander)?;
    let command = Command::Fork { from: subject.take, at, name: None };
    Ok(Box::new(move || Ok(subject.change(command)?.new_bytes)))
}

/// Switches to the second take; `tidy` switches back.
fn switch(subject: &MeasuredThread) -> PreparedOperation<'_> {
    let take = subject.other;
    Box::new(move || Ok(subject.change(Command::Switch { take })?.new_bytes))
}

/// Removes the forks again; not measured.
pub(crate) fn tidy(subject: &mut MeasuredThread) -> Outcome<()> {
    let reader = subject.lookup.read()?;
    let takes = reader.state(subject.thread)?.all_takes(&reader.queries())?;
    drop(reader);
    for take in takes.iter().filter(|take| take.id != subject.take && take.id != subject.other) {
        subject.change(Command::DeleteTake { take: take.id })?;
    }
    subject.change(Command::Switch { take: subject.take })?;
    Ok(())
}
