//! The reference model: a list of operations per thread, each with full copies of the files before and after.

use std::rc::Rc;

use retake_model::id::EntryId;

use crate::dice::Dice;
use crate::folder::Folder;

use super::replay::{Step, replay};
use super::splits::Split;
use super::story::{Author, Event, Story};

/// A fault in the model, for the controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// An undo restores the whole folder, reverting changes of others.
    UndoTakesEverybodyAlong,
    /// In a conflict, the older change wins.
    ConflictsAreOverwritten,
    /// A merge loses a change of permissions.
    PermissionsAreNotMerged,
    /// A folder is removed although it contains new files.
    FoldersGoWithWhatIsInThem,
    /// A redo does not restore the state that the undo found.
    RedoForgetsWhatUndoFound,
    /// A redo also changes files that the undo left alone.
    RedoOverwritesWhatUndoLeftAlone,
    /// A switch does not change files.
    SwitchForgetsFiles,
    /// A fork at an inherited entry only undoes changes of the take itself.
    ForksIgnoreInheritedChanges,
    /// A fork at an entry from before a promotion only undoes later changes.
    ForksStopAtAPromotion,
}

impl Mistake {
    /// Every variant.
    pub const ALL: [Self; 9] = [
        Self::UndoTakesEverybodyAlong,
        Self::ConflictsAreOverwritten,
        Self::PermissionsAreNotMerged,
        Self::FoldersGoWithWhatIsInThem,
        Self::RedoForgetsWhatUndoFound,
        Self::RedoOverwritesWhatUndoLeftAlone,
        Self::SwitchForgetsFiles,
        Self::ForksIgnoreInheritedChanges,
        Self::ForksStopAtAPromotion,
    ];
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The change that it is based on; 0 for the first.
    parent: usize,
    /// The current change after it.
    position: usize,
    /// The target of redo.
    tip: usize,
    /// The active take after it.
    take: usize,
    /// The files before and after, once known.
    files: Option<(Rc<Folder>, Rc<Folder>)>,
    /// Whether it belongs to a take rather than the thread.
    of_take: bool,
    /// Source and target, if it is a move.
    moved: Option<(usize, usize)>,
    /// The first operation of its turn.
    turn: usize,
    /// The history of each take after it.
    stories: Rc<Vec<Story>>,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    log: Vec<Operation>,
    /// Number of takes.
    pub(super) takes: usize,
    /// Whether it was promoted from another thread.
    pub(super) is_promoted: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Naive {
    /// The current files.
    pub(super) present: Folder,
    /// The files at the last snapshot.
    known: Rc<Folder>,
    pub(super) threads: Vec<Thread>,
    mistake: Option<Mistake>,
}

impl Thread {
    fn new(story: Story, files: Option<Rc<Folder>>) -> Self {
        let (files, stories) = (files.map(|files| (Rc::clone(&files), files)), Rc::new(vec![story]));
        let first = Operation {
            parent: 0,
            position: 1,
            tip: 1,
            take: 0,
            files,
            of_take: false,
            moved: None,
            turn: 1,
            stories,
        };
        Self { log: vec![first], takes: 1, is_promoted: false }
    }

    /// The history of a take.
    pub(super) fn story(&self, take: usize) -> &Story {
        &self.head().stories[take]
    }

    /// All histories, with that of one take replaced or added.
    fn with_story(&self, take: usize, story: Story) -> Rc<Vec<Story>> {
        let mut stories = self.head().stories.to_vec();
        stories.resize_with(stories.len().max(take), Story::default);
        match stories.get_mut(take) {
            Some(old) => *old = story,
            None => stories.push(story),
        }
        Rc::new(stories)
    }

    /// The files before the thread's first change.
    fn first_files(&self) -> Option<Rc<Folder>> {
        self.log.iter().skip(1).find_map(|operation| Some(Rc::clone(&operation.files.as_ref()?.0)))
    }

    /// Whether an operation activated another take.
    fn leaves(&self, version: usize, take: usize) -> bool {
        version > 1 && self.operation(version).take != take && self.operation(version - 1).take == take
    }

    /// The files of a take that an operation left or replaced in the folder, if the take's changes were the same then:
    /// moves along the log can show other files of it.
    fn shows(&self, version: usize, take: usize) -> Option<&Rc<Folder>> {
        let (before, after) = self.operation(version).files.as_ref()?;
        let leaves = self.leaves(version, take);
        if !leaves && self.operation(version).take != take {
            return None;
        }
        let then = if leaves { version - 1 } else { version };
        let same = self.last_work(then, take) == self.last_work(self.version(), take);
        same.then_some(if leaves { before } else { after })
    }

    /// The last file change of a take at a version.
    fn last_work(&self, version: usize, take: usize) -> Option<usize> {
        let way = self.way(self.operation(version).position);
        way.into_iter().find(|step| self.operation(*step).of_take && self.operation(*step).take == take)
    }

