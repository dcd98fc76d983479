//! The reference model: a list of operations per thread, each with full copies of the files before and after.

use std::rc::Rc;

use retake_model::id::EntryId;

use crate::folder::Folder;
use crate::rng::Rng;

use super::replay::{FileChange, replay};
use super::splits::SplitKind;
use super::take_history::{Author, TakeEvent, TakeHistory};

/// A fault in the model, for the controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFault {
    /// An undo restores the whole folder, reverting changes of others.
    UndoRestoresTheWholeFolder,
    /// In a conflict, the older change wins.
    ConflictsAreOverwritten,
    /// A merge loses a change of permissions.
    PermissionsAreNotMerged,
    /// A folder is removed although it contains new files.
    FoldersAreRemovedWithNewFiles,
    /// A redo does not restore the state that the undo found.
    RedoIgnoresTheFilesBeforeTheUndo,
    /// A redo also changes files that the undo left alone.
    RedoChangesFilesThatUndoKept,
    /// An undo after a redo does not change files that the first undo left alone.
    SecondUndoSkipsWhatTheFirstKept,
    /// A switch does not change files.
    SwitchKeepsFiles,
    /// A fork at an inherited entry only undoes changes of the take itself.
    ForksIgnoreInheritedChanges,
    /// A fork at an entry from before a promotion only undoes later changes.
    ForksStopAtAPromotion,
    /// A jump follows the conversation, although the files had not moved with it.
    JumpsFollowTheConversation,
    /// An inserted entry has the files of the time when it was inserted.
    InsertedEntriesHaveLaterFiles,
    /// A switch of the conversation alone brings the files of the take.
    ConversationsSwitchWithFiles,
}

impl ModelFault {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::UndoRestoresTheWholeFolder,
        Self::ConflictsAreOverwritten,
        Self::PermissionsAreNotMerged,
        Self::FoldersAreRemovedWithNewFiles,
        Self::RedoIgnoresTheFilesBeforeTheUndo,
        Self::RedoChangesFilesThatUndoKept,
        Self::SecondUndoSkipsWhatTheFirstKept,
        Self::SwitchKeepsFiles,
        Self::ForksIgnoreInheritedChanges,
        Self::ForksStopAtAPromotion,
        Self::JumpsFollowTheConversation,
        Self::InsertedEntriesHaveLaterFiles,
        Self::ConversationsSwitchWithFiles,
    ];
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The change that it is based on; 0 for the first.
    parent: usize,
    /// The current change after it.
    pub(super) position: usize,
    /// Where redo leads.
    tip: usize,
    /// The active take after it.
    pub(super) take: usize,
    /// The files before and after, once known.
    pub(super) files: Option<(Rc<Folder>, Rc<Folder>)>,
    /// The take whose files are in the folder after it. Not the active one, if only the conversation moved.
    pub(super) in_folder: usize,
    /// Whether it belongs to a take rather than the thread.
    pub(super) of_take: bool,
    /// Whether it restored files.
    pub(super) restores: bool,
    /// Whether it records changes by the user.
    pub(super) seen: bool,
    /// Source and target, if it is a move.
    pub(super) moved: Option<(usize, usize)>,
    /// The first operation of its turn, with which it is undone.
    turn: usize,
    /// The history of each take after it.
    pub(super) histories: Rc<Vec<TakeHistory>>,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) log: Vec<Operation>,
    /// Number of takes.
    pub(super) takes: usize,
    /// Whether it was promoted from another thread.
    pub(super) is_promoted: bool,
    /// The takes that were promoted, and the changes that did so.
    pub(super) promoted: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct ReferenceModel {
    /// The current files.
    pub(super) present: Folder,
    /// The files at the last snapshot.
    known: Rc<Folder>,
    pub(super) threads: Vec<Thread>,
    pub(super) mistake: Option<ModelFault>,
}

impl Thread {
    fn new(history: TakeHistory, files: Option<Rc<Folder>>) -> Self {
        let (files, histories) = (files.map(|files| (Rc::clone(&files), files)), Rc::new(vec![history]));
        let first = Operation {
            parent: 0,
            position: 1,
            tip: 1,
            take: 0,
            files,
            in_folder: 0,
            of_take: false,
            restores: false,
            seen: false,
            moved: None,
            turn: 1,
            histories,
        };
        Self { log: vec![first], takes: 1, is_promoted: false, promoted: Vec::new() }
    }

