//! Incomplete answers: how they are reported, and whether to ask the model again.
//!
//! | stop | with content | without content |
//! |---|---|---|
//! | limit | completed, `cut at max_tokens=N` | fails: hidden reasoning took all tokens |
//! | limit, inside a call | the call does not run; the limit is raised once | – |
//! | refusal, safety | completed, the provider's reason | fails, the provider's reason |
//! | normal | completed | retried once, then fails |
//!
//! A thought counts as content: it is shown, and the report notes that nothing else arrived.
//!
//! Every retry costs money, so a request that would get the same answer is not repeated.

use retake_model::agent::{Fault, FaultOrigin};
use retake_model::entry::{Block, Fields};
use retake_model::json::Json;
use retake_model::projection::Body;

use crate::provider::{Answer, BROKEN_INPUT, Stop, broken_input};

/// Maximum attempts for an empty answer.
const EMPTY_ATTEMPTS: u32 = 2;

/// Gemini's stop reason for a call that it could not write. A retry often succeeds.
const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";

/// Calls of an answer that could not run because of invalid input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BrokenCalls {
    /// Cut at the output limit.
    Cut,
    /// Input that is not JSON: the tools and their input.
    Malformed(Vec<(String, String)>),
}

impl BrokenCalls {
    /// The invalid calls of an answer, if it has no valid ones.
    pub(super) fn of(answer: &Answer) -> Option<Self> {
        if cut_call(answer).is_some() {
            return Some(Self::Cut);
        }
        let mut malformed = Vec::new();
        for block in &answer.blocks {
            if let Block::ToolCall { name, input, .. } = block {
                broken_input(block)?;
                malformed.push((name.clone(), input.as_str().to_owned()));
            }
        }
        (!malformed.is_empty()).then_some(Self::Malformed(malformed))
    }
}

/// The invalid calls of the last answer.
#[derive(Default)]
pub(super) struct CallFailures {
    last: Option<BrokenCalls>,
    /// Whether a call was cut off at the default output limit.
    pub(super) raise_limit: bool,
}

impl CallFailures {
    /// Remembers invalid calls. Returns a fault if the previous answer failed in the same way.
    pub(super) fn repeated(&mut self, answer: &Answer, limit: Option<u64>) -> Option<Fault> {
        let broken = BrokenCalls::of(answer);
        let same = broken.is_some() && broken == self.last;
        self.last = broken;
        if self.last == Some(BrokenCalls::Cut) {
            self.raise_limit = true;
        }
        let message = match (&self.last, same) {
            (Some(BrokenCalls::Cut), true) => format!(
                "{} twice in a row, although the limit had been raised. Ask for smaller steps, or raise the limit: \
                 `retake settings set max_tokens N`.",
                capitalized(&cut_words(limit, "the tool call was"))
            ),
            (Some(BrokenCalls::Malformed(_)), true) => {
                "The model made the same malformed tool call twice in a row. Rephrase the prompt, or choose another model with --model."
                    .to_owned()
            }
            _ => return None,
        };
        Some(fault(message, false))
    }
}

/// The output limit of a request, under the name that its wire uses.
pub(super) fn output_limit(body: &Body) -> Option<u64> {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limit = names.iter().find_map(|name| body.field(name));
    limit.or_else(|| body.field("generationConfig")?.get("maxOutputTokens"))?.as_u64()
}

/// Marks a call that was cut off at the limit, so that the model and the user see why it did not run.
pub(super) fn mark_cut_call(answer: &mut Answer, limit: Option<u64>) {
    let Some(at) = cut_call(answer) else { return };
    let words = cut_words(limit, "The call was");
    let words = format!("{words} and did not run. Write less at once: split the work into several calls.");
    if let Block::ToolCall { extra, .. } = &mut answer.blocks[at] {
        let mark: Fields = [(BROKEN_INPUT.to_owned(), Json::string(&words))].into_iter().collect();
        *extra = mark.or(extra);
    }
}

/// The index of the call that was cut off at the limit, if any.
fn cut_call(answer: &Answer) -> Option<usize> {
    let last = answer.blocks.len().checked_sub(1)?;
    (answer.stop == Stop::MaxTokens && broken_input(&answer.blocks[last]).is_some()).then_some(last)
}

/// The message to the user about an unusual stop.
pub(super) fn stop_words(answer: &Answer, limit: Option<u64>) -> Option<String> {
    let thought_only = answer.blocks.iter().all(|block| matches!(block, Block::Thinking { .. }));
    match &answer.stop {
        Stop::MaxTokens if answer.stop_detail.is_none() && thought_only => Some(cut_thought(answer, limit)),
        Stop::MaxTokens if answer.stop_detail.is_none() => Some(cut_words(limit, "").trim().to_owned()),
        Stop::EndTurn if thought_only => Some("the answer contained only reasoning".to_owned()),
        Stop::EndTurn | Stop::ToolUse => None,
        Stop::MaxTokens | Stop::Refusal | Stop::Other(_) => answer.stop_detail.clone(),
    }
}

