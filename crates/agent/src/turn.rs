//! Turns: from a prompt to the last answer, every step on disk before the next begins.
//!
//! ```text
//!   lease ─► what a crash left is closed ─► prompt + "calling" published
//!                                              │
//!        ┌─────────────────────────────────────┘
//!        ▼
//!   request (pure) ─► stream ─► answer published ─► for each call:  decided ─► "runs" published
//!        ▲               │                                              tool runs
//!        │               └ so far, beside the log                       result + files published
//!        └───────────────────────────────── all have results ◄──────────────┘
//! ```
//!
//! What comes next is decided by [`retake_model::agent::step`], which is pure; this module carries it out. A turn
//! belongs to one take. Whoever runs it holds the take's lease, which the system takes away when the process dies; and
//! each step names the turn, so that one that was undone meanwhile stops by itself.

mod ask;
mod batch;
mod calls;
mod driver;
mod entries;
mod error;
mod event;
mod inbox;
mod letters;
mod listen;
mod progress;
mod stops;
mod tools;

use std::path::PathBuf;

use retake_model::agent::{Ended, Policy};
use retake_model::command::{Prompt, SentText, Start, check_prompt};
use retake_model::entry::{PDF, attachment_media_of, default_role};
use retake_model::id::{EntryId, ProjectId, RequestId, TakeId, ThreadId, TurnId};
use retake_model::operation::{Actor, Version};
use retake_model::replay::OnConflict;
use retake_model::surroundings::Surroundings;
use retake_model::take::Take;
use retake_timeline::{Caller, ChangeError, Command, Desk, Handling, SharedChanges, Timeline};

pub use calls::{Asked, asked};
pub(crate) use entries::TOOL;
pub use error::TurnError;
pub use event::{Audience, Reply, TurnEvent};
pub use letters::{Sender, Unreached};

use crate::approval::Policy as Approval;
use crate::between;
use crate::brain::Brain;
use crate::cancel::Cancel;
use crate::context;
use crate::provider::prices::Prices;
use driver::Driver;

/// Where turns run, and by which rules.
pub struct Workshop {
    /// The timeline.
    pub timeline: Timeline,
    /// The folder with its files; `None` if files are not kept of it.
    pub desk: Option<Desk>,
    /// The folder that tools work in.
    pub folder: PathBuf,
    /// The project, for what is remembered as allowed.
    pub project: ProjectId,
    /// Who answers.
    pub brain: Brain,
    /// What tools may do without being asked about.
    pub approval: Approval,
    /// How patient the agent is with a provider.
    pub patience: Policy,
    /// How often a model is called in one turn before a person has to look.
    pub rounds: u32,
    /// How many tool calls of one answer run; the others get a result that says so.
    pub calls: usize,
    /// What tokens cost.
    pub prices: Prices,
    /// How many tokens the model can be given.
    pub window: u64,
    /// Whether the user configured that.
    pub sized: bool,
    /// Who asks for turns, for the log.
    pub actor: Actor,
    /// Where it all happens, for the log.
    pub surroundings: Option<Surroundings>,
    /// Environment variables that no tool sees.
    pub hidden: Vec<String>,
}

/// What a turn begins with.
pub struct Beginning {
    /// What the person asks.
    pub prompt: Prompt,
    /// Settings that hold from here on, such as another model.
    pub settings: Vec<(String, String)>,
    /// The version that the caller saw; `None` if any will do.
    pub expected: Option<Version>,
    /// The request that asks for it, if it has a name.
    pub request: Option<RequestId>,
}

/// What a turn that stands still goes on with.
#[derive(Default)]
pub struct Resuming {
    /// Settings that hold from here on, such as another model.
    pub settings: Vec<(String, String)>,
    /// The version that the caller saw; `None` if any will do.
    pub expected: Option<Version>,
    /// The request that asks for it, if it has a name.
    pub request: Option<RequestId>,
}

/// What is tried again.
pub struct Again {
    /// The take that the message is in.
    pub from: TakeId,
    /// The message.
    pub at: EntryId,
    /// The name of the new take; `None` for the next free one.
    pub name: Option<String>,
    /// What becomes of files that do not merge.
    pub on_conflict: OnConflict,
    /// What becomes of changes that several runs made together.
    pub shared: SharedChanges,
}

/// A turn that ended, or stands still.
#[derive(Clone, Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TurnOutcome"))]
pub struct Outcome {
    /// The thread.
    pub thread: ThreadId,
    /// The take.
    pub take: TakeId,
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub how: Ended,
    /// What went wrong.
    pub message: Option<String>,
    /// The thread's version now.
    pub version: Version,
}

