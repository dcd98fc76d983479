//! The studio: Retake in the browser.
//!
//! ```text
//!   GET /studio/…    a page or a fragment, rendered from the current state      this crate
//!   changes          sent to the API (`/v1/…`) by the modules of the page       assets/js/
//!   events           on a change, the modules fetch the affected fragments
//! ```
//!
//! Pages hold no copy of the state, so that reloads, other windows and crashes always show the current one. This crate
//! only reads, and the server authenticates every request.
//!
//! All content from models, files and users is escaped text. Only `markdown` adds formatting, without scripts, styles or
//! external pictures.

mod assets;
mod attachments;
mod blame;
mod compare;
mod compare_versions;
mod conversation;
mod dialog;
mod diff;
mod draw;
mod entry;
mod files;
mod glossary;
mod history;
mod markdown;
mod page;
mod page_error;
mod picture;
mod question;
mod search;
mod settings;
mod studio;
mod tree;
mod turn;
mod welcome;

pub use studio::{HOME, Studio};
