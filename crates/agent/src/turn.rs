//! Turns: from a prompt to the last answer, with every step on disk before the next starts.
//!
//! ```text
//!   lease ─► close leftovers of a crash ─► publish prompt and state "calling"
//!                                              │
//!        ┌─────────────────────────────────────┘
//!        ▼
//!   request (pure) ─► stream ─► publish answer ─► for each call:  decide ─► publish "running"
//!        ▲               │                                            run the tool
//!        │               └ partial answer, outside of the log         publish result and files
//!        └──── hook, if configured ◄─────── all have results ◄────────────┘
//! ```
//!
//! The pure function [`retake_model::agent::step`] decides the next action; this module executes it. A turn
//! belongs to one take. Its process holds the lease of the take, which the system releases when the process
//! dies. Each step names the turn, so that a turn that was undone meanwhile stops.

mod accounting;
mod ask;
mod batch;
mod calls;
mod driver;
mod entries;
mod error;
mod event;
mod hook;
mod inbox;
mod machine;
mod model_call;
mod progress;
mod publisher;
mod session;
mod stops;
mod tools;
mod turn_handle;

use std::path::PathBuf;

use retake_model::agent::{Agent, AgentState, RetryPolicy, TurnEnd};
use retake_model::command::{Prompt, SentContextText, TurnStart, check_prompt};
use retake_model::entry::{PDF, attachment_media_of, default_role};
use retake_model::environment::Environment;
use retake_model::id::{EntryId, ProjectId, RequestId, TakeId, ThreadId, TurnId};
use retake_model::operation::{Actor, Version};
use retake_model::replay::OnConflict;
use retake_model::take::Take;
use retake_store::runtime::TurnLease;
use retake_timeline::{
    Caller, ChangeError, Command, MoveOptions, SharedChanges, Timeline, WorkingCopy, read_picture,
};

pub use calls::{PendingApproval, pending_approvals};
pub(crate) use entries::TOOL;
pub use error::TurnError;
pub use event::{Reply, TurnEvent, TurnObserver};
pub use turn_handle::{SendError, TurnHandle};

use crate::approval::ApprovalPolicy as Approval;
use crate::cancel::Cancel;
use crate::changes_since_turn;
use crate::context;
use crate::model_backend::ModelBackend;
use crate::post_tools::PostToolsHook;
use crate::provider::prices::Prices;
use driver::Driver;
use session::TurnSession;

/// Runs turns in a folder with a backend and an approval policy.
pub struct AgentRuntime {
    /// The timeline.
    pub timeline: Timeline,
    /// The working copy; `None` if file recording is off.
    pub working_copy: Option<WorkingCopy>,
    /// The working folder of tools.
    pub folder: PathBuf,
    /// The project, for remembered approvals.
    pub project: ProjectId,
    /// The model backend.
    pub backend: ModelBackend,
    /// The approval policy.
    pub approval: Approval,
    /// When to retry failed requests.
    pub retry_policy: RetryPolicy,
    /// Maximum model requests per turn.
    pub rounds: u32,
    /// Maximum tool calls per answer; further ones are refused.
    pub calls: usize,
    /// Prices of tokens.
    pub prices: Prices,
    /// Context window in tokens.
    pub window: u64,
    /// Whether the user configured the window.
    pub sized: bool,
    /// The actor of the turns, for the log.
    pub actor: Actor,
    /// The environment recorded in the log.
    pub environment: Option<Environment>,
    /// Environment variables hidden from tools.
    pub hidden: Vec<String>,
    /// The command to run after a round of tools.
    pub post_tools: Option<PostToolsHook>,
}

/// A request to run a turn.
pub struct TurnRequest {
    /// The prompt.
    pub prompt: Prompt,
    /// Thread settings to change, such as the model.
    pub settings: Vec<(String, String)>,
    /// The expected version; `None` for any.
    pub expected: Option<Version>,
    /// Id of the request, if it has an idempotency key.
    pub request: Option<RequestId>,
}

