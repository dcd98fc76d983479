//! The studio: the timeline in the browser.
//!
//! ```text
//!   GET /studio/…    a page, or a part of one, drawn from the state as it is now          this crate
//!   changes          asked for at the API (`/v1/…`) by the one module of the page         assets/module/
//!   events           say that something changed; the module asks for the parts again
//! ```
//!
//! There is no copy of the state in a page: a reload, a second window and a crash all show the truth. Nothing here
//! changes anything, and everything is behind the gate of the server that it is put into.
//!
//! Whatever a model, a file or another person wrote is text: `markdown` is the only way by which it becomes more,
//! and knows no scripts, no styles, and no pictures from elsewhere.

mod assets;
mod attached;
mod between;
mod blame;
mod compare;
mod conversation;
mod dialog;
mod diff;
mod draw;
mod entry;
mod failed;
mod files;
mod glossary;
mod history;
mod markdown;
mod page;
mod picture;
mod question;
mod search;
mod settings;
mod studio;
mod tree;
mod turn;
mod welcome;

pub use studio::{HOME, Studio};
