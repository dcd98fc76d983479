//! The studio in a real browser, over the real server.
//!
//! ```text
//!   test ──WebDriver──▶ chromedriver ──▶ Chromium ──HTTP──▶ retake serve ──▶ store, project folder
//!     └───────────────── looks at the folder, and changes it by hand ──────────────────────┘
//! ```
//!
//! Each test has all of these to itself. What a test saw is kept as pictures below `target/studio-screenshots`, the last
//! one before a failure too.

mod browser;
mod opening;
mod server;
mod studio;
#[path = "../support/mod.rs"]
mod support;
