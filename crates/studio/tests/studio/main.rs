//! The studio in a real browser, over the real server.
//!
//! ```text
//!   test ──WebDriver──▶ chromedriver ──▶ Chromium ──HTTP──▶ retake serve ──▶ store, project folder
//!     └──────────────── reads and changes files in the folder ───────────────────────────────┘
//! ```
//!
//! Each test has its own instance of all of these. Screenshots are in `target/studio-screenshots`, including the last
//! one before a failure.

mod blame;
mod browser;
mod composer;
mod crashes;
mod devtools;
mod entries;
mod history;
mod hostile;
mod keyboard;
mod login;
mod other_sites;
mod payloads;
mod previews;
mod searching;
mod server;
mod settings;
mod side_by_side;
mod speed;
mod studio;
mod takes;
mod threads;
mod toolbar;
mod tree;
mod two_windows;
mod undoing;
mod unsaved_input;
mod viewing;
mod views;
mod walkthrough;
