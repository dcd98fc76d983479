//! The offline assistant: deterministic, without model, network or key.
//!
//! It executes the instructions in the user's last message (see [`instructions`]) with the real tools, by
//! ordinary calls: one round for each call that may change something, one for consecutive read-only calls. So
//! new users, demonstrations and tests get complete turns at no cost.
//!
//! ```text
//!   create a.txt with hi      round 1   call write            ◄ result
//!   read a.txt                round 2   call read, call list  ◄ results
//!   list
//!   say done                  round 3   "done", a summary, the end
//! ```
//!
//! It stores no position: the number of calls since the user's last message is the number of instructions that are
//! done.

pub mod instructions;
mod speech;

use std::time::Duration;

use retake_model::projection::{Conversation, Part, Speaker};

use super::fault::{CallError, Fault};
use super::{Answer, Delta, Stop};
use crate::cancel::Cancel;
use instructions::{Instruction, ParsedInstructions};
use speech::Speech;

/// The model name that answers carry.
pub const MODEL: &str = "offline";

/// Interval of output while it waits.
const TICK: Duration = Duration::from_millis(100);

/// The input of the assistant.
#[derive(Clone, Copy, Debug)]
pub struct OfflineRequest<'a> {
    /// The conversation so far.
    pub conversation: &'a Conversation,
    /// Number of earlier attempts at this round: `fail` fails only the first time.
    pub attempt: u32,
}

/// Produces the answer. Calls `on` for every word in order; checks `cancel` between words and while it waits.
pub fn answer(
    request: &OfflineRequest<'_>,
    cancel: &Cancel,
    on: &mut dyn FnMut(Delta),
) -> Result<Answer, CallError> {
    let mut speech = Speech::new(request.conversation.messages.len(), cancel, on);
    match round(request, cancel, &mut speech) {
        Ok(stop) => Ok(speech.into_answer(stop)),
        Err(error) => Err(error.keeping(speech.into_answer(Stop::EndTurn))),
    }
}

/// The user's last message, and the calls and results since.
struct CurrentTurn<'a> {
    text: &'a str,
    calls: usize,
    /// For each result, whether it failed.
    failed: Vec<bool>,
}

fn round(request: &OfflineRequest<'_>, cancel: &Cancel, speech: &mut Speech<'_>) -> Result<Stop, CallError> {
    let Some(since) = since(request.conversation) else {
        speech.say(HELP)?;
        return Ok(Stop::EndTurn);
    };
    let ParsedInstructions { instructions, not_understood } = instructions::read(since.text);
    if instructions.is_empty() {
        speech.say(HELP)?;
        return Ok(Stop::EndTurn);
    }
    let mut reads_only = true;
    let mut called = false;
    for instruction in remaining(&instructions, since.calls) {
        if let Some((tool, input)) = instruction.call() {
            reads_only &= instruction.is_read_only();
            if called && !reads_only {
                return Ok(Stop::ToolUse);
            }
            speech.call(tool, &input)?;
            called = true;
            if !reads_only {
                return Ok(Stop::ToolUse);
            }
            continue;
        }
        if called {
            return Ok(Stop::ToolUse);
        }
        match instruction {
            Instruction::Say(text) => speech.say(text)?,
            Instruction::Think(text) => speech.think(text)?,
            Instruction::Wait(seconds) => wait(*seconds, cancel, speech)?,
            Instruction::Fail { always } if *always || request.attempt == 0 => return Err(failure()),
            Instruction::Ask(text) => {
                speech.say(text)?;
                return Ok(Stop::EndTurn);
            }
            _ => {}
        }
    }
    if called {
        return Ok(Stop::ToolUse);
    }
    if let Some(summary) = summary(&instructions, &since.failed, &not_understood) {
        speech.say(&summary)?;
    }
    Ok(Stop::EndTurn)
}

/// The instructions that remain after this many calls.
fn remaining(instructions: &[Instruction], calls: usize) -> &[Instruction] {
    let done = |at: &usize| instructions[..*at].iter().filter(|one| one.call().is_some()).count() == calls;
    let start = (0..=instructions.len()).find(done).unwrap_or(instructions.len());
    &instructions[start..]
}

fn since(conversation: &Conversation) -> Option<CurrentTurn<'_>> {
    let messages = &conversation.messages;
    let spoken = |part: &'_ Part| matches!(part, Part::Text { .. });
    let last =
        messages.iter().rposition(|one| one.speaker == Speaker::User && one.parts.iter().any(spoken))?;
    // Earlier texts are context, such as files; the last one is the request.
    let text = messages[last].parts.iter().rev().find_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })?;
    let after = || messages[last + 1..].iter().flat_map(|message| &message.parts);
    let failed = after().filter_map(|part| match part {
        Part::Result { failed, .. } => Some(*failed),
        _ => None,
    });
    let calls = after().filter(|part| matches!(part, Part::Call { .. })).count();
    Some(CurrentTurn { text, calls, failed: failed.collect() })
}

fn wait(seconds: f64, cancel: &Cancel, speech: &mut Speech<'_>) -> Result<(), CallError> {
    speech.say("Waiting")?;
    let ticks = (seconds / TICK.as_secs_f64()).round() as u64;
    for _ in 0..ticks {
        cancel.wait_timeout(TICK);
        speech.add(" .")?;
    }
    Ok(())
}

fn failure() -> CallError {
    let message = "the offline assistant failed, as requested";
    CallError { status: Some(500), ..CallError::new(Fault::Server, message) }
}

/// A short summary of the work; `None` if the answer already shows everything.
fn summary(instructions: &[Instruction], failed: &[bool], not_understood: &[String]) -> Option<String> {
    let steps: Vec<String> =
        instructions.iter().filter(|one| one.call().is_some()).map(Instruction::describe).collect();
    let wrong: Vec<&str> =
        steps.iter().zip(failed).filter(|(_, failed)| **failed).map(|(step, _)| step.as_str()).collect();
    let mut sentences = Vec::new();
    match (steps.len(), wrong.len()) {
        (0, _) => {}
        (all, 0) => sentences.push(format!("Done: {}.", few(&steps, all))),
        (all, wrongs) => sentences.push(format!("{wrongs} of {all} failed: {}.", few(&wrong, wrongs))),
    }
    if !not_understood.is_empty() {
        let lines = few(not_understood, not_understood.len());
        sentences.push(format!("I am only Retake's offline assistant, and did not understand: {lines}."));
    }
    (!sentences.is_empty()).then(|| sentences.join("\n\n"))
}

/// The first few, and the number of the rest.
fn few<T: AsRef<str>>(all: &[T], count: usize) -> String {
    let shown: Vec<&str> = all.iter().take(5).map(AsRef::as_ref).collect();
    let more = if count > 5 { format!(", and {} more", count - 5) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The answer to all other messages.
const HELP: &str = "I am Retake's offline assistant, not a model. I follow instructions, one per line:

    create PATH with TEXT            (or a fenced block below it)
    edit PATH: replace \"OLD\" with \"NEW\"
    read PATH · list [PATH] · glob PATTERN · search \"TEXT\" [in PATH]
    run COMMAND
    say TEXT · think TEXT · ask TEXT
    wait SECONDS · fail · fail always

For a real model, give Retake a key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or run one on this machine (Ollama, \
llama.cpp, vLLM), and choose it with the settings provider and model.";

#[cfg(test)]
mod tests;
