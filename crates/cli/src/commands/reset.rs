//! `retake reset`

use clap::Args;
use retake_model::object::Unavailable;
use retake_model::settings::Settings;
use retake_model::state::ThreadState;
use retake_timeline::{Command, Done, LookError, Looking};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::confirm::{Answer as Said, Consent, confirm};

/// Clear entries, drafts, files and settings of a whole thread. One undo brings all back.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake reset
  retake reset --yes -t \"Fix the login\"
  retake undo                             and all is back

Takes, titles, tags, roles and history stay.")]
pub(crate) struct Arguments {
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

/// What a reset takes away.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Cleared {
    /// Entries, of all takes together.
    entries: u64,
    /// Takes that had entries, a draft or files.
    takes: u64,
    /// Drafts.
    drafts: u64,
    /// Files, context files and screenshots.
    files: u64,
    /// The names of the settings that differed from their defaults.
    settings: Vec<String>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    done: Done,
    cleared: Cleared,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let thread = context.thread(&looking, self.target.thread.as_deref())?.summary;
        let cleared = Cleared::by_reset_of(&looking, &looking.state(thread.id)?)?;
        drop(looking);
        let mut expect = self.target.expect;
        if cleared != Cleared::default() {
            let question = format!(
                "This clears {}; one `retake undo` brings all back.\nReset {:?}?",
                cleared.in_words(),
                thread.title
            );
            if confirm(&question, Consent::from_flag(self.yes))? == Said::No {
                return context.remark("Nothing was changed.");
            }
            // What was agreed to is what was shown.
            expect = expect.or((!self.yes).then_some(thread.version));
        }
        let done = context.change(thread.id, Command::Reset, expect)?;
        let answer = Answer { done, cleared };
        context.report(&answer, |out, styles| {
            if !answer.done.changed() {
                return writeln!(out, "There is nothing to reset.");
            }
            let muted = styles.muted;
            writeln!(
                out,
                "Reset the thread: cleared {}. {muted}version {}; one `retake undo` brings all back{muted:#}",
                answer.cleared.in_words(),
                answer.done.version
            )
        })
    }
}

impl Cleared {
    fn by_reset_of(looking: &Looking<'_>, state: &ThreadState) -> Result<Self, Failure> {
        let unavailable = |error: Unavailable| LookError::from(error);
        let mut cleared =
            Self { settings: Settings::default().changed(&looking.settings(state)?), ..Self::default() };
        for take in state.all_takes(&looking.queries()).map_err(unavailable)? {
            let files = (take.files.len() + take.context_files.len() + take.screenshots.len()) as u64;
            let draft = u64::from(!take.draft.is_empty());
            cleared.entries += take.entries.len();
            cleared.drafts += draft;
            cleared.files += files;
            cleared.takes += u64::from(take.entries.len() + draft + files > 0);
        }
        Ok(cleared)
    }

    fn in_words(&self) -> String {
        let mut parts = Vec::new();
        if self.entries > 0 {
            let entries = counted(self.entries, "entry", "entries");
            parts.push(format!("{entries} of {}", counted(self.takes, "take", "takes")));
        }
        if self.drafts > 0 {
            parts.push(counted(self.drafts, "draft", "drafts"));
        }
        if self.files > 0 {
            parts.push(counted(self.files, "file", "files"));
        }
        if !self.settings.is_empty() {
            parts.push(format!("the settings {}", self.settings.join(", ")));
        }
        if parts.is_empty() { "what was last sent".to_owned() } else { parts.join(", ") }
    }
}