    /// The history of a take.
    pub(super) fn history(&self, take: usize) -> &TakeHistory {
        &self.head().histories[take]
    }

    /// All histories, with that of one take replaced or added.
    fn with_history(&self, take: usize, history: TakeHistory) -> Rc<Vec<TakeHistory>> {
        let mut histories = self.head().histories.to_vec();
        histories.resize_with(histories.len().max(take), TakeHistory::default);
        match histories.get_mut(take) {
            Some(old) => *old = history,
            None => histories.push(history),
        }
        Rc::new(histories)
    }

    /// The files before the thread's first change.
    fn first_files(&self) -> Option<Rc<Folder>> {
        self.log.iter().skip(1).find_map(|operation| Some(Rc::clone(&operation.files.as_ref()?.0)))
    }

    /// Returns whether the turn of an operation continues after it.
    pub(super) fn is_within_turn(&self, version: usize) -> bool {
        let turn = self.operation(version).turn;
        self.log[version..].iter().any(|later| later.turn == turn)
    }

    /// The number of the last operation.
    pub(super) fn version(&self) -> usize {
        self.log.len()
    }

    pub(super) fn operation(&self, version: usize) -> &Operation {
        &self.log[version - 1]
    }

    pub(super) fn head(&self) -> &Operation {
        self.operation(self.version())
    }

    pub(super) fn active(&self) -> usize {
        self.head().take
    }

    fn has_files(&self) -> bool {
        self.log.iter().any(|operation| operation.files.is_some())
    }

    /// The files after an operation, if known.
    pub(super) fn files_at(&self, version: usize) -> Option<Rc<Folder>> {
        self.log[..version].iter().rev().find_map(|operation| Some(Rc::clone(&operation.files.as_ref()?.1)))
    }

    /// The files before a random operation.
    pub(super) fn some_past(&self, rng: &mut Rng) -> Option<Rc<Folder>> {
        let past: Vec<_> = self.log.iter().filter_map(|operation| operation.files.as_ref()).collect();
        rng.pick(&past).map(|(before, _)| Rc::clone(before))
    }

    /// A change and its ancestors, newest first.
    pub(super) fn way(&self, version: usize) -> Vec<usize> {
        std::iter::successors(Some(version), |version| {
            Some(self.operation(*version).parent).filter(|v| *v > 0)
        })
        .collect()
    }

    /// The target of an undo.
    pub(super) fn undo(&self) -> Option<usize> {
        self.undo_from(self.head().position)
    }

    /// The target of an undo from a change.
    pub(super) fn undo_from(&self, change: usize) -> Option<usize> {
        let turn = self.operation(change).turn;
        let mut parent = self.operation(change).parent;
        while parent > 0 && self.operation(parent).turn == turn {
            parent = self.operation(parent).parent;
        }
        Some(parent).filter(|parent| *parent > 0)
    }

    /// The target of a redo: the end of the turn, or where the undo started.
    pub(super) fn redo(&self) -> Option<usize> {
        self.redo_from(self.head().position)
    }

    /// The target of a redo from a change.
    pub(super) fn redo_from(&self, change: usize) -> Option<usize> {
        let way = self.way(self.head().tip);
        let mut at = way.iter().position(|version| *version == change)?.checked_sub(1)?;
        let next = way[at];
        let positions = self.log.iter().rev().map(|operation| operation.position);
        let start = positions.into_iter().find(|position| self.way(*position).contains(&next));
        while at > 0
            && Some(way[at]) != start
            && self.operation(way[at - 1]).turn == self.operation(way[at]).turn
        {
            at -= 1;
        }
        Some(way[at])
    }

    /// The target of a jump.
    pub(super) fn jump(&self, version: usize) -> usize {
        self.operation(version).position
    }

    /// The file changes of a move, and those that take precedence.
    fn steps(&self, to: usize) -> (Vec<FileChange>, Vec<FileChange>) {
        let from = self.head().position;
        let (there, here) = (self.way(to), self.way(from));
        let changes = |version: &&usize| self.operation(**version).files.is_some();
        let files = |version: &usize| self.operation(*version).files.clone().expect("it has files");
        let back = here.iter().filter(|version| !there.contains(version)).filter(changes);
        let forth = there.iter().rev().filter(|version| !here.contains(version)).filter(changes);
        let steps = back.map(&files).map(|(before, after)| (after, before));
        let steps = steps.chain(forth.map(files)).collect();
        (self.back_over_moves(from, to), steps)
    }

