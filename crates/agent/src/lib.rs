//! The agent: turns that run, stop, fail, retry and resume on the timeline.
//!
//! ```text
//!   turn       from a prompt to the last answer: lease, stream, tools, letters      carries out model::agent::step
//!   request    what a model is asked                                                by model::projection
//!   provider   how it is called                brain   who is called
//!   tools      what it can do in a folder      approval   whether it may
//!   setup      from what is configured to where turns run
//!   context, compress, compare                 comms      what was said, written down
//! ```

pub mod approval;
mod between;
mod brain;
mod calibration;
mod cancel;
mod comms;
pub mod compare;
mod compress;
mod context;
#[doc(hidden)]
pub mod fault_server;
pub mod prompt;
pub mod provider;
mod request;
pub mod setup;
mod start_commit;
pub mod tools;
mod turn;
mod usage;

pub use brain::{Brain, NotCallable};
pub use cancel::Cancel;
pub use compress::{CompressError, Compressed, Keep, Knowing};
pub use setup::{Setup, SetupError};
pub use start_commit::check_start_commit;
pub use turn::{
    Again, Asked, Audience, Beginning, Outcome, Reply, Resuming, Sender, TurnError, TurnEvent, Unreached,
    Workshop, asked,
};
pub use usage::{ModelUse, models_used};
