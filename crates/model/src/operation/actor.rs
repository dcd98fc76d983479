//! The author of an operation.

use minicbor::{Decode, Encode};
use serde::Serialize;

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Actor {
    /// The user.
    #[n(0)]
    Human,
    /// The agent.
    #[n(1)]
    Agent,
    /// A tool that the agent called.
    #[n(2)]
    ToolCall {
        /// The provider's name for the call.
        #[n(0)]
        call: String,
    },
    /// A client of the API.
    #[n(3)]
    Client {
        /// Its self-reported name.
        #[n(0)]
        name: String,
    },
    /// Another machine.
    #[n(4)]
    Sync,
    /// Recovery after a crash.
    #[n(5)]
    Recovery,
}

impl Actor {
    /// The agent if the name is `agent`, else a client with that name.
    pub fn named(name: &str) -> Self {
        if name == "agent" { Self::Agent } else { Self::Client { name: name.to_owned() } }
    }
}
