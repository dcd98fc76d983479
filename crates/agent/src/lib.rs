//! The agent: turns that run, stop, fail, retry and resume on the timeline.
//!
//! ```text
//!   turn       runs a turn: lease, model requests, tools, messages     executes model::agent::step
//!   request    builds model requests                                   with model::projection
//!   provider   wire formats and HTTP        model_backend   provider or offline assistant
//!   tools      the tools                    approval        rules for tool calls
//!   setup      creates the runtime          trace           records requests, responses and calls
//!   context    context files                compress        summaries        compare   takes
//!   context_size   what the next request holds
//! ```

pub mod approval;
mod calibration;
mod cancel;
mod changes_since_turn;
pub mod compare;
mod compress;
mod context;
mod context_size;
mod model_backend;
mod post_tools;
pub mod prompt;
pub mod provider;
mod request;
pub mod setup;
mod start_commit;
pub mod tools;
mod trace;
mod turn;
mod usage;

pub use cancel::Cancel;
pub use compress::{CompressError, CompressOptions, CompressOutcome, KeepRecent};
pub use context_size::{ContextEntry, ContextFileSize, ContextSize};
pub use model_backend::{AttachmentError, BackendError, ModelBackend};
pub use post_tools::{HookCommand, HookFailure, HookTrigger, PostToolsHook};
pub use setup::{Setup, SetupError};
pub use start_commit::check_start_commit;
pub use turn::{
    AgentRuntime, PendingApproval, Reply, ResumeRequest, RetryRequest, SendError, TurnError, TurnEvent,
    TurnHandle, TurnObserver, TurnOutcome, TurnRequest, pending_approvals,
};
pub use usage::{ModelUsage, models_used};