/// The fault of an empty answer.
pub(super) fn nothing_said(answer: &Answer, limit: Option<u64>, attempt: u32) -> Option<Fault> {
    if !answer.blocks.is_empty() {
        return None;
    }
    let reason = answer.stop_detail.as_deref().map(|reason| reason.trim_end_matches('.'));
    Some(match (&answer.stop, reason) {
        (Stop::MaxTokens, Some(reason)) => fault(
            format!("The model stopped before it answered: {reason}. `retake compress` makes room."),
            false,
        ),
        (Stop::MaxTokens, None) => {
            let message = format!(
                "The answer was {}. Raise the limit with `retake settings set max_tokens N`, or let the model think \
                 less.",
                cut_thought(answer, limit)
            );
            fault(message, false)
        }
        (Stop::Refusal, reason) => {
            let reason = reason.unwrap_or("no reason was given");
            fault(
                format!("The model refused to answer: {reason}. Edit the prompt, or choose another model."),
                false,
            )
        }
        (Stop::Other(word), reason) => {
            let reason = reason.map_or_else(|| word.clone(), |reason| format!("{word}: {reason}"));
            let again = word == MALFORMED_CALL && attempt < EMPTY_ATTEMPTS;
            fault(
                format!("The model stopped without an answer ({reason}). `retake resume` asks again."),
                again,
            )
        }
        (Stop::EndTurn | Stop::ToolUse, _) => {
            fault("The answer was empty. `retake resume` asks again.".to_owned(), attempt < EMPTY_ATTEMPTS)
        }
    })
}

/// The message about an answer that reached the limit with only reasoning.
fn cut_thought(answer: &Answer, limit: Option<u64>) -> String {
    let used = reasoning_tokens(answer)
        .map_or_else(String::new, |count| format!(" (reasoning took {count} tokens)"));
    format!("{} before any text{used}", cut_words(limit, "").trim())
}

fn cut_words(limit: Option<u64>, what: &str) -> String {
    match limit {
        Some(limit) => format!("{what} cut at max_tokens={limit}"),
        None => format!("{what} cut at the output limit"),
    }
}

fn capitalized(text: &str) -> String {
    let mut messages = text.chars();
    messages.next().map_or_else(String::new, |first| first.to_uppercase().chain(messages).collect())
}

fn reasoning_tokens(answer: &Answer) -> Option<u64> {
    let count = answer.usage.as_ref()?.extra.get("reasoning_tokens")?;
    count.as_str().parse().ok().filter(|count| *count > 0)
}

fn fault(message: String, retryable: bool) -> Fault {
    Fault { origin: FaultOrigin::Model, message, retryable, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_output_limit_is_detected_on_every_wire() {
        let check = |body: Value, limit: Option<u64>| {
            assert_eq!(output_limit(&Body::from(body.clone())), limit, "{body}");
        };
        check(json!({"max_tokens": 7}), Some(7));
        check(json!({"max_completion_tokens": 7}), Some(7));
        check(json!({"max_output_tokens": 7}), Some(7));
        check(json!({"generationConfig": {"maxOutputTokens": 7}}), Some(7));
        check(Value::Null, None);
    }

    #[test]
    fn an_empty_answer_fails_with_its_reason() {
        let check = |stop: Stop, detail: Option<&str>, words: &str, retried: bool| {
            let answer = Answer { stop, stop_detail: detail.map(str::to_owned), ..Answer::default() };
            let fault = nothing_said(&answer, Some(8), 1).expect("nothing");
            assert!(fault.message.contains(words), "{}", fault.message);
            assert_eq!(fault.retryable, retried, "{}", fault.message);
            assert!(nothing_said(&answer, Some(8), 2).is_some_and(|fault| !fault.retryable));
        };
        check(Stop::MaxTokens, None, "The answer was cut at max_tokens=8 before", false);
        check(Stop::MaxTokens, Some("model_context_window_exceeded"), "context_window", false);
        check(Stop::Refusal, Some("Not this."), "refused to answer: Not this. Edit", false);
        check(Stop::Refusal, None, "no reason", false);
        check(Stop::Other("OTHER".to_owned()), None, "(OTHER)", false);
        check(Stop::Other(MALFORMED_CALL.to_owned()), Some("bad"), "bad", true);
        check(Stop::EndTurn, None, "was empty", true);
        let reply = Answer { blocks: vec![Block::of_text("x")], stop: Stop::Refusal, ..Answer::default() };
        assert!(nothing_said(&reply, None, 1).is_none());
    }
}