    /// The steps back to the files after an operation: all later changes of the thread in the folder.
    /// Consecutive changes are merged into one step.
    fn steps_since(&self, version: usize) -> Vec<FileChange> {
        let mut steps: Vec<FileChange> = Vec::new();
        for operation in self.log[version..].iter().rev().filter(|operation| !operation.seen) {
            let Some((before, after)) = &operation.files else { continue };
            match steps.last_mut() {
                _ if before == after => {}
                Some(step) if step.1 == *after => step.1 = Rc::clone(before),
                _ => steps.push((Rc::clone(after), Rc::clone(before))),
            }
        }
        steps
    }

    /// Reverses all moves since the one that started where this one leads.
    fn back_over_moves(&self, from: usize, to: usize) -> Vec<FileChange> {
        let mut back: Vec<FileChange> = Vec::new();
        let redoes = self.way(to).contains(&from);
        for (version, old) in (1..).zip(&self.log).skip(from.max(to)).collect::<Vec<_>>().into_iter().rev() {
            let Some((before, after)) = old.files.clone() else { continue };
            match old.moved {
                Some((left, _)) => {
                    back.push((after, before));
                    let went = back.iter().any(|(from, to)| from != to);
                    if left == to {
                        return if went || redoes { back } else { Vec::new() };
                    }
                }
                None if old.position == version => break,
                None => {}
            }
        }
        Vec::new()
    }
}

impl ReferenceModel {
    /// The last operations of each thread on a path, for debugging.
    pub(super) fn outline(&self, path: &std::path::Path) -> String {
        const OPERATIONS: usize = 60;
        let mut text = String::new();
        for (thread, asked) in self.threads.iter().enumerate() {
            let skipped = asked.version().saturating_sub(OPERATIONS);
            for (operation, version) in asked.log.iter().zip(1..).skip(skipped) {
                let Operation { parent, position, take, of_take, moved, .. } = operation;
                let what = format!("\n{thread}/{version} after {parent}: position {position}, take {take}");
                text.push_str(&what);
                text.push_str(if *of_take { ", work" } else { "" });
                text.push_str(&moved.map_or(String::new(), |(from, to)| format!(", {from} to {to}")));
                if let Some((before, after)) = &operation.files {
                    let (before, after) = (before.0.get(path), after.0.get(path));
                    let change = format!(": {before:?} → {after:?}");
                    text.push_str(if before == after { ", same" } else { &change });
                }
            }
        }
        text
    }

    /// Creates threads in a folder with these files.
    pub(super) fn new(threads: usize, present: Folder, mistake: Option<ModelFault>) -> Self {
        let known = Rc::new(present.clone());
        let threads = (0..threads).map(|_| Thread::new(TakeHistory::default(), None)).collect();
        Self { present, known, threads, mistake }
    }

    /// Records manual edits for a thread; they are not an undo step.
    pub(super) fn record_hand_edits(&mut self, thread: usize) {
        let (before, after) = (Rc::clone(&self.known), Rc::new(self.present.clone()));
        if before == after {
            return;
        }
        self.known = Rc::clone(&after);
        let head = self.threads[thread].head().clone();
        let turn = self.threads[thread].version() + 1;
        let (files, in_folder) = (Some((before, after)), self.threads[thread].in_folder());
        let (of_take, restores, seen, moved) = (false, false, true, None);
        let seen = Operation { files, in_folder, of_take, restores, seen, moved, turn, ..head };
        self.threads[thread].log.push(seen);
    }

    /// Records an agent's changes.
    pub(super) fn record(&mut self, thread: usize) {
        let (before, after) = (Rc::clone(&self.known), Rc::new(self.present.clone()));
        if before != after {
            self.work(thread, before, after);
        }
    }

    /// The active take changes files.
    fn work(&mut self, thread: usize, before: Rc<Folder>, after: Rc<Folder>) {
        let asked = &self.threads[thread];
        let take = asked.active();
        let history = asked.history(take).with(TakeEvent::Change((Rc::clone(&before), Rc::clone(&after))));
        let histories = asked.with_history(take, history);
        self.change(thread, take, Some((before, after)), histories, None);
        if let Some(last) = self.threads[thread].log.last_mut() {
            last.of_take = true;
        }
    }

