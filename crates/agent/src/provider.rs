//! Model providers: their wires, and the offline assistant that needs none.
//!
//! A call sends a request body (built by the projection in `model`) and reads the answer as a stream of
//! events. Each wire has a pure decoder: events in, blocks out. A failure is a [`CallError`] with everything
//! received so far, so that nothing a user has seen or paid for is lost.
//!
//! ```text
//!   Endpoint ─┐                        one decoder per wire
//!   body ─────┴─► http ─► bytes ─► events ─► anthropic │ chat │ responses │ gemini ─► Answer
//!                  ▲                                        │                     or CallError { partial }
//!                Cancel                                     └─► Delta, for the screen
//!
//!   OfflineRequest ─► offline ───────────────────────────────────────────────────► the same, offline
//! ```
//!
//! [`config`] describes how to reach a provider, [`catalog`] the models, [`prices`] the cost of an answer.

mod anthropic;
mod assembly;
#[cfg(feature = "bedrock")]
mod aws_frames;
pub mod catalog;
mod chat;
pub mod config;
mod decoder;
mod details;
mod endpoint;
mod events;
mod fault;
mod gemini;
mod header_secrets;
mod http;
pub mod key_store;
pub mod known;
mod lenient;
pub mod live;
pub mod offline;
mod platform;
pub mod prices;
mod responses;
mod secret;
mod sign_in;
mod status;
mod stream_reader;
mod think_tags;
mod usage;

use retake_model::entry::{Block, Usage};
pub use retake_model::projection::{Dialect, Wire};

pub use assembly::{ANSWER_BYTES, BROKEN_INPUT, broken_input};
pub use decoder::Decoder;
pub use endpoint::{Endpoint, EndpointError, Timeouts};
pub use events::{Event, EventReader};
pub use fault::{CallError, Fault};
pub use http::Client;
pub use platform::{Platform, plain_model};
pub use secret::Secret;
pub use sign_in::{SignIn, TokenSource};

/// A piece of an answer, for display while it streams.
///
/// `block` is the index in [`Answer::blocks`], unless empty blocks are removed at the end; it distinguishes
/// parallel calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More of a text.
    Text(String),
    /// More of a thought.
    Thinking(String),
    /// A tool call begins.
    CallStarted {
        /// The block.
        block: usize,
        /// The provider's id for the call.
        call: String,
        /// The tool.
        name: String,
    },
    /// More of a call's input, as JSON text.
    CallInput {
        /// The block.
        block: usize,
        /// The piece.
        text: String,
    },
    /// A call's input is complete.
    CallEnded {
        /// The block.
        block: usize,
    },
    /// Token usage so far.
    Usage(Usage),
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// The answer is complete.
    #[default]
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It reached the output limit.
    MaxTokens,
    /// The model or a filter refused to answer.
    Refusal,
    /// Another reason, in the provider's term.
    Other(String),
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Text, thoughts and calls, in order.
    pub blocks: Vec<Block>,
    /// Token usage, if the provider's counts are plausible.
    pub usage: Option<Usage>,
    /// Why the model stopped. In the partial answer of a failed call, `EndTurn` has no meaning.
    pub stop: Stop,
    /// The provider's own explanation of why the model stopped, if any.
    pub stop_detail: Option<String>,
    /// The exact name of the model, as reported by the provider.
    pub model: Option<String>,
    /// The provider's id for the answer.
    pub response_id: Option<String>,
}

impl Answer {
    /// Whether nothing was received.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}
