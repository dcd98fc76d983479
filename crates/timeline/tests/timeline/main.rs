//! The timeline as its users meet it.

mod entries;
mod complaints;
mod exchange;
mod files;
mod forged;
mod history;
mod projects;
mod support;
mod takes;
