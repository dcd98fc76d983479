//! Moments of files, as a person names them.
//!
//! | typed | meant |
//! |---|---|
//! | `12` | the files just after version 12 |
//! | `before the rewrite` | the files of a moment that was saved under that name |
//! | `take:main_take_1` | the files of that take |
//! | `folder` | the files as they are |
//! | `3f9c01` | a snapshot, as `retake snapshot list` names it |

use std::cell::OnceCell;

use retake_model::content::ContentId;
use retake_model::operation::{OperationKind, Version};
use retake_store::ThreadRow;
use retake_timeline::Looking;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// The files as they are.
pub(crate) const FOLDER: &str = "folder";
/// How many operations are read at a time.
const PAGE: usize = 100;

/// The files of one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Moment {
    /// What it is called, for people.
    pub(crate) name: String,
    /// The files.
    pub(crate) snapshot: ContentId,
    /// The version, where one was named.
    pub(crate) version: Option<Version>,
}

/// The moments of a thread's files.
pub(crate) struct Moments<'context> {
    context: &'context Context,
    pub(crate) thread: ThreadRow,
    folder: OnceCell<ContentId>,
}

impl<'context> Moments<'context> {
    pub(crate) fn of(context: &'context Context, thread: Option<&str>) -> Result<Self, Failure> {
        let thread = context.thread(&context.timeline()?.look()?, thread)?;
        Ok(Self { context, thread, folder: OnceCell::new() })
    }

    /// The files as they are. Looking records what was changed by hand.
    pub(crate) fn folder(&self) -> Result<Moment, Failure> {
        let snapshot = if let Some(known) = self.folder.get() {
            *known
        } else {
            let seen = self.context.desk()?.look(self.thread.summary.id, self.context.caller(None)?)?;
            *self.folder.get_or_init(|| seen.snapshot)
        };
        Ok(Moment { name: "the folder".to_owned(), snapshot, version: None })
    }

    /// The files of the moment that a person means.
    pub(crate) fn find(&self, text: &str) -> Result<Moment, Failure> {
        let text = text.trim();
        if text == FOLDER {
            return self.folder();
        }
        let looking = self.context.timeline()?.look()?;
        if let Some(take) = text.strip_prefix("take:") {
            return self.take(&looking, take);
        }
        if let Ok(version) = text.parse() {
            return self.version(&looking, version, format!("version {version}"));
        }
        if let Some(version) = looking.saved(self.thread.summary.id, text)? {
            return self.version(&looking, version, format!("{text:?}"));
        }
        let found = looking.snapshots_beginning(self.thread.summary.id, text)?;
        match found.as_slice() {
            [one] => Ok(Moment { name: format!("snapshot {}", one.short()), snapshot: *one, version: None }),
            [] => {
                let message = format!(
                    "{text:?} is no moment: name a version, a saved moment, `take:NAME`, `folder` or a snapshot; \
                     `retake history` and `retake snapshot list` show them (a path goes behind `--`)"
                );
                Err(Failure::new(Code::NotFound, message))
            }
            several => {
                let message = format!("{text:?} could be {} snapshots; give more of the id", several.len());
                Err(Failure::new(Code::Refused, message))
            }
        }
    }

    /// The files before and after one operation.
    pub(crate) fn around(&self, version: Version) -> Result<(Moment, Moment), Failure> {
        let looking = self.context.timeline()?.look()?;
        // Also says so if there is no such version.
        looking.state_at(self.thread.summary.id, version)?;
        let at = looking.files_at(self.thread.summary.id, version)?.filter(|at| at.version == version);
        let Some(at) = at else {
            let message =
                format!("version {version} did nothing to files; `retake snapshot list` shows what did");
            return Err(Failure::new(Code::NotFound, message));
        };
        let moment = |name: &str, snapshot| Moment {
            name: format!("{name} version {version}"),
            snapshot,
            version: Some(version),
        };
        Ok((moment("just before", at.files.before), moment("just after", at.files.after)))
    }

    /// The files as this thread's agent, or a move along its history, last left them: what was changed since was
    /// changed by hand. The oldest files that are known, if there was neither.
    pub(crate) fn before_hand_edits(&self) -> Result<Moment, Failure> {
        let folder = self.folder()?;
        let looking = self.context.timeline()?.look()?;
        let mut oldest = None;
        let mut before = None;
        loop {
            let page = looking.files(self.thread.summary.id, before, PAGE)?;
            let made = page.iter().find(|at| !matches!(at.kind, OperationKind::FilesSeen { .. }));
            if let Some(at) = made {
                let (name, version) = (format!("version {}", at.version), Some(at.version));
                return Ok(Moment { name, snapshot: at.files.after, version });
            }
            match page.last() {
                Some(last) => {
                    oldest = Some(last.files.before);
                    before = Some(last.version);
                }
                None => break,
            }
        }
        let snapshot = oldest.unwrap_or(folder.snapshot);
        Ok(Moment { name: "the first look".to_owned(), snapshot, version: None })
    }

    fn version(&self, looking: &Looking<'_>, version: Version, name: String) -> Result<Moment, Failure> {
        let thread = self.thread.summary.id;
        // Also says so if there is no such version.
        looking.state_at(thread, version)?;
        if let Some(at) = looking.files_at(thread, version)? {
            return Ok(Moment { name, snapshot: at.files.after, version: Some(version) });
        }
        // Before the first operation with files, they were what that operation found.
        let first = looking.files(thread, None, usize::MAX)?.pop();
        let Some(first) = first else {
            let message = "no files are known of this thread yet; `retake snapshot take` records them";
            return Err(Failure::new(Code::NotFound, message));
        };
        Ok(Moment { name, snapshot: first.files.before, version: Some(version) })
    }

    fn take(&self, looking: &Looking<'_>, text: &str) -> Result<Moment, Failure> {
        let take = looking.find_take(&self.thread, text)?.summary;
        let name = format!("take {}", take.name);
        let active = looking.state(self.thread.summary.id)?.active == take.id;
        if active && self.context.apart()?.is_none() {
            return Ok(Moment { name, ..self.folder()? });
        }
        match looking.files_of_take(self.thread.summary.id, take.id)? {
            Some(snapshot) => Ok(Moment { name, snapshot, version: None }),
            None => Err(Failure::new(Code::NotFound, format!("no files are known of take {}", take.name))),
        }
    }
}