/// A request to resume a turn.
#[derive(Default)]
pub struct ResumeRequest {
    /// Thread settings to change, such as the model.
    pub settings: Vec<(String, String)>,
    /// The expected version; `None` for any.
    pub expected: Option<Version>,
    /// Id of the request, if it has an idempotency key.
    pub request: Option<RequestId>,
}

/// A request to retry a message.
pub struct RetryRequest {
    /// The take of the message.
    pub from: TakeId,
    /// The message.
    pub at: EntryId,
    /// The name of the new take; `None` for the next free one.
    pub name: Option<String>,
    /// How to resolve files that do not merge.
    pub on_conflict: OnConflict,
    /// Whether to undo changes that several commands or tools made at the same time.
    pub shared: SharedChanges,
}

/// The outcome of a turn.
#[derive(Clone, Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TurnOutcome"))]
pub struct TurnOutcome {
    /// The thread.
    pub thread: ThreadId,
    /// The take.
    pub take: TakeId,
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub how: TurnEnd,
    /// Error message.
    pub message: Option<String>,
    /// New version of the thread.
    pub version: Version,
}

impl TurnRequest {
    /// A request with a prompt and defaults.
    pub fn with(prompt: Prompt) -> Self {
        Self { prompt, settings: Vec::new(), expected: None, request: None }
    }
}

impl AgentRuntime {
    /// Runs a turn in a take until it ends. A server calls this in a thread: a refused turn returns an error,
    /// [`TurnEvent::Started`] means that it is on disk, and without an answer from [`TurnObserver::ask`] the
    /// turn waits for [`TurnHandle::decide`].
    pub fn run(
        &self,
        thread: ThreadId,
        take: TakeId,
        request: TurnRequest,
        cancel: &Cancel,
        observer: &mut dyn TurnObserver,
    ) -> Result<TurnOutcome, TurnError> {
        let lease = self.lease(take)?;
        self.check_active_take(thread, take)?;
        // Check before closing leftovers, so that a version conflict changes nothing.
        self.check_version(thread, request.expected)?;
        self.check_prompt(thread, take, &request.prompt)?;
        self.check_attachments(thread, take, &request.prompt)?;
        let (closed, lease) = self.close_leftover(thread, take, lease)?;
        let recorded = self.record_user_edits(thread)?;
        let expected = request.expected.filter(|_| !closed && !recorded);
        let request = TurnRequest { expected, ..request };
        let turn = TurnId::generate(&mut self.timeline.fresh());
        let session = TurnSession::new(self, lease, (thread, take, turn))?;
        let (start, caller) = self.start(thread, take, None, turn, &request)?;
        let done = self.timeline.change(thread, Command::StartTurn { take, start }, caller)?;
        let driver = Driver::new(self, session, AgentState::Waiting, cancel, observer);
        driver.run(done.version, done.operation)
    }

    /// Runs a turn in a new take, forked at a user message. The fork, its files and the start of the turn are
    /// one operation, which happens completely or not at all.
    pub fn retry(
        &self,
        thread: ThreadId,
        retry: RetryRequest,
        request: TurnRequest,
        cancel: &Cancel,
        observer: &mut dyn TurnObserver,
    ) -> Result<TurnOutcome, TurnError> {
        let RetryRequest { from, at, name, on_conflict, shared } = retry;
        if self.working_copy.as_ref().is_some_and(|working_copy| working_copy.worktree().is_some()) {
            return Err(TurnError::InWorktree);
        }
        // Check the provider before creating the fork.
        self.backend.check()?;
        let turn = TurnId::generate(&mut self.timeline.fresh());
        let (start, caller) = self.start(thread, from, Some(at), turn, &request)?;
        let command = Command::Retry { from, at, name, start };
        let done = match &self.working_copy {
            Some(working_copy) => {
                let move_options = MoveOptions { on_conflict, shared, ..MoveOptions::default() };
                let changed = working_copy.change(thread, command, caller, move_options)?;
                changed.done.ok_or(TurnError::Nothing)?
            }
            None => self.timeline.change(thread, command, caller)?,
        };
        let take = self.timeline.read()?.state_at(thread, done.version)?.active;
        let session = TurnSession::new(self, self.lease(take)?, (thread, take, turn))?;
        let driver = Driver::new(self, session, AgentState::Waiting, cancel, observer);
        driver.run(done.version, done.operation)
    }