    pub(super) fn change(
        &mut self,
        thread: usize,
        take: usize,
        files: Option<(Rc<Folder>, Rc<Folder>)>,
        histories: Rc<Vec<TakeHistory>>,
        turn: Option<usize>,
    ) {
        if let Some((_, after)) = &files {
            self.known = Rc::clone(after);
            self.present = (**after).clone();
        }
        let thread = &mut self.threads[thread];
        let in_folder = if files.is_some() { take } else { thread.head().in_folder };
        let (position, parent) = (thread.version() + 1, thread.head().position);
        let turn = turn.unwrap_or(position);
        let (of_take, seen, moved) = (false, false, None);
        thread.log.push(Operation {
            parent,
            position,
            tip: position,
            take,
            files,
            in_folder,
            of_take,
            restores: false,
            seen,
            moved,
            turn,
            histories,
        });
    }

    /// Changes the conversation of the active take.
    pub(super) fn talk(&mut self, thread: usize, history: TakeHistory) {
        let take = self.threads[thread].active();
        let histories = self.threads[thread].with_history(take, history);
        self.change(thread, take, None, histories, None);
    }

    /// Adds an entry to the active take, in a new or an existing turn.
    pub(super) fn add_entry(&mut self, thread: usize, entry: EntryId, author: Author, turn: Option<usize>) {
        let asked = &self.threads[thread];
        let take = asked.active();
        let histories = asked.with_history(take, asked.history(take).with(TakeEvent::Entry(entry, author)));
        self.change(thread, take, None, histories, turn);
    }

    /// A retry added the message again in the operation that created the take.
    pub(super) fn retried(&mut self, thread: usize, message: EntryId) {
        let asked = &mut self.threads[thread];
        let take = asked.active();
        let history = asked.history(take).with(TakeEvent::Entry(message, Author::User));
        let histories = asked.with_history(take, history);
        if let Some(last) = asked.log.last_mut() {
            last.histories = histories;
        }
    }

    /// Undo, redo or jump: makes the change at `to` current, with its files.
    pub(super) fn move_to(&mut self, thread: usize, to: usize) {
        let last_file_operation = self.threads[thread].has_files();
        if last_file_operation {
            self.record_hand_edits(thread);
        }
        let (back, steps) = self.threads[thread].steps(to);
        self.publish_move(thread, to, last_file_operation.then_some((back, steps)));
    }

    /// Jumps: restores conversation and files as they were after an operation.
    pub(super) fn jump(&mut self, thread: usize, version: usize) {
        let to = self.threads[thread].jump(version);
        if self.mistake == Some(ModelFault::JumpsFollowTheConversation) {
            return self.move_to(thread, to);
        }
        let last_file_operation = self.threads[thread].has_files();
        if last_file_operation {
            self.record_hand_edits(thread);
        }
        let steps = self.threads[thread].steps_since(version);
        let is_there = self.threads[thread].head().position == to;
        if is_there && replay(&self.present, (&[], false), &steps, self.mistake) == self.present {
            return;
        }
        self.publish_move(thread, to, last_file_operation.then_some((Vec::new(), steps)));
    }

    /// Moves only the conversation.
    pub(super) fn go_alone(&mut self, thread: usize, to: usize) {
        self.publish_move(thread, to, None);
    }

    fn publish_move(&mut self, thread: usize, to: usize, steps: Option<(Vec<FileChange>, Vec<FileChange>)>) {
        if steps.is_none() && self.threads[thread].head().position == to {
            return;
        }
        let head = self.threads[thread].head().clone();
        let (from, tip) = (head.position, head.tip);
        let ahead = self.threads[thread].way(tip).contains(&to);
        let is_redo = self.threads[thread].way(to).contains(&from);
        let take = self.threads[thread].operation(to).take;
        let files = steps.map(|(mut back, steps)| {
            if self.mistake == Some(ModelFault::RedoIgnoresTheFilesBeforeTheUndo) {
                back.clear();
            }
            let before = Rc::new(self.present.clone());
            let whole = (self.mistake == Some(ModelFault::UndoRestoresTheWholeFolder))
                .then(|| steps.last())
                .flatten();
            let wanted = if let Some((_, whole)) = whole {
                (**whole).clone()
            } else {
                let kept = self.mistake == Some(ModelFault::SecondUndoSkipsWhatTheFirstKept);
                replay(&self.present, (&back, is_redo || kept), &steps, self.mistake)
            };
            self.present = wanted;
            self.known = Rc::new(self.present.clone());
            (before, Rc::clone(&self.known))
        });
        let tip = if ahead { tip } else { to };
        let moved = Some((from, to));
        let (turn, histories) =
            (self.threads[thread].version() + 1, Rc::clone(&self.threads[thread].operation(to).histories));
        let in_folder = if files.is_some() { take } else { head.in_folder };
        self.threads[thread].log.push(Operation {
            parent: from,
            position: to,
            tip,
            take,
            files,
            in_folder,
            of_take: false,
            restores: false,
            seen: false,
            moved,
            turn,
            histories,
        });
    }

