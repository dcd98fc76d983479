//! What every command shares of the terminal.
//!
//! Commands say *what* to show; these modules decide how it looks on this terminal, and that it is safe
//! to show. Text travels one way:
//!
//! ```text
//!   stored text ──► sanitize ──► label (text with meaning) ──► table, tree ──► pager ──► terminal
//!                   no control     style says what a piece        width fits it     strips colour
//!                   sequences      is, not which colour           to the screen     where unwanted
//! ```
//!
//! Three rules hold everywhere.
//!
//! **Stored text is hostile.** A model, a tool, a file or a stranger's thread may carry escape sequences
//! that repaint the screen, or invisible characters that hide what a line says. A [`label::Label`] can only
//! be made through [`sanitize`], so that a table or a tree cannot forget it.
//!
//! **The surroundings are arguments.** Whether there is a terminal, how wide it is, what time it is and
//! what the environment says are read once, at the edge ([`screen::Screen::detect`],
//! [`style::Surroundings::of_stdout`], [`command::Environment`]); the rest are functions of them, tested as
//! tables.
//!
//! **A reader may leave at any time.** Quitting the pager or piping into `head` ends the output and is not
//! a failure: see [`pager`].

pub(crate) use retake_words::number as bytes;
pub(crate) mod command;
pub(crate) mod confirm;
pub(crate) mod editor;
pub(crate) mod hidden_input;
pub(crate) mod input;
pub(crate) mod json;
pub(crate) mod label;
pub(crate) mod markdown;
pub(crate) mod moment;
pub(crate) mod pager;
pub(crate) mod patient;
pub(crate) mod progress;
pub(crate) mod sanitize;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod tree;
pub(crate) mod waiting;
pub(crate) mod width;
