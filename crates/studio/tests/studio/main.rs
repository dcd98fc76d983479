//! The studio in a real browser, over the real server.
//!
//! ```text
//!   test ──WebDriver──▶ chromedriver ──▶ Chromium ──HTTP──▶ retake serve ──▶ store, project folder
//!     └──────────────── reads and changes files in the folder ───────────────────────────────┘
//! ```
//!
//! Each test has its own instance of all of these. Screenshots are in `target/studio-screenshots`, including the last
//! one before a failure.

mod ahead;
mod bar;
mod beside;
mod blame;
mod browser;
mod composer;
mod crashes;
mod devtools;
mod entries;
mod finding;
mod history;
mod hostile;
mod kept;
mod keyboard;
mod looking;
mod moving;
mod opening;
mod pace;
mod payloads;
mod server;
mod settings;
mod story;
mod strangers;
mod studio;
mod takes;
mod threads;
mod tree;
mod views;
mod windows;