    /// Whether a turn continues after an operation.
    pub(super) fn is_within_turn(&self, version: usize) -> bool {
        let turn = self.operation(version).turn;
        self.log[version..].iter().any(|later| later.turn == turn)
    }

    /// The number of the last operation.
    pub(super) fn version(&self) -> usize {
        self.log.len()
    }

    fn operation(&self, version: usize) -> &Operation {
        &self.log[version - 1]
    }

    fn head(&self) -> &Operation {
        self.operation(self.version())
    }

    pub(super) fn active(&self) -> usize {
        self.head().take
    }

    fn is_filed(&self) -> bool {
        self.log.iter().any(|operation| operation.files.is_some())
    }

    /// The files after an operation, if known.
    pub(super) fn files_at(&self, version: usize) -> Option<Rc<Folder>> {
        self.log[..version].iter().rev().find_map(|operation| Some(Rc::clone(&operation.files.as_ref()?.1)))
    }

    /// The files before a random operation.
    pub(super) fn some_past(&self, dice: &mut Dice) -> Option<Rc<Folder>> {
        let past: Vec<_> = self.log.iter().filter_map(|operation| operation.files.as_ref()).collect();
        dice.pick(&past).map(|(before, _)| Rc::clone(before))
    }

    /// A change and its ancestors, newest first.
    fn way(&self, version: usize) -> Vec<usize> {
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

    /// The target of a redo.
    pub(super) fn redo(&self) -> Option<usize> {
        let head = self.head();
        let way = self.way(head.tip);
        let mut at = way.iter().position(|version| *version == head.position)?.checked_sub(1)?;
        while at > 0 && self.operation(way[at - 1]).turn == self.operation(way[at]).turn {
            at -= 1;
        }
        Some(way[at])
    }

    /// The target of a jump.
    pub(super) fn jump(&self, version: usize) -> usize {
        self.operation(version).position
    }

    /// The file changes of a move, and those that take precedence.
    fn steps(&self, to: usize) -> (Vec<Step>, Vec<Step>) {
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

    /// The file changes that revert all moves since the one that left this target.
    fn back_over_moves(&self, from: usize, to: usize) -> Vec<Step> {
        let mut back: Vec<Step> = Vec::new();
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

impl Naive {
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
    pub(super) fn new(threads: usize, present: Folder, mistake: Option<Mistake>) -> Self {
        let known = Rc::new(present.clone());
        let threads = (0..threads).map(|_| Thread::new(Story::default(), None)).collect();
        Self { present, known, threads, mistake }
    }

    /// Records hand edits for a thread; they are not an undo step.
    pub(super) fn look(&mut self, thread: usize) {
        let (before, after) = (Rc::clone(&self.known), Rc::new(self.present.clone()));
        if before == after {
            return;
        }
        self.known = Rc::clone(&after);
        let head = self.threads[thread].head().clone();
        let turn = self.threads[thread].version() + 1;
        let seen = Operation { files: Some((before, after)), of_take: false, moved: None, turn, ..head };
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
        let story = asked.story(take).with(Event::Change((Rc::clone(&before), Rc::clone(&after))));
        let stories = asked.with_story(take, story);
        self.change(thread, take, Some((before, after)), stories, None);
        if let Some(last) = self.threads[thread].log.last_mut() {
            last.of_take = true;
        }
    }

    fn change(
        &mut self,
        thread: usize,
        take: usize,
        files: Option<(Rc<Folder>, Rc<Folder>)>,
        stories: Rc<Vec<Story>>,
        turn: Option<usize>,
    ) {
        if let Some((_, after)) = &files {
            self.known = Rc::clone(after);
            self.present = (**after).clone();
        }
        let thread = &mut self.threads[thread];
        let (position, parent) = (thread.version() + 1, thread.head().position);
        let turn = turn.unwrap_or(position);
        let (of_take, moved) = (false, None);
        thread.log.push(Operation {
            parent,
            position,
            tip: position,
            take,
            files,
            of_take,
            moved,
            turn,
            stories,
        });
    }

    /// Adds an entry to the active take, in a new or an existing turn.
    pub(super) fn say(&mut self, thread: usize, entry: EntryId, author: Author, turn: Option<usize>) {
        let asked = &self.threads[thread];
        let take = asked.active();
        let stories = asked.with_story(take, asked.story(take).with(Event::Entry(entry, author)));
        self.change(thread, take, None, stories, turn);
    }

    /// A retry added the message again in the operation that created the take.
    pub(super) fn retried(&mut self, thread: usize, message: EntryId) {
        let asked = &mut self.threads[thread];
        let take = asked.active();
        let story = asked.story(take).with(Event::Entry(message, Author::User));
        let stories = asked.with_story(take, story);
        if let Some(last) = asked.log.last_mut() {
            last.stories = stories;
        }
    }

    /// Undo, redo or jump: makes the change at `to` current, with its files.
    pub(super) fn go(&mut self, thread: usize, to: usize) {
        let filed = self.threads[thread].is_filed();
        if filed {
            self.look(thread);
        } else if self.threads[thread].head().position == to {
            return;
        }
        let head = self.threads[thread].head().clone();
        let (from, tip) = (head.position, head.tip);
        let ahead = self.threads[thread].way(tip).contains(&to);
        let take = self.threads[thread].operation(to).take;
        let (mut back, steps) = self.threads[thread].steps(to);
        if self.mistake == Some(Mistake::RedoForgetsWhatUndoFound) {
            back.clear();
        }
        let files = filed.then(|| {
            let before = Rc::new(self.present.clone());
            let wanted = match (self.mistake, steps.last()) {
                (Some(Mistake::UndoTakesEverybodyAlong), Some((_, whole))) => (**whole).clone(),
                _ => replay(&self.present, &back, &steps, self.mistake),
            };
            self.present = wanted;
            self.known = Rc::new(self.present.clone());
            (before, Rc::clone(&self.known))
        });
        let tip = if ahead { tip } else { to };
        let moved = Some((from, to));
        let (turn, stories) =
            (self.threads[thread].version() + 1, Rc::clone(&self.threads[thread].operation(to).stories));
        let of_take = false;
        let moved = Operation { parent: from, position: to, tip, take, files, of_take, moved, turn, stories };
        self.threads[thread].log.push(moved);
    }

    /// Restores the files of another version: all, or one path and everything below it.
    pub(super) fn restore(&mut self, thread: usize, wanted: &Folder, only: Option<&std::path::Path>) {
        self.look(thread);
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
        }
    }

    /// Creates a take that continues with the current files.
    pub(super) fn branch(&mut self, thread: usize) {
        self.look(thread);
        let story = self.threads[thread].story(self.threads[thread].active()).split(None);
        self.begin_take(thread, story, &[]);
    }

    /// Creates a take at an entry of any take, undoing file changes after the entry.
    pub(super) fn split(&mut self, thread: usize, take: usize, entry: EntryId, how: Split) {
        self.look(thread);
        let asked = &self.threads[thread];
        let story = asked.story(take);
        let last = story.entries().last().map(|(last, _)| *last);
        let at = Some((entry, how == Split::Branch)).filter(|_| how != Split::Branch || last != Some(entry));
        let new = story.split(at);
        let there = if take == asked.active() { Some(Vec::new()) } else { self.steps_to(thread, take) };
        let found = asked.first_files().unwrap_or_else(|| Rc::new(self.present.clone()));
        let steps = match (there, at) {
            (None, _) => Vec::new(),
            (Some(steps), None) => steps,
            (Some(steps), Some(_)) => [steps, story.undone_since(entry, &found, self.mistake)].concat(),
        };
        self.begin_take(thread, new, &steps);
    }

    fn begin_take(&mut self, thread: usize, story: Story, steps: &[Step]) {
        let take = self.threads[thread].takes;
        self.threads[thread].takes += 1;
        let stories = self.threads[thread].with_story(take, story);
        self.carry(thread, take, steps, stories);
    }

    fn carry(&mut self, thread: usize, take: usize, steps: &[Step], stories: Rc<Vec<Story>>) {
        let before = Rc::new(self.present.clone());
        let after = Rc::new(replay(&self.present, &[], steps, self.mistake));
        self.change(thread, take, Some((before, after)), stories, None);
    }

    /// Switches takes: undoes this thread's changes in the folder since the take was left.
    pub(super) fn switch(&mut self, thread: usize, take: usize) {
        self.look(thread);
        let mut steps = self.steps_to(thread, take).unwrap_or_default();
        if self.mistake == Some(Mistake::SwitchForgetsFiles) {
            steps.clear();
        }
        let stories = Rc::clone(&self.threads[thread].head().stories);
        self.carry(thread, take, &steps, stories);
    }

    /// The file changes that restore a take; `None` if its files are unknown.
    fn steps_to(&self, thread: usize, take: usize) -> Option<Vec<Step>> {
        let asked = &self.threads[thread];
        let mut steps = Vec::new();
        for version in (1..=asked.version()).rev() {
            let Some((before, after)) = &asked.operation(version).files else { continue };
            let shown = asked.shows(version, take);
            if shown != Some(after) || asked.leaves(version, take) {
                steps.push((Rc::clone(after), Rc::clone(before)));
            }
            if shown.is_some() {
                return Some(steps);
            }
        }
        None
    }

    /// Promotes a take, with its last files.
    pub(super) fn promote(&mut self, thread: usize, take: usize) {
        let asked = &self.threads[thread];
        let files = (1..=asked.version()).rev().find_map(|version| asked.shows(version, take)).map(Rc::clone);
        let story = match &files {
            Some(files) => asked.story(take).promoted(files, asked.files_at(asked.version())),
            None => asked.story(take).clone(),
        };
        let (active, stories) = (asked.active(), Rc::clone(&asked.head().stories));
        self.change(thread, active, None, stories, None);
        self.threads.push(Thread { is_promoted: true, ..Thread::new(story, files) });
    }
}
