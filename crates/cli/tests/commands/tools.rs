//! The commands around the timeline, as a user meets them: the real program, in folders of its own.

mod attachments;
mod config;
mod demo;
mod failing;
mod keeping;
mod keys;
mod live_models;
mod open_entries;
mod pages;
mod private;
mod projects;
mod redaction;
mod search;
mod support;
mod transfer;
