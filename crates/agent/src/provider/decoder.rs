//! From events to an answer, whichever the wire.

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

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// There may be more.
    More,
    /// The provider has said that this was all.
    Finished,
}

impl Decoder {
    /// At the beginning of an answer.
    pub fn new(wire: Wire) -> Self {
        let state = match wire {
            Wire::Anthropic => State::Anthropic(Anthropic::default()),
            Wire::Chat => State::Chat(Chat::default()),
            Wire::Responses => State::Responses(Responses::default()),
            Wire::Gemini => State::Gemini(Gemini),
        };
        Self { state, assembly: Assembly::new(wire) }
    }

    /// Takes one event; `on` gets what it means for a screen. Tells whether there may be more.
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

    /// Whether the model has said why it stops. What may still come are counts.
    pub fn is_whole(&self) -> bool {
        self.assembly.has_stopped()
    }

    /// The stream is over: the answer, if it is whole.
    pub fn finish(mut self, on: &mut dyn FnMut(Delta)) -> Result<Answer, CallError> {
        if !self.assembly.has_stopped() {
            self.flush();
            self.assembly.take_deltas().into_iter().for_each(on);
            let message = "the stream ended in the middle of the answer; what came is kept";
            return Err(CallError::new(Fault::Cut, message).keeping(self.partial()));
        }
        self.assembly.end_all();
        self.assembly.take_deltas().into_iter().for_each(on);
        Ok(self.assembly.into_answer())
    }

    /// What was received so far, whole or not.
    pub fn partial(mut self) -> Answer {
        self.flush();
        self.assembly.into_answer()
    }

    /// Adds text that was held back because it may have been the beginning of a tag.
    fn flush(&mut self) {
        if let State::Chat(chat) = &mut self.state {
            // Where there is no room for it, there is nothing to be done.
            let _ = chat.flush(&mut self.assembly);
        }
    }
}

/// The shape in which nearly all servers report a failure, in the middle of a stream too.
#[derive(Deserialize)]
struct ErrorEnvelope {
    error: Option<Box<RawValue>>,
}

/// What an event reports, if it is a failure.
fn failure(event: &Event) -> Option<DecodeError> {
    let named = event.name.as_deref() == Some("error");
    // Looking for the word first keeps the usual events from being parsed twice.
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
            CallError::new(Fault::Protocol, format!("the stream makes no sense: {what}"))
        }
        DecodeError::TooLarge => {
            let most = super::ANSWER_BYTES >> 20;
            CallError::new(Fault::TooLarge, format!("the answer has more than {most} MiB; what fits is kept"))
        }
        DecodeError::Server { status, kind, message } => {
            let fault = status::fault(status, &kind, &message);
            let said = if message.is_empty() { kind } else { message };
            let said = if said.is_empty() { "An error without words".to_owned() } else { said };
            let said = status::sentence(&said, status);
            let said = format!("{said} The server reported this in the middle of the answer.");
            CallError { status: Some(status), ..CallError::new(fault, said) }
        }
    }
}
