//! Who answers: the wires of the providers, and the one that needs none.
//!
//! A model is called with a request body (made by the projection of `model`), and its answer comes back as a stream
//! of events. Each wire has a decoder that is pure: events in, blocks out. What goes wrong is a [`CallError`] that
//! keeps everything that came before, so that nothing a user has seen, or paid for, is lost.
//!
//! ```text
//!   Endpoint ─┐                        one decoder per wire
//!   body ─────┴─► http ─► bytes ─► events ─► anthropic │ chat │ responses │ gemini ─► Answer
//!                  ▲                                        │                     or CallError { partial }
//!                Cancel                                     └─► Delta, for the screen
//!
//!   Heard ──────► offline ──────────────────────────────────────────────────────► the same, without a network
//! ```
//!
//! [`config`] says how a provider is reached, [`catalog`] what is known of models, [`prices`] what an answer costs.

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

/// What arrives of an answer, for a screen that shows it while it streams.
///
/// `block` is the place of the block in [`Answer::blocks`] as long as no empty block is left out at the end; it tells
/// parallel calls apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More of a text.
    Text(String),
    /// More of a thought.
    Thinking(String),
    /// A tool call begins.
    CallStarted {
        /// Which block.
        block: usize,
        /// The provider's name for the call.
        call: String,
        /// The tool.
        name: String,
    },
    /// More of a call's input, as JSON text.
    CallInput {
        /// Which block.
        block: usize,
        /// The piece.
        text: String,
    },
    /// A call's input is complete.
    CallEnded {
        /// Which block.
        block: usize,
    },
    /// What was counted so far.
    Usage(Usage),
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It has said what it had to say.
    #[default]
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It reached the most tokens that it may write.
    MaxTokens,
    /// It, or a filter before it, would not answer.
    Refusal,
    /// Anything else, in the provider's word.
    Other(String),
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it said, thought and called, in order.
    pub blocks: Vec<Block>,
    /// Tokens, if the provider counted them in a way that can be believed.
    pub usage: Option<Usage>,
    /// Why it stopped. In what is kept of a failed call, `EndTurn` says nothing.
    pub stop: Stop,
    /// The provider's own words on why it stopped, where it gives any.
    pub stop_detail: Option<String>,
    /// The model's exact name, as it says itself.
    pub model: Option<String>,
    /// The provider's name for the answer.
    pub response_id: Option<String>,
}

impl Answer {
    /// Whether nothing at all was received.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}