impl Beginning {
    /// A turn that begins with that, whatever the version.
    pub fn with(prompt: Prompt) -> Self {
        Self { prompt, settings: Vec::new(), expected: None, request: None }
    }
}

impl Workshop {
    /// Runs a turn in a take, and returns when it has ended. A server lets a thread of its own do that: what stands
    /// against the turn comes back as the error, that it is on disk is heard as [`TurnEvent::Started`], and where
    /// [`Audience::ask`] knows no answer the turn waits for [`Sender::decide`].
    pub fn run(
        &self,
        thread: ThreadId,
        take: TakeId,
        beginning: Beginning,
        cancel: &Cancel,
        audience: &mut dyn Audience,
    ) -> Result<Outcome, TurnError> {
        let mut driver = Driver::lease(self, thread, take, cancel, audience)?;
        self.check_here(thread, take)?;
        // Before anything is closed: who expects another version wants nothing changed.
        self.check_version(thread, beginning.expected)?;
        self.check_prompt(thread, take, &beginning.prompt)?;
        self.check_attachments(thread, take, &beginning.prompt)?;
        let closed = driver.close_leftover()?;
        let recorded = self.record_hand_edits(thread)?;
        let expected = beginning.expected.filter(|_| !closed && !recorded);
        let beginning = Beginning { expected, ..beginning };
        let (start, caller) = self.start(thread, take, None, driver.turn(), &beginning)?;
        let done = self.timeline.change(thread, Command::StartTurn { take, start }, caller)?;
        driver.started(done.version, done.operation)?;
        driver.drive()
    }

    /// Runs a turn in a take of its own, forked at a user message. Fork, files and the turn's beginning are one
    /// operation: if any of it fails, nothing has happened.
    pub fn retry(
        &self,
        thread: ThreadId,
        again: Again,
        beginning: Beginning,
        cancel: &Cancel,
        audience: &mut dyn Audience,
    ) -> Result<Outcome, TurnError> {
        let Again { from, at, name, on_conflict, shared } = again;
        if self.desk.as_ref().is_some_and(|desk| desk.apart().is_some()) {
            return Err(TurnError::Apart);
        }
        // A provider that cannot be called at all is better known before there is a fork.
        self.brain.check()?;
        let turn = TurnId::fresh(&mut self.timeline.fresh());
        let (start, caller) = self.start(thread, from, Some(at), turn, &beginning)?;
        let command = Command::Retry { from, at, name, start };
        let done = match &self.desk {
            Some(desk) => {
                let handling = Handling { on_conflict, shared, ..Handling::default() };
                let changed = desk.change(thread, command, caller, handling)?;
                changed.done.ok_or(TurnError::Nothing)?
            }
            None => self.timeline.change(thread, command, caller)?,
        };
        let take = self.timeline.look()?.state_at(thread, done.version)?.active;
        let mut driver = Driver::lease(self, thread, take, cancel, audience)?;
        driver.take_up(turn);
        driver.started(done.version, done.operation)?;
        driver.drive()
    }

    /// Goes on with a turn that failed, or that its program did not live to end.
    pub fn resume(
        &self,
        thread: ThreadId,
        take: TakeId,
        resuming: Resuming,
        cancel: &Cancel,
        audience: &mut dyn Audience,
    ) -> Result<Outcome, TurnError> {
        let mut driver = Driver::lease(self, thread, take, cancel, audience)?;
        self.check_here(thread, take)?;
        self.check_version(thread, resuming.expected)?;
        driver.resume(resuming)?;
        driver.drive()
    }

    /// Refuses where there is no turn to resume.
    pub fn check_resumable(take: &Take) -> Result<(), TurnError> {
        if take.agent.is_some() { Ok(()) } else { Err(TurnError::Nothing) }
    }

    /// Ends a turn that failed, or that its program did not live to end, without going on with it. Says whether there
    /// was one.
    pub fn close(&self, thread: ThreadId, take: TakeId) -> Result<bool, TurnError> {
        struct Nobody;
        impl Audience for Nobody {
            fn hear(&mut self, _: &TurnEvent) {}
        }
        let cancel = Cancel::new();
        let mut audience = Nobody;
        Driver::lease(self, thread, take, &cancel, &mut audience)?.close_leftover()
    }

