//! Decodes events into an answer, for all wires.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::anthropic::Anthropic;
use super::assembly::Assembly;
use super::chat::Chat;
use super::events::Event;
use super::fault::{CallError, DecodeError, Fault};
use super::gemini::Gemini;
use super::responses::Responses;
use super::status;
use super::{Answer, Delta, Wire};

/// Turns the events of a stream into an answer. Pure: no clock, no network.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    assembly: Assembly,
}

#[derive(Debug)]
enum State {
    Anthropic(Anthropic),
    Chat(Chat),
    Responses(Responses),
    Gemini(Gemini),
}

/// Whether a stream continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// More events may follow.
    More,
    /// The provider marked the end.
    Finished,
}

impl Decoder {
    /// A decoder for a new answer.
    pub fn new(wire: Wire) -> Self {
        let state = match wire {
            Wire::Anthropic => State::Anthropic(Anthropic::default()),
            Wire::Chat => State::Chat(Chat::default()),
            Wire::Responses => State::Responses(Responses::default()),
            Wire::Gemini => State::Gemini(Gemini),
        };
        Self { state, assembly: Assembly::new(wire) }
    }

    /// Processes an event and passes its deltas to `on`. Returns whether more events may follow.
    pub fn feed(&mut self, event: &Event, on: &mut dyn FnMut(Delta)) -> Result<bool, CallError> {
        let assembly = &mut self.assembly;
        let flow = match failure(event) {
            Some(broken) => Err(broken),
            None => match &mut self.state {
                State::Anthropic(state) => state.event(event, assembly),
                State::Chat(state) => state.event(event, assembly),
                State::Responses(state) => state.event(event, assembly),
                State::Gemini(state) => state.event(event, assembly),
            },
        };
        if flow.is_err() {
            self.flush();
        }
        self.assembly.take_deltas().into_iter().for_each(on);
        match flow {
            Ok(flow) => Ok(flow == Flow::More),
            Err(broken) => Err(error(broken)),
        }
    }

    /// Whether the model has reported why it stopped. Only usage counts may follow.
    pub fn is_whole(&self) -> bool {
        self.assembly.has_stopped()
    }

    /// Ends the stream; returns the answer if it is complete.
    pub fn finish(mut self, on: &mut dyn FnMut(Delta)) -> Result<Answer, CallError> {
        if !self.assembly.has_stopped() {
            self.flush();
            self.assembly.take_deltas().into_iter().for_each(on);
            let message = "the stream ended before the answer was complete; the partial answer is kept";
            return Err(CallError::new(Fault::Cut, message).keeping(self.partial()));
        }
        self.assembly.end_all();
        self.assembly.take_deltas().into_iter().for_each(on);
        Ok(self.assembly.into_answer())
    }

    /// Everything received so far, complete or not.
    pub fn partial(mut self) -> Answer {
        self.flush();
        self.assembly.into_answer()
    }

    /// Adds text that was buffered as the possible start of a tag.
    fn flush(&mut self) {
        if let State::Chat(chat) = &mut self.state {
            // If the answer is full, the text is lost.
            let _ = chat.flush(&mut self.assembly);
        }
    }
}

/// The format in which nearly all servers report failures, also inside a stream.
#[derive(Deserialize)]
struct ErrorEnvelope {
    error: Option<Box<RawValue>>,
}

/// The failure that an event reports, if any.
fn failure(event: &Event) -> Option<DecodeError> {
    let named = event.name.as_deref() == Some("error");
    // Search for the word first, so that normal events are not parsed twice.
    if !named && !event.data.contains("\"error\"") {
        return None;
    }
    let reported =
        serde_json::from_str::<ErrorEnvelope>(&event.data).ok().and_then(|reported| reported.error);
    match reported.filter(|raw| raw.get() != "null") {
        Some(_) => Some(status::reported(&event.data)),
        None if named => Some(status::reported(&event.data)),
        None => None,
    }
}

pub(super) fn error(broken: DecodeError) -> CallError {
    match broken {
        DecodeError::Protocol(what) => {
            CallError::new(Fault::Protocol, format!("the stream is invalid: {what}"))
        }
        DecodeError::TooLarge => {
            let most = super::ANSWER_BYTES >> 20;
            CallError::new(
                Fault::TooLarge,
                format!("the answer has more than {most} MiB; the rest was dropped"),
            )
        }
        DecodeError::Server { status, kind, message } => {
            let fault = status::fault(status, &kind, &message);
            let text = if message.is_empty() { kind } else { message };
            let text = if text.is_empty() { "An error without a message".to_owned() } else { text };
            let text = status::sentence(&text, status);
            let text = format!("{text} The server reported this in the middle of the answer.");
            CallError { status: Some(status), ..CallError::new(fault, text) }
        }
    }
}
