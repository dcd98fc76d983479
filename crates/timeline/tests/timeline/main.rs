//! The timeline as its users meet it.

mod entries;
mod exchange;
mod forged;
mod history;
mod projects;
mod support;
mod takes;
