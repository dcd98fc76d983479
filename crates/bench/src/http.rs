//! The API under load, compared with a bare handler that does one durable insert.
//!
//! ```text
//!   baseline 32 clients ─► axum ─► one INSERT, synced        the same machine and disk, interleaved
//!   ours     32 clients ─► retake serve ─► one entry, synced
//!              1 client ─► pages, lists and trees, while they write
//!   growth   fork and undo of 100 and of 100,000 entries
//!   events   another process writes; the delay until a stream receives it
//! ```
//!
//! All servers and the writing process are separate processes.

mod client;
mod events;
mod growth;
mod load;
mod servers;

use std::path::Path;

use retake_model::id::{ProjectId, ThreadId};
use retake_timeline::{Caller, NewThread, Rules, Timeline};

use crate::Outcome;
use crate::messages::Messages;
use crate::options::Scale;
use crate::report::Report;
use crate::subject::{fill, new_thread};

pub(crate) use events::pulse;
pub(crate) use servers::{baseline as serve_floor, ours as serve_ours};

/// The project of the many threads.
const MANY_THREADS: ProjectId = ProjectId::from_bytes([2; 16]);
/// Number of concurrent clients.
const CLIENTS: usize = 32;

pub(crate) fn measure(folder: &Path, scale: &Scale, report: &mut Report) -> Outcome<()> {
    let world = World::build(folder, scale)?;
    let ours = servers::Server::start("serve", &world.folder)?;
    let baseline = servers::Server::start("serve-floor", folder)?;
    load::measure(&world, &ours, &baseline, scale, report)?;
    growth::measure(&world, &ours, scale, report)?;
    events::measure(&world, &ours, scale, report)
}

struct World {
    folder: std::path::PathBuf,
    /// Threads that clients write to, one each.
    written: Vec<ThreadId>,
    /// Threads of all sizes, ascending.
    sized: Vec<(u64, ThreadId)>,
    /// Number of threads to list.
    listed: u64,
}

impl World {
    fn build(folder: &Path, scale: &Scale) -> Outcome<Self> {
        let folder = folder.join("served");
        let timeline = Timeline::open(&folder, Rules::default())?;
        eprintln!("making {} threads", scale.listed);
        std::thread::scope(|scope| -> Outcome<()> {
            let make = |from: u64| -> Outcome<()> {
                for number in (from..scale.listed).step_by(CLIENTS) {
                    let new = NewThread::in_project(MANY_THREADS).titled(format!("thread {number}"));
                    timeline.create_thread(new, Caller::human())?;
                }
                Ok(())
            };
            let makers: Vec<_> = (0..CLIENTS as u64).map(|from| scope.spawn(move || make(from))).collect();
            makers.into_iter().try_for_each(|maker| maker.join().map_err(|_| "a maker panicked")?)
        })?;
        let mut written = Vec::new();
        for number in 0..CLIENTS {
            let thread = new_thread(&timeline, &format!("written {number}"))?;
            fill(&timeline, &thread, 100, 0, &mut Messages::new(number as u64))?;
            written.push(thread.thread);
        }
        let mut sized = Vec::new();
        for &size in scale.sizes {
            eprintln!("making a thread of {size} entries");
            let thread = new_thread(&timeline, &format!("of {size}"))?;
            fill(&timeline, &thread, size, 0, &mut Messages::new(size))?;
            sized.push((size, thread.thread));
        }
        Ok(Self { folder, written, sized, listed: scale.listed })
    }
}