    /// Resumes a turn that failed, or whose process exited or was killed.
    pub fn resume(
        &self,
        thread: ThreadId,
        take: TakeId,
        request: ResumeRequest,
        cancel: &Cancel,
        observer: &mut dyn TurnObserver,
    ) -> Result<TurnOutcome, TurnError> {
        let lease = self.lease(take)?;
        self.check_active_take(thread, take)?;
        self.check_version(thread, request.expected)?;
        let Agent { turn, state } = self.agent(thread, take)?.ok_or(TurnError::Nothing)?;
        let session = TurnSession::new(self, lease, (thread, take, turn))?;
        Driver::new(self, session, state, cancel, observer).resume(request)
    }

    /// Refuses if there is no turn to resume.
    pub fn check_resumable(take: &Take) -> Result<(), TurnError> {
        if take.agent.is_some() { Ok(()) } else { Err(TurnError::Nothing) }
    }

    /// Closes a turn that failed, or whose process exited or was killed. Returns whether there was one.
    pub fn close(&self, thread: ThreadId, take: TakeId) -> Result<bool, TurnError> {
        Ok(self.close_leftover(thread, take, self.lease(take)?)?.0)
    }

    fn lease(&self, take: TakeId) -> Result<TurnLease, TurnError> {
        self.timeline.store().lease_turn(take)?.ok_or(TurnError::Busy)
    }

    /// The agent of a take on disk.
    fn agent(&self, thread: ThreadId, take: TakeId) -> Result<Option<Agent>, TurnError> {
        let reader = self.timeline.read()?;
        let take = reader.state(thread)?.take(&reader.queries(), take)?;
        Ok(take.ok_or(TurnError::NoSuchTake)?.agent)
    }

    /// Ends the unfinished turn of a take. Returns whether there was one, and the lease.
    fn close_leftover(
        &self,
        thread: ThreadId,
        take: TakeId,
        lease: TurnLease,
    ) -> Result<(bool, TurnLease), TurnError> {
        struct NoObserver;
        impl TurnObserver for NoObserver {
            fn on_event(&mut self, _: &TurnEvent) {}
        }
        let (cancel, mut observer) = (Cancel::new(), NoObserver);
        let left = self.agent(thread, take)?;
        let turn =
            left.as_ref().map_or_else(|| TurnId::generate(&mut self.timeline.fresh()), |left| left.turn);
        let session = TurnSession::new(self, lease, (thread, take, turn))?;
        let closed = left.is_some();
        let state = left.map_or(AgentState::Waiting, |left| left.state);
        let driver = Driver::new(self, session, state, &cancel, &mut observer);
        let session = if closed { driver.close()? } else { driver.close_record()? };
        Ok((closed, session.into_lease()))
    }

    /// Tools need the files of the take: it must be active or have a worktree.
    fn check_active_take(&self, thread: ThreadId, take: TakeId) -> Result<(), TurnError> {
        let shared = self.working_copy.as_ref().is_some_and(|working_copy| working_copy.worktree().is_none());
        if shared && self.timeline.read()?.state(thread)?.active != take {
            return Err(TurnError::NotActive);
        }
        Ok(())
    }

    fn check_version(&self, thread: ThreadId, expected: Option<Version>) -> Result<(), TurnError> {
        let current = self.timeline.read()?.thread(thread)?.summary.version;
        match expected.filter(|expected| *expected != current) {
            Some(expected) => Err(ChangeError::Conflict { expected, current }.into()),
            None => Ok(()),
        }
    }