    /// Tools work on the files of the take that is being worked on, or that has its folder for itself.
    fn check_here(&self, thread: ThreadId, take: TakeId) -> Result<(), TurnError> {
        let shared = self.desk.as_ref().is_some_and(|desk| desk.apart().is_none());
        if shared && self.timeline.look()?.state(thread)?.active != take {
            return Err(TurnError::NotActive);
        }
        Ok(())
    }

    fn check_version(&self, thread: ThreadId, expected: Option<Version>) -> Result<(), TurnError> {
        let current = self.timeline.look()?.thread(thread)?.summary.version;
        match expected.filter(|expected| *expected != current) {
            Some(expected) => Err(ChangeError::Conflict { expected, current }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a prompt that cannot begin a turn, before anything is closed or recorded for it.
    fn check_prompt(&self, thread: ThreadId, take: TakeId, prompt: &Prompt) -> Result<(), TurnError> {
        let looking = self.timeline.look()?;
        let checked = match prompt {
            Prompt::Entry(entry) => check_prompt(&entry.version),
            Prompt::Draft { role } => {
                let roles = looking.effective_roles(thread)?;
                let take = looking.state(thread)?.take(&looking.queries(), take)?;
                let mut take = take.ok_or(TurnError::NoSuchTake)?;
                let role = role.as_deref().unwrap_or_else(|| default_role(&roles));
                check_prompt(&take.take_draft(role, self.timeline.now()))
            }
            Prompt::Same => Ok(()),
        };
        checked.map_err(|refusal| ChangeError::from(refusal).into())
    }

    /// Refuses documents that the model cannot be sent: it would answer as if they were not there.
    fn check_attachments(&self, thread: ThreadId, take: TakeId, prompt: &Prompt) -> Result<(), TurnError> {
        let check = |media: &str, bytes: usize| self.brain.check_attachment(media, bytes);
        match prompt {
            Prompt::Entry(entry) => {
                for bytes in &entry.blobs {
                    check(attachment_media_of(bytes).unwrap_or_default(), bytes.len())?;
                }
            }
            Prompt::Draft { .. } => {
                let looking = self.timeline.look()?;
                let take =
                    looking.state(thread)?.take(&looking.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
                for attached in take.attached.iter().filter(|attached| attached.media == PDF) {
                    check(
                        &attached.media,
                        looking.picture(attached.picture)?.map_or(0, |bytes| bytes.len()),
                    )?;
                }
            }
            Prompt::Same => {}
        }
        Ok(())
    }

    /// Records hand edits where the conversation is told of them. Says whether there were some.
    fn record_hand_edits(&self, thread: ThreadId) -> Result<bool, TurnError> {
        let looking = self.timeline.look()?;
        let settings = looking.settings(&looking.state(thread)?)?;
        drop(looking);
        let Some(desk) = self.desk.as_ref().filter(|_| settings.auto_add_history) else { return Ok(false) };
        let caller = Caller { surroundings: self.surroundings.clone(), ..Caller::human() };
        Ok(desk.look(thread, caller)?.operation.is_some())
    }

    fn start(
        &self,
        thread: ThreadId,
        take: TakeId,
        at: Option<EntryId>,
        turn: TurnId,
        beginning: &Beginning,
    ) -> Result<(Start, Caller), TurnError> {
        let looking = self.timeline.look()?;
        let state = looking.state(thread)?;
        let settings = looking.effective_settings_in(thread, &state)?;
        let take = state.take(&looking.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
        let before = match at {
            Some(at) => looking.entry(&take, at)?.map_or(0, |(position, _)| position),
            None => take.entries.len(),
        };
        let wanted = !take.context_files.is_empty() || !take.screenshots.is_empty();
        let last = if wanted { context::last_given(&looking, thread, &take, before)? } else { None };
        let mut context = context::gather(&self.folder, &take, self.timeline.now(), last.as_deref());
        // A retry begins with the files of its entry: nothing happened since.
        if settings.auto_add_history && at.is_none() {
            let history = between::since_last_turn(&looking, thread, take.id, self.timeline.now())?;
            context.entries.splice(0..0, history);
        }
        let system_prompt = crate::prompt::system(&settings, &self.folder);
        let sent = SentText { markdown: context.markdown, system_prompt };
        let start = Start {
            turn,
            context: context.entries,
            prompt: beginning.prompt.clone(),
            settings: beginning.settings.clone(),
            sent: Some(sent),
        };
        let caller = Caller {
            take: None,
            actor: self.actor.clone(),
            surroundings: self.surroundings.clone(),
            turn: Some(turn),
            expected: beginning.expected,
            request: beginning.request,
        };
        Ok((start, caller))
    }
}
