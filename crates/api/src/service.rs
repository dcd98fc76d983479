//! What all requests share.

mod place;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use retake_agent::Cancel;
use retake_agent::provider::config::Surroundings as Around;
use retake_agent::setup::Setup;
use retake_timeline::store::{Alive, Ledger, StoreError};
use retake_timeline::{Recovered, Timeline};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use place::Places;
pub(crate) use place::{GitNow, surroundings_at};

use crate::dispatch::{Busy, Lanes};
use crate::document::Document;
use crate::events::Hub;
use crate::gate::{Gate, Hosts, TokenFile};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::once::{LeftOver, Memory};
use crate::problem::{Code, Problem};
use crate::turns::Turns;

/// What a server is made of.
pub struct Options {
    /// The timeline that it serves.
    pub timeline: Timeline,
    /// Who answers turns, by which rules.
    pub setup: Setup,
    /// What is around: the environment, and files with keys.
    pub around: fn() -> Around<'static>,
    /// The folder whose project is meant where a request names none.
    pub folder: PathBuf,
    /// The file that the token is in.
    pub token: TokenFile,
    /// Names that the server may be called by, beside those of this machine.
    pub hosts: Vec<String>,
    /// How much of everything there may be.
    pub limits: Limits,
    /// Pages for people; without them a browser is led to the reference.
    pub pages: Option<Pages>,
}

/// Pages for people, made elsewhere. They are behind the same gate as everything else, and change nothing themselves.
pub struct Pages {
    /// The pages.
    pub routes: Router,
    /// Where a browser begins.
    pub home: &'static str,
}

/// What all requests share.
pub(crate) struct Service {
    pub(crate) timeline: Timeline,
    pub(crate) setup: Setup,
    pub(crate) around: fn() -> Around<'static>,
    pub(crate) folder: PathBuf,
    pub(crate) gate: Gate,
    pub(crate) ledger: Ledger,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) hub: Hub,
    pub(crate) turns: Turns,
    pub(crate) busy: Busy,
    pub(crate) lanes: Lanes,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) reading: Arc<Semaphore>,
    /// Set when the server stops.
    pub(crate) stop: Cancel,
    /// What the ledger calls this process.
    pub(crate) owner: String,
    /// Requests of this process that the ledger still takes for being carried out, and nobody carries out.
    pub(crate) unsettled: LeftOver,
    /// When old answers were last forgotten.
    pub(crate) memory: Memory,
    _alive: Alive,
    requests: AtomicU64,
    document: OnceLock<Document>,
    places: Places,
    own: Weak<Self>,
}

impl Service {
    pub(crate) fn new(options: Options, stop: Cancel) -> Result<Arc<Self>, Problem> {
        let Options { timeline, setup, around, folder, token, hosts, limits, pages: _ } = options;
        let gate = Gate::new(&timeline, token, Hosts::new(&hosts))?;
        let ledger = timeline.store().ledger()?;
        let owner = format!("server-{:016x}", timeline.dice());
        let alive = timeline.store().keep_alive_as(&owner)?;
        let hub = Hub::new(&timeline)?;
        Ok(Arc::new_cyclic(|own| Self {
            gate,
            ledger,
            hub,
            turns: Turns::default(),
            metrics: Metrics::new(),
            busy: Busy::new(),
            lanes: Lanes::new(&limits),
            streams: Arc::new(Semaphore::new(limits.streams)),
            bodies: Arc::new(Semaphore::new(limits.bodies)),
            reading: Arc::new(Semaphore::new(limits.values)),
            stop,
            owner,
            unsettled: LeftOver::default(),
            memory: Memory::new(),
            _alive: alive,
            requests: AtomicU64::new(timeline.dice() << 20),
            document: OnceLock::new(),
            places: Places::default(),
            own: Weak::clone(own),
            timeline,
            setup,
            around,
            folder,
            limits,
        }))
    }

    /// Finishes the moves of files and the purges that a crash interrupted. What cannot be finished now is no reason not to serve: the
    /// thread's own requests report it.
    pub(crate) fn recover(&self) {
        match self.timeline.recover() {
            Ok(recovered) => recovered.iter().for_each(log_recovered),
            Err(error) => warn!(%error, "an interrupted move of files could not be finished"),
        }
        match self.timeline.store().finish_erasing() {
            Ok(true) => info!("finished a purge or redaction that was interrupted"),
            Ok(false) => {}
            Err(error) => warn!(%error, "an interrupted purge could not be finished"),
        }
    }

    /// Logs what requests had to finish or restore first.
    pub(crate) fn log_recoveries(&self) {
        self.timeline.take_recovered().iter().for_each(log_recovered);
        let emptied = self.timeline.take_emptied();
        if !emptied.is_empty() {
            info!(files = emptied.len(), "restored files that a power cut had emptied");
        }
    }

    /// The same, for what goes on beside a request.
    pub(crate) fn shared(&self) -> Result<Arc<Self>, Problem> {
        self.own.upgrade().ok_or_else(|| Problem::new(Code::Unavailable, "the server is stopping"))
    }

    /// What the API is, for programs and people.
    pub(crate) fn document(&self) -> &Document {
        self.document.get_or_init(|| Document::of(&crate::routes::all(), self.gate.cookie()))
    }

    /// A name for a request that no other has.
    pub(crate) fn name_request(&self) -> String {
        format!("{:016x}", self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a server that began a request is still there.
    pub(crate) fn is_alive(&self, owner: &str) -> Result<bool, StoreError> {
        if owner == self.owner { Ok(true) } else { self.timeline.store().is_alive_as(owner) }
    }
}

fn log_recovered(recovered: &Recovered) {
    info!(asked = %recovered.time, files = recovered.paths.len(), "finished an interrupted move of files");
}
