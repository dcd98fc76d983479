//! What each route does: read the request, ask the timeline or the agent, say what came of it.

mod agents;
mod common;
mod entries;
mod file_common;
mod history;
mod hooks;
mod moments;
pub(crate) mod pages;
mod server;
mod state;
mod takes;
mod threads;
mod turns;

use crate::endpoint::Endpoint;

/// Every route, in the order in which the document lists them.
pub(crate) fn all() -> Vec<Endpoint> {
    let groups = [
        threads::all(),
        entries::all(),
        takes::all(),
        turns::all(),
        history::all(),
        moments::all(),
        state::all(),
        agents::all(),
        hooks::all(),
        server::all(),
    ];
    groups.into_iter().flatten().collect()
}
