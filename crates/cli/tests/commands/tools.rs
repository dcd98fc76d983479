//! Tests of the maintenance commands with the real program, in temporary folders.

mod config;
mod demo;
mod failing;
mod keeping;
mod open_entries;
mod pages;
mod private;
mod projects;
mod redaction;
mod search;
mod support;
mod transfer;