    /// Restores the files of another version: all, or one path and everything below it.
    pub(super) fn restore(&mut self, thread: usize, wanted: &Folder, only: Option<&std::path::Path>) {
        self.record_hand_edits(thread);
        let before = Rc::new(self.present.clone());
        let after = match only {
            None => wanted.clone(),
            Some(only) => {
                let mut files = self.present.clone();
                for difference in self.present.differences(wanted) {
                    let on_the_way = difference.left.is_none() && only.starts_with(difference.path);
                    if difference.path.starts_with(only) || on_the_way {
                        files.0.remove(difference.path);
                        files.0.extend(
                            difference.right.map(|thing| (difference.path.to_owned(), thing.clone())),
                        );
                    }
                }
                files
            }
        };
        if *before != after {
            self.work(thread, before, Rc::new(after));
            if let Some(last) = self.threads[thread].log.last_mut() {
                last.restores = true;
            }
        }
    }

    /// Creates a take that continues with the current files.
    pub(super) fn branch(&mut self, thread: usize) {
        self.record_hand_edits(thread);
        let active = self.threads[thread].active();
        let history = self.threads[thread].history(active).split(None);
        let steps = self.threads[thread].steps_to(active).unwrap_or_default();
        self.begin_take(thread, history, &steps);
    }

    /// Creates a take at an entry of any take, undoing file changes after the entry.
    pub(super) fn split(&mut self, thread: usize, take: usize, entry: EntryId, how: SplitKind) {
        self.record_hand_edits(thread);
        let asked = &self.threads[thread];
        let history = asked.history(take);
        let last = history.entries().last().map(|(last, _)| *last);
        let at = Some((entry, how == SplitKind::Branch))
            .filter(|_| how != SplitKind::Branch || last != Some(entry));
        let new = history.split(at);
        let there = asked.steps_to(take);
        let found = asked.first_files().unwrap_or_else(|| Rc::new(self.present.clone()));
        let steps = match (there, at) {
            (None, _) => Vec::new(),
            (Some(steps), None) => steps,
            (Some(steps), Some(_)) => [steps, history.undone_since(entry, &found, self.mistake)].concat(),
        };
        self.begin_take(thread, new, &steps);
    }

    fn begin_take(&mut self, thread: usize, history: TakeHistory, steps: &[FileChange]) {
        let take = self.threads[thread].takes;
        self.threads[thread].takes += 1;
        let histories = self.threads[thread].with_history(take, history);
        self.carry(thread, take, steps, histories);
    }

    fn carry(&mut self, thread: usize, take: usize, steps: &[FileChange], histories: Rc<Vec<TakeHistory>>) {
        let before = Rc::new(self.present.clone());
        let after = Rc::new(replay(&self.present, (&[], false), steps, self.mistake));
        self.change(thread, take, Some((before, after)), histories, None);
    }

    /// Switches takes: undoes this thread's changes in the folder since the take was left.
    pub(super) fn switch(&mut self, thread: usize, take: usize) {
        self.record_hand_edits(thread);
        let mut steps = self.threads[thread].steps_to(take).unwrap_or_default();
        if self.mistake == Some(ModelFault::SwitchKeepsFiles) {
            steps.clear();
        }
        let histories = Rc::clone(&self.threads[thread].head().histories);
        self.carry(thread, take, &steps, histories);
    }

    /// Promotes a take to a thread, with its last files.
    pub(super) fn promote(&mut self, thread: usize, take: usize) {
        let asked = &self.threads[thread];
        let files = (1..=asked.version()).rev().find_map(|version| asked.shows(version, take)).map(Rc::clone);
        let history = match &files {
            Some(files) => asked.history(take).promoted(files, asked.files_at(asked.version())),
            None => asked.history(take).clone(),
        };
        let (active, histories) = (asked.active(), Rc::clone(&asked.head().histories));
        self.change(thread, active, None, histories, None);
        let version = self.threads[thread].version();
        self.threads[thread].promoted.push((take, version));
        self.threads.push(Thread { is_promoted: true, ..Thread::new(history, files) });
    }
}
