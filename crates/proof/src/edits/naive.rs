//! The naive model: for each thread a list of operations, each with whole copies of the files around it.

use std::rc::Rc;

use crate::dice::Dice;
use crate::folder::Folder;

use super::replay::{Step, replay};

/// Something wrong in the model, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// An undo brings the whole folder back, and with it what others have done since.
    UndoTakesEverybodyAlong,
    /// Where two changes exclude each other, the older one wins.
    ConflictsAreOverwritten,
    /// A change of permissions is lost in a merge.
    PermissionsAreNotMerged,
    /// A folder goes although someone has put something into it.
    FoldersGoWithWhatIsInThem,
    /// A redo does not bring back what the undo had found.
    RedoForgetsWhatUndoFound,
    /// A redo also changes files that the undo left alone, and with them what the user reverted or deleted.
    RedoOverwritesWhatUndoLeftAlone,
    /// A switch leaves the files as they are.
    SwitchForgetsFiles,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::UndoTakesEverybodyAlong,
        Self::ConflictsAreOverwritten,
        Self::PermissionsAreNotMerged,
        Self::FoldersGoWithWhatIsInThem,
        Self::RedoForgetsWhatUndoFound,
        Self::RedoOverwritesWhatUndoLeftAlone,
        Self::SwitchForgetsFiles,
    ];
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The change that it was made on; 0 for the first.
    parent: usize,
    /// The change that is current after it.
    position: usize,
    /// Where redo leads.
    tip: usize,
    /// The take that is active after it.
    take: usize,
    /// The files around it, once they are known.
    files: Option<(Rc<Folder>, Rc<Folder>)>,
    /// From where to where it moved, if it only moved.
    moved: Option<(usize, usize)>,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    log: Vec<Operation>,
    /// How many takes there are.
    pub(super) takes: usize,
}

/// The folder and all threads.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    /// The files as they are.
    pub(super) present: Folder,
    /// The files as they were last seen.
    known: Rc<Folder>,
    pub(super) threads: Vec<Thread>,
    mistake: Option<Mistake>,
}

impl Thread {
    fn new() -> Self {
        let first = Operation { parent: 0, position: 1, tip: 1, take: 0, files: None, moved: None };
        Self { log: vec![first], takes: 1 }
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

    /// The take that is active.
    pub(super) fn active(&self) -> usize {
        self.head().take
    }

    /// Whether any operation has files.
    fn is_filed(&self) -> bool {
        self.log.iter().any(|operation| operation.files.is_some())
    }

    /// The files just after an operation, if they are known.
    pub(super) fn files_at(&self, version: usize) -> Option<Rc<Folder>> {
        self.log[..version].iter().rev().find_map(|operation| Some(Rc::clone(&operation.files.as_ref()?.1)))
    }

    /// The files before a random operation.
    pub(super) fn some_past(&self, dice: &mut Dice) -> Option<Rc<Folder>> {
        let past: Vec<_> = self.log.iter().filter_map(|operation| operation.files.as_ref()).collect();
        dice.pick(&past).map(|(before, _)| Rc::clone(before))
    }

    /// A change and all before it that led there, newest first.
    fn way(&self, version: usize) -> Vec<usize> {
        std::iter::successors(Some(version), |version| {
            Some(self.operation(*version).parent).filter(|v| *v > 0)
        })
        .collect()
    }

    /// Where an undo leads.
    pub(super) fn undo(&self) -> Option<usize> {
        self.undo_from(self.head().position)
    }

    /// Where an undo leads from a change.
    pub(super) fn undo_from(&self, change: usize) -> Option<usize> {
        Some(self.operation(change).parent).filter(|parent| *parent > 0)
    }

    /// Where a redo leads.
    pub(super) fn redo(&self) -> Option<usize> {
        let head = self.head();
        let way = self.way(head.tip);
        way.iter().position(|version| *version == head.position).filter(|at| *at > 0).map(|at| way[at - 1])
    }

    /// Where a jump to an operation leads.
    pub(super) fn jump(&self, version: usize) -> usize {
        self.operation(version).position
    }

    /// What a move to a change does to files, after the steps that have the last word.
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

    /// Back over all moves since the one that left where this one leads to.
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
    /// So many threads at a folder with these files.
    pub(super) fn new(threads: usize, present: Folder, mistake: Option<Mistake>) -> Self {
        let known = Rc::new(present.clone());
        Self { present, known, threads: (0..threads).map(|_| Thread::new()).collect(), mistake }
    }

    /// Somebody looks at the folder on behalf of a thread; what is new is nobody's step of undo.
    pub(super) fn look(&mut self, thread: usize) {
        let (before, after) = (Rc::clone(&self.known), Rc::new(self.present.clone()));
        if before == after {
            return;
        }
        self.known = Rc::clone(&after);
        let head = self.threads[thread].head().clone();
        let seen = Operation { files: Some((before, after)), moved: None, ..head };
        self.threads[thread].log.push(seen);
    }

    /// An agent's work is recorded as a change.
    pub(super) fn record(&mut self, thread: usize) {
        let (before, after) = (Rc::clone(&self.known), Rc::new(self.present.clone()));
        if before != after {
            let take = self.threads[thread].active();
            self.change(thread, take, before, after);
        }
    }

    fn change(&mut self, thread: usize, take: usize, before: Rc<Folder>, after: Rc<Folder>) {
        self.known = Rc::clone(&after);
        self.present = (*after).clone();
        let thread = &mut self.threads[thread];
        let version = thread.version() + 1;
        let (parent, files) = (thread.head().position, Some((before, after)));
        thread.log.push(Operation { parent, position: version, tip: version, take, files, moved: None });
    }

    /// Undo, redo or jump: the change at `to` becomes the current one, and its files come along.
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
        self.threads[thread].log.push(Operation { parent: from, position: to, tip, take, files, moved });
    }

    /// The files become those of another moment: all of them, or one path with what is below it.
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
            let take = self.threads[thread].active();
            self.change(thread, take, before, Rc::new(after));
        }
    }

    /// A new take, which goes on with the files that are there.
    pub(super) fn branch(&mut self, thread: usize) {
        self.look(thread);
        let take = self.threads[thread].takes;
        self.threads[thread].takes += 1;
        let present = Rc::new(self.present.clone());
        self.change(thread, take, Rc::clone(&present), present);
    }

    /// Another take: all that this thread did in the folder since it was left is taken back.
    pub(super) fn switch(&mut self, thread: usize, take: usize) {
        self.look(thread);
        let mut steps = Vec::new();
        let mut known = false;
        let asked = &self.threads[thread];
        let way = asked.way(asked.head().position);
        for version in (1..=asked.version()).rev() {
            let operation = asked.operation(version);
            let Some((before, after)) = &operation.files else { continue };
            // Where the take was left counts on the way to the present only: moves show older files of it too.
            let on_the_way = way.contains(&version);
            let left = version > 1 && operation.take != take && asked.operation(version - 1).take == take;
            if on_the_way && operation.take == take {
                known = true;
                break;
            }
            steps.push((Rc::clone(after), Rc::clone(before)));
            if on_the_way && left {
                known = true;
                break;
            }
        }
        if !known || self.mistake == Some(Mistake::SwitchForgetsFiles) {
            steps.clear();
        }
        let before = Rc::new(self.present.clone());
        let after = Rc::new(replay(&self.present, &[], &steps, self.mistake));
        self.change(thread, take, before, after);
    }
}