    /// Refuses an invalid prompt before anything is closed or recorded.
    fn check_prompt(&self, thread: ThreadId, take: TakeId, prompt: &Prompt) -> Result<(), TurnError> {
        let reader = self.timeline.read()?;
        let checked = match prompt {
            Prompt::Entry(entry) => check_prompt(&entry.version),
            Prompt::Draft { role } => {
                let roles = reader.settings(thread).roles()?;
                let take = reader.state(thread)?.take(&reader.queries(), take)?;
                let mut take = take.ok_or(TurnError::NoSuchTake)?;
                let role = role.as_deref().unwrap_or_else(|| default_role(&roles));
                check_prompt(&take.take_draft(role, self.timeline.now()))
            }
            Prompt::Original => Ok(()),
        };
        checked.map_err(|refusal| ChangeError::from(refusal).into())
    }

    /// Refuses documents that the model does not accept: it would answer as if they were not there.
    fn check_attachments(&self, thread: ThreadId, take: TakeId, prompt: &Prompt) -> Result<(), TurnError> {
        let check = |media: &str, bytes: usize| self.backend.check_attachment(media, bytes);
        match prompt {
            Prompt::Entry(entry) => {
                for bytes in &entry.blobs {
                    check(attachment_media_of(bytes).unwrap_or_default(), bytes.len())?;
                }
            }
            Prompt::Draft { .. } => {
                let reader = self.timeline.read()?;
                let take =
                    reader.state(thread)?.take(&reader.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
                for attached in take.attached.iter().filter(|attached| attached.media == PDF) {
                    check(
                        &attached.media,
                        read_picture(&reader, attached.picture)?.map_or(0, |bytes| bytes.len()),
                    )?;
                }
            }
            Prompt::Original => {}
        }
        Ok(())
    }

    /// Records the user's edits if the conversation is to include them. Returns whether there were any.
    fn record_user_edits(&self, thread: ThreadId) -> Result<bool, TurnError> {
        let reader = self.timeline.read()?;
        let settings = reader.state(thread)?.own_settings(&reader.queries())?;
        drop(reader);
        let Some(working_copy) = self.working_copy.as_ref().filter(|_| settings.auto_add_history) else {
            return Ok(false);
        };
        let caller = Caller { environment: self.environment.clone(), ..Caller::human() };
        Ok(working_copy.record_changes(thread, caller)?.operation.is_some())
    }

    fn start(
        &self,
        thread: ThreadId,
        take: TakeId,
        at: Option<EntryId>,
        turn: TurnId,
        request: &TurnRequest,
    ) -> Result<(TurnStart, Caller), TurnError> {
        let reader = self.timeline.read()?;
        let state = reader.state(thread)?;
        let settings = reader.settings(thread).effective_in(&state)?;
        let take = state.take(&reader.queries(), take)?.ok_or(TurnError::NoSuchTake)?;
        let before = match at {
            Some(at) => reader.entries(thread, &take).get(at)?.map_or(0, |(position, _)| position),
            None => take.entries.len(),
        };
        let wanted = !take.context_files.is_empty() || !take.screenshots.is_empty();
        let last = if wanted { context::last_context(&reader, thread, &take, before)? } else { None };
        let mut context = context::gather(&self.folder, &take, self.timeline.now(), last.as_deref());
        // A retry starts with the files of its entry, so that there are no changes.
        if settings.auto_add_history && at.is_none() {
            let history = changes_since_turn::since_last_turn(&reader, thread, take.id, self.timeline.now())?;
            context.entries.splice(0..0, history);
        }
        let system_prompt = crate::prompt::system(&settings, &self.folder);
        let sent = SentContextText { markdown: context.markdown, system_prompt };
        let start = TurnStart {
            turn,
            context: context.entries,
            prompt: request.prompt.clone(),
            settings: request.settings.clone(),
            sent: Some(sent),
        };
        let caller = Caller {
            take: None,
            actor: self.actor.clone(),
            environment: self.environment.clone(),
            turn: Some(turn),
            expected: request.expected,
            request: request.request,
        };
        Ok((start, caller))
    }
}
