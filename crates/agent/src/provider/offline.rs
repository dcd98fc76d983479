//! The embedded assistant: no model, no network, no key, and always the same answer.
//!
//! It carries out the instructions that it finds in the last thing the user said (see [`instructions`]), with the
//! real tools, by ordinary calls: one round for each that may change something, those that only look together. So
//! a newcomer, a demonstration and a test see whole turns, and nothing is ever paid for.
//!
//! ```text
//!   create a.txt with hi      round 1   call write            ◄ result
//!   read a.txt                round 2   call read, call list  ◄ results
//!   list
//!   say done                  round 3   "done", a summary, the end
//! ```
//!
//! Where it stands is not remembered but read off the conversation: as many calls as were made since the user spoke,
//! so many instructions are carried out.

pub mod instructions;
mod speech;

use std::time::Duration;

use retake_model::projection::{Conversation, Part, Speaker};

use super::fault::{CallError, Fault};
use super::{Answer, Delta, Stop};
use crate::cancel::Cancel;
use instructions::{Instruction, ParsedInstructions};
use speech::Speech;

/// The name of the model that it is not.
pub const MODEL: &str = "offline";

/// How often something is written while it waits.
const TICK: Duration = Duration::from_millis(100);

/// What the assistant hears.
#[derive(Clone, Copy, Debug)]
pub struct OfflineRequest<'a> {
    /// What was said so far.
    pub conversation: &'a Conversation,
    /// How often this same round was tried before: `fail` fails only the first time.
    pub attempt: u32,
}

/// Answers. `on` gets every word in order; `cancel` is heard between words, and while it waits.
pub fn answer(
    heard: &OfflineRequest<'_>,
    cancel: &Cancel,
    on: &mut dyn FnMut(Delta),
) -> Result<Answer, CallError> {
    let mut speech = Speech::new(heard.conversation.messages.len(), cancel, on);
    match round(heard, cancel, &mut speech) {
        Ok(stop) => Ok(speech.into_answer(stop)),
        Err(error) => Err(error.keeping(speech.into_answer(Stop::EndTurn))),
    }
}

/// What was said since the user last spoke, and what that was.
struct CurrentTurn<'a> {
    text: &'a str,
    calls: usize,
    /// For each result, whether it failed.
    failed: Vec<bool>,
}

fn round(heard: &OfflineRequest<'_>, cancel: &Cancel, speech: &mut Speech<'_>) -> Result<Stop, CallError> {
    let Some(since) = since(heard.conversation) else {
        speech.say(HELP)?;
        return Ok(Stop::EndTurn);
    };
    let ParsedInstructions { instructions, not_understood } = instructions::read(since.text);
    if instructions.is_empty() {
        speech.say(HELP)?;
        return Ok(Stop::EndTurn);
    }
    let mut looks_only = true;
    let mut called = false;
    for instruction in remaining(&instructions, since.calls) {
        if let Some((tool, input)) = instruction.call() {
            looks_only &= instruction.only_looks();
            if called && !looks_only {
                return Ok(Stop::ToolUse);
            }
            speech.call(tool, &input)?;
            called = true;
            if !looks_only {
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
            Instruction::Fail { always } if *always || heard.attempt == 0 => return Err(failure()),
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

/// The instructions after those that were carried out by that many calls.
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
    // What comes before the last text are files and other things to know, not what was asked for.
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
    let message = "the offline assistant failed, as it was told to";
    CallError { status: Some(500), ..CallError::new(Fault::Server, message) }
}

/// What was done, in a few words; nothing if nothing was done that is not seen anyway.
fn summary(instructions: &[Instruction], failed: &[bool], not_understood: &[String]) -> Option<String> {
    let steps: Vec<String> =
        instructions.iter().filter(|one| one.call().is_some()).map(Instruction::describe).collect();
    let wrong: Vec<&str> =
        steps.iter().zip(failed).filter(|(_, failed)| **failed).map(|(step, _)| step.as_str()).collect();
    let mut said = Vec::new();
    match (steps.len(), wrong.len()) {
        (0, _) => {}
        (all, 0) => said.push(format!("Done: {}.", few(&steps, all))),
        (all, wrongs) => said.push(format!("{wrongs} of {all} failed: {}.", few(&wrong, wrongs))),
    }
    if !not_understood.is_empty() {
        let lines = few(not_understood, not_understood.len());
        said.push(format!("Not understood, as I am only Retake's offline assistant: {lines}."));
    }
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// The first few, and how many more there are.
fn few<T: AsRef<str>>(all: &[T], count: usize) -> String {
    let shown: Vec<&str> = all.iter().take(5).map(AsRef::as_ref).collect();
    let more = if count > 5 { format!(", and {} more", count - 5) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// What it says to everything else.
const HELP: &str = "I am Retake's offline assistant: there is no model behind me. I carry out instructions, one on a line:

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
