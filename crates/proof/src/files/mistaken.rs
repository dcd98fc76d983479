//! A mistake made on purpose: the files move before anybody has written down that they will.
//!
//! ```text
//!   as it should be    intent ──► files ──► conversation
//!   here                          files ──► conversation        a kill at the arrow leaves them apart
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;

use retake_model::tree::Difference;
use retake_timeline::{Caller, Desk, Goal, Halves, Handling, Rules, Timeline, Unit};
use retake_workspace::apply::{OpenRoot, Request, Token, apply};
use retake_workspace::snapshot::{Options, Workspace};

use crate::violation::Trouble;

/// Undoes the last turn of the only thread of a store, in the wrong order.
pub fn undo(store: &Path, folder: &Path) -> Result<(), Trouble> {
    let timeline = Timeline::open(store, Rules::default())?;
    let project = timeline.project_if_known(folder)?;
    let thread = project.current.ok_or("there is no thread")?;
    let goal = Goal::Undo(Unit::Turn, 1);
    let desk = Desk::at(timeline.clone(), project.id, Workspace::open(folder, &[], Options::default())?);
    let ahead = desk.go(thread, goal, Caller::human(), Handling { preview: true, ..Handling::default() })?;
    let plan = ahead.files.ok_or("there are no files")?;
    let steps: Vec<Difference> = plan
        .paths
        .into_iter()
        .map(|path| Difference { path: path.path.path, before: path.before, after: path.after })
        .filter(|step| step.before != step.after)
        .collect();
    let looking = timeline.look()?;
    let never = AtomicBool::new(false);
    apply(&Request {
        root: &OpenRoot::open(folder)?,
        steps: &steps,
        objects: &looking.queries(),
        token: &Token::new("mistaken")?,
        unchanged: None,
        progress: None,
        cancel: &never,
    })?;
    drop(looking);
    desk.go(thread, goal, Caller::human(), Handling { halves: Halves::Conversation, ..Handling::default() })?;
    // The folder is as the store thinks it is only once somebody has looked.
    desk.look(thread, Caller::human())?;
    Ok(())
}
