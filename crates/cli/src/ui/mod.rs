//! Terminal output.
//!
//! Commands say *what* to show; these modules decide how, and that it is safe. Text flows one way:
//!
//! ```text
//!   stored text ──► sanitize ──► label (text with meaning) ──► table, tree ──► pager ──► terminal
//!                   no control     style says what a piece        width fits it     strips colour
//!                   sequences      is, not which colour           to the screen     where unwanted
//! ```
//!
//! Three rules apply everywhere.
//!
//! **Stored text is hostile.** Text from a model, a tool, a file or a shared thread may contain escape sequences that
//! repaint the screen, or invisible characters that hide content. A [`label::Label`] can only be created through
//! [`sanitize`], so tables and trees cannot forget it.
//!
//! **The environment is an argument.** Terminal, width, time and environment variables are read once, at the edge
//! ([`screen::Screen::detect`], [`style::StreamEnvironment::of_stdout`], [`command::Environment`]); everything else is a
//! pure function with table tests.
//!
//! **A closed pipe is not an error.** Quitting the pager or piping into `head` ends the output: see [`pager`].

pub(crate) use retake_render::number as bytes;
pub(crate) mod cancellable_output;
pub(crate) mod command;
pub(crate) mod confirm;
pub(crate) mod editor;
pub(crate) mod hidden_input;
pub(crate) mod input;
pub(crate) mod json;
pub(crate) mod label;
pub(crate) mod lock_watch;
pub(crate) mod markdown;
pub(crate) mod pager;
pub(crate) mod progress;
pub(crate) mod sanitize;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod time_input;
pub(crate) mod tree;
pub(crate) mod width;
