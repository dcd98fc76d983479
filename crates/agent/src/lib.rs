//! The agent: turns that run, stop, fail, retry and resume on the timeline.
//!
//! ```text
//!   turn       runs a turn: lease, model requests, tools, messages     executes model::agent::step
//!   request    builds model requests                                   with model::projection
//!   provider   wire formats and HTTP        model_backend   provider or offline assistant
//!   tools      the tools                    approval        rules for tool calls
//!   setup      creates the runtime          trace           records requests, responses and calls
//!   context    context files                compress        summaries        compare   two takes
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

pub use brain::{Brain, NotCallable, Unattachable};
pub use cancel::Cancel;
pub use compress::{CompressError, Compressed, Keep, Knowing};
pub use setup::{Setup, SetupError};
pub use start_commit::check_start_commit;
pub use turn::{
    Again, Asked, Audience, Beginning, Outcome, Reply, Resuming, Sender, TurnError, TurnEvent, Unreached,
    Workshop, asked,
};
pub use usage::{ModelUse, models_used};
