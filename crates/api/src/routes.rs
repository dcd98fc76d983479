//! The routes. Each reads a request, calls the timeline or the agent, and returns the result.

#![allow(clippy::unnecessary_wraps, reason = "all route functions have the same signature")]

mod agents;
mod changes;
mod common;
mod draft;
mod entries;
mod entry_view;
mod file_common;
mod files;
mod find;
mod history;
mod hooks;
pub(crate) mod pages;
mod presets;
mod projects;
mod search;
mod server;
mod snapshots;
mod state;
mod sync;
mod takes;
mod threads;
mod transfer;
mod turns;
mod worktrees;

use crate::endpoint::Endpoint;

/// All routes, in the order of the `OpenAPI` document.
pub(crate) fn all() -> Vec<Endpoint> {
    let groups = [
        threads::all(),
        find::all(),
        entries::all(),
        entry_view::all(),
        takes::all(),
        worktrees::all(),
        turns::all(),
        history::all(),
        snapshots::all(),
        changes::all(),
        files::all(),
        projects::all(),
        state::all(),
        presets::all(),
        draft::all(),
        search::all(),
        transfer::all(),
        agents::all(),
        sync::all(),
        hooks::all(),
        server::all(),
    ];
    groups.into_iter().flatten().collect()
}
