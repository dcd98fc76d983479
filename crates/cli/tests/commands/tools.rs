//! Tests of the maintenance commands with the real program, in temporary folders.

mod attachments;
mod backup;
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
