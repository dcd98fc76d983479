//! Runs the hook after a round of tools.
//!
//! ```text
//!   the last tool ends ─► "post tools" published ─► "hook started" published, the folder marked as in use
//!                                                        the hook runs
//!                                                    output and changed files published ─► the model is called
//! ```
//!
//! A hook whose process was killed does not run again: its file changes are recorded, and the model learns
//! that it was interrupted.

use std::time::Instant;

use retake_model::agent::{Event, Fault, FaultOrigin, ToolOutcome};
use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::operation::{Actor, TurnStep};
use retake_timeline::ToolPhase;

use super::TurnError;
use super::driver::{Driver, StepRecord};
use super::event::TurnEvent;
use super::progress::Report;
use super::publisher::ToolFiles;
use crate::post_tools::{HookFailure, HookTrigger, PostToolsHook};
use crate::tools::{Call, Output};
use crate::trace::TraceRecord;

/// The role of the hook's output.
const ROLE: &str = "Hook";

impl Driver<'_> {
    /// Whether the hook may have to run after this round of tools.
    pub(super) fn needs_hook(&self) -> bool {
        self.runtime.post_tools.as_ref().is_some_and(|hook| match hook.when {
            HookTrigger::Edits => self.calls.may_have_changed,
            HookTrigger::Always => true,
        })
    }

    pub(super) fn run_hook(&mut self) -> Result<(), TurnError> {
        let runs = |hook: &&PostToolsHook| hook.when == HookTrigger::Always || self.calls.has_changed;
        let Some(hook) = self.runtime.post_tools.as_ref().filter(runs) else {
            return self.advance(Event::HookEnded, Vec::new(), TurnStep::CalledAgain, Actor::Agent);
        };
        let started = StepRecord {
            event: Event::HookStarted,
            entries: Vec::new(),
            step: TurnStep::HookStarted,
            actor: Actor::Agent,
        };
        self.advance_with_files(started, &ToolFiles { phase: ToolPhase::Before, named: None })?;
        let command = hook.command_line();
        self.observer.on_event(&TurnEvent::HookStarted { command: command.clone() });
        let (call, began) = (hook.call(), Instant::now());
        self.session
            .trace()
            .log(self.runtime.timeline.now(), &TraceRecord::Call { runtime: self.runtime, call: &call })?;
        let output = self.work(&call, Some(hook.time()), progress_event)?;
        self.trace_result(&call, &output, began)?;
        let outcome = match (output.failed, self.cancel.is_set()) {
            (true, true) => ToolOutcome::Interrupted,
            (true, false) => ToolOutcome::Failed,
            (false, _) => ToolOutcome::Succeeded,
        };
        let files = self.end_hook(hook, &command, outcome, &output)?;
        self.observer.on_event(&TurnEvent::HookEnded { outcome, text: output.text, files });
        if self.cancel.is_set() { self.interrupt(Vec::new()) } else { Ok(()) }
    }

    /// Publishes the output and the file changes of the hook.
    fn end_hook(
        &mut self,
        hook: &PostToolsHook,
        command: &str,
        outcome: ToolOutcome,
        output: &Output,
    ) -> Result<u64, TurnError> {
        let stops = outcome == ToolOutcome::Failed && hook.on_failure == HookFailure::Stop;
        let event = if stops { Event::Faulted { fault: fault(command) } } else { Event::HookEnded };
        let text = format!("The hook after the tools ran `{command}`:\n\n{}", output.text.trim_end());
        let record = StepRecord {
            event,
            entries: vec![self.hook_entry(&text)],
            step: TurnStep::HookEnded { outcome },
            actor: Actor::Agent,
        };
        self.advance_with_files(record, &ToolFiles { phase: ToolPhase::After, named: None })
    }

    fn trace_result(&self, call: &Call, output: &Output, began: Instant) -> Result<(), TurnError> {
        let millis = began.elapsed().as_millis() as u64;
        let result = TraceRecord::Result { runtime: self.runtime, call, output, millis };
        self.session.trace().log(self.runtime.timeline.now(), &result)?;
        Ok(())
    }

    /// The entry for a hook whose process was killed.
    pub(super) fn closed_hook(&self) -> NewEntry {
        self.hook_entry(
            "The hook after the tools was interrupted. It may have changed files, and does not run again for \
             these calls.",
        )
    }

    fn hook_entry(&self, text: &str) -> NewEntry {
        EntryVersion::from_text(ROLE, text, self.runtime.timeline.now()).into()
    }
}

fn fault(command: &str) -> Fault {
    Fault {
        origin: FaultOrigin::Tool,
        message: format!(
            "the hook after the tools failed: `{command}`. Its output is in the conversation; `retake resume` \
             continues the turn"
        ),
        retryable: false,
        retry_after: None,
    }
}

fn progress_event(_: &Call, report: Report) -> TurnEvent {
    TurnEvent::HookProgress { text: report.output, omitted_bytes: report.omitted }
}
