//! `retake` without a command: where the user is, and what to do next.

use retake_model::summary::ThreadSummary;
use serde::Serialize;

use crate::agent::AgentFlags;
use crate::arguments::Target;
use crate::commands::run::TurnTarget;
use crate::context::{Context, ResolvedTarget};
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// How many commands are suggested.
const NEXT: usize = 3;

#[derive(Serialize)]
struct Answer {
    version: &'static str,
    folder: String,
    /// The current thread, if there is one.
    thread: Option<ThreadSummary>,
    /// The name of the take, and how many entries it has.
    take: Option<String>,
    entries: Option<u64>,
    /// Its turn, if it is not complete.
    turn: Option<TurnState>,
    /// The model of the next turn, if one can be used.
    model: Option<String>,
    /// The next useful commands.
    next: Vec<Suggestion>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TurnState {
    Running,
    /// It failed, or its process ended.
    Interrupted,
}

#[derive(Serialize)]
struct Suggestion {
    command: &'static str,
    purpose: &'static str,
}

pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let answer = answer(context)?;
    context.answer(&answer, |out, styles| {
        let (muted, title, command) = (styles.muted, styles.title, styles.command);
        let fold = |text: &str| sanitize(text, LineBreaks::Fold).into_owned();
        writeln!(out, "{muted}Retake {} in {}{muted:#}", answer.version, fold(&answer.folder))?;
        match &answer.thread {
            None => writeln!(out, "No thread here yet.")?,
            Some(thread) => {
                let take = fold(answer.take.as_deref().unwrap_or_default());
                let entries = counted(answer.entries.unwrap_or(0), "entry", "entries");
                let changed = context.ago(thread.updated);
                writeln!(
                    out,
                    "{title}{}{title:#} / {take}  {muted}{entries}, {changed}{muted:#}",
                    fold(&thread.title)
                )?;
            }
        }
        match answer.turn {
            Some(TurnState::Running) => writeln!(out, "A turn is running.")?,
            Some(TurnState::Interrupted) => writeln!(out, "The last turn did not end.")?,
            None => {}
        }
        match &answer.model {
            Some(model) => writeln!(out, "{muted}Model: {}{muted:#}", fold(model))?,
            None => writeln!(out, "No model can be used; `retake models` says why.")?,
        }
        writeln!(out)?;
        let width = answer.next.iter().map(|next| next.command.len()).max().unwrap_or(0);
        for next in &answer.next {
            writeln!(
                out,
                "  {command}{:<width$}{command:#}  {muted}{}{muted:#}",
                next.command, next.purpose
            )?;
        }
        writeln!(out, "\n{muted}`retake --help` lists all commands.{muted:#}")
    })
}

fn answer(context: &Context) -> Result<Answer, Failure> {
    let found = place(context)?;
    let settings = found.as_ref().map(|target| target.settings(context)).transpose()?.unwrap_or_default();
    let model = context.backend(&settings, &AgentFlags::default()).ok().map(|backend| {
        let (provider, model) = (backend.provider(), backend.model());
        if provider == model { model.to_owned() } else { format!("{provider}/{model}") }
    });
    let resolved = match &found {
        Some(TurnTarget::Existing(resolved)) => Some(&**resolved),
        _ => None,
    };
    let turn = resolved.map(|resolved| turn_state(context, resolved)).transpose()?.flatten();
    let offline = model.as_deref() == Some("offline");
    Ok(Answer {
        version: env!("RETAKE_VERSION"),
        folder: context.directory().to_string_lossy().into_owned(),
        thread: resolved.map(|resolved| resolved.thread.summary.clone()),
        take: resolved.map(|resolved| resolved.take.name.clone()),
        entries: resolved.map(|resolved| resolved.take.entries.len()),
        turn,
        next: suggestions(resolved, turn, offline),
        model,
    })
}

/// The current thread; `None` if there is no store, which reading must not create.
fn place(context: &Context) -> Result<Option<TurnTarget>, Failure> {
    if !context.config.folder()?.join("retake.db").exists() {
        return Ok(None);
    }
    TurnTarget::find(context, &Target::default(), false).map(Some)
}

fn turn_state(context: &Context, resolved: &ResolvedTarget) -> Result<Option<TurnState>, Failure> {
    if context.timeline()?.store().is_turn_running(resolved.take.id)? {
        return Ok(Some(TurnState::Running));
    }
    Ok(resolved.take.agent.is_some().then_some(TurnState::Interrupted))
}

/// The next useful commands, the most useful first.
fn suggestions(resolved: Option<&ResolvedTarget>, turn: Option<TurnState>, offline: bool) -> Vec<Suggestion> {
    let next = |command, purpose| Suggestion { command, purpose };
    let mut list = Vec::new();
    match turn {
        Some(TurnState::Running) => {
            list.push(next("retake show", "read what it did so far"));
            list.push(next("retake steer \"…\"", "tell it something"));
            list.push(next("retake stop", "stop it"));
        }
        Some(TurnState::Interrupted) => {
            list.push(next("retake resume", "continue it where it stopped"));
            list.push(next("retake undo", "take it back, with its file changes"));
        }
        None => {}
    }
    match resolved {
        None => {
            list.push(next("retake chat", "start a conversation with the agent"));
            if offline {
                list.push(next("retake models", "choose a model; without a key, a small assistant answers"));
            }
            list.push(next("retake demo", "take a tour of one minute in a temporary folder"));
            list.push(next("retake exec -- COMMAND", "record what another program changes"));
        }
        Some(resolved) => {
            if !resolved.take.draft.trim().is_empty() {
                list.push(next("retake run --draft", "send the draft of this take"));
            }
            list.push(next("retake -c", "continue this thread in a chat"));
            if !resolved.take.entries.is_empty() {
                list.push(next("retake undo --dry-run", "see what undoing the last turn would change"));
            }
            list.push(next("retake tree", "see all threads and takes of this project"));
        }
    }
    list.truncate(NEXT);
    list
}
