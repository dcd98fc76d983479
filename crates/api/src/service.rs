//! The state shared by all requests.

mod environment;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use retake_agent::Cancel;
use retake_agent::provider::config::ProviderEnvironment;
use retake_agent::setup::Setup;
use retake_store::runtime::{LivenessLock, RuntimeDatabase};
use retake_timeline::StoreError;
use retake_timeline::{RecoveredMove, Timeline};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use environment::EnvironmentCache;
pub(crate) use environment::{GitStatus, environment_at};

use crate::auth::{Auth, Hosts, TokenFile};
use crate::dispatch::{Admission, InFlight};
use crate::document::Document;
use crate::events::EventBus;
use crate::idempotency::{AbandonedRequests, KeyCleanup};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};
use crate::turns::RunningTurns;

/// The configuration of a server.
pub struct Options {
    /// The timeline to serve.
    pub timeline: Timeline,
    /// The configuration of turns.
    pub setup: Setup,
    /// The environment from which providers read keys.
    pub provider_environment: fn() -> ProviderEnvironment<'static>,
    /// The folder of the default project.
    pub folder: PathBuf,
    /// The token file.
    pub token: TokenFile,
    /// Allowed host names besides loopback names.
    pub hosts: Vec<String>,
    /// Resource limits.
    pub limits: Limits,
    /// The studio; without it browsers get the reference page.
    pub pages: Option<Pages>,
}

/// Pages from another crate, behind the same authentication. They only read.
pub struct Pages {
    /// The pages.
    pub routes: Router,
    /// Path of the start page.
    pub home: &'static str,
}

/// The state shared by all requests.
pub(crate) struct Service {
    pub(crate) timeline: Timeline,
    pub(crate) setup: Setup,
    pub(crate) provider_environment: fn() -> ProviderEnvironment<'static>,
    pub(crate) folder: PathBuf,
    pub(crate) auth: Auth,
    pub(crate) runtime_database: RuntimeDatabase,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) event_bus: EventBus,
    pub(crate) turns: RunningTurns,
    pub(crate) in_flight: InFlight,
    pub(crate) admission: Admission,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) reading: Arc<Semaphore>,
    /// Set on shutdown.
    pub(crate) stop: Cancel,
    /// The name of this process in the runtime database.
    pub(crate) owner: String,
    /// Requests that the runtime database lists as running in this process, but that are abandoned.
    pub(crate) abandoned_requests: AbandonedRequests,
    /// Deletes expired answers.
    pub(crate) key_cleanup: KeyCleanup,
    _alive: LivenessLock,
    requests: AtomicU64,
    document: OnceLock<Document>,
    environments: EnvironmentCache,
    own: Weak<Self>,
}

impl Service {
    pub(crate) fn new(options: Options, stop: Cancel) -> Result<Arc<Self>, Problem> {
        let Options { timeline, setup, provider_environment, folder, token, hosts, limits, pages: _ } =
            options;
        let auth = Auth::new(&timeline, token, Hosts::new(&hosts))?;
        let runtime_database = timeline.store().runtime_database()?;
        let owner = format!("server-{:016x}", timeline.random_u64());
        let alive = timeline.store().lock_alive_as(&owner)?;
        let event_bus = EventBus::new(&timeline)?;
        Ok(Arc::new_cyclic(|own| Self {
            auth,
            runtime_database,
            event_bus,
            turns: RunningTurns::default(),
            metrics: Metrics::new(),
            in_flight: InFlight::new(),
            admission: Admission::new(&limits),
            streams: Arc::new(Semaphore::new(limits.streams)),
            bodies: Arc::new(Semaphore::new(limits.bodies)),
            reading: Arc::new(Semaphore::new(limits.values)),
            stop,
            owner,
            abandoned_requests: AbandonedRequests::default(),
            key_cleanup: KeyCleanup::new(),
            _alive: alive,
            requests: AtomicU64::new(timeline.random_u64() << 20),
            document: OnceLock::new(),
            environments: EnvironmentCache::default(),
            own: Weak::clone(own),
            timeline,
            setup,
            provider_environment,
            folder,
            limits,
        }))
    }

    /// Finishes file moves and purges that a crash interrupted. The server starts even if that fails: requests to the thread
    /// report it.
    pub(crate) fn recover(&self) {
        match self.timeline.recover() {
            Ok(recovered) => recovered.iter().for_each(log_recovered),
            Err(error) => warn!(%error, "failed to finish an interrupted move of files"),
        }
        match self.timeline.store().finish_erasure() {
            Ok(true) => info!("finished an interrupted purge or redaction"),
            Ok(false) => {}
            Err(error) => warn!(%error, "failed to finish an interrupted purge"),
        }
    }

    /// Logs the recoveries that requests made.
    pub(crate) fn log_recoveries(&self) {
        self.timeline.take_recovered().iter().for_each(log_recovered);
        let emptied = self.timeline.take_emptied();
        if !emptied.is_empty() {
            info!(files = emptied.len(), "restored files that a power cut had emptied");
        }
    }

    /// An owned reference for work that outlives a request.
    pub(crate) fn shared(&self) -> Result<Arc<Self>, Problem> {
        self.own.upgrade().ok_or_else(|| Problem::new(Code::Unavailable, "the server is stopping"))
    }

    pub(crate) fn document(&self) -> &Document {
        self.document.get_or_init(|| Document::of(&crate::routes::all(), self.auth.cookie()))
    }

    /// A unique id for a request.
    pub(crate) fn name_request(&self) -> String {
        format!("{:016x}", self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether the server that owns a request is alive.
    pub(crate) fn is_alive(&self, owner: &str) -> Result<bool, StoreError> {
        if owner == self.owner { Ok(true) } else { self.timeline.store().is_alive_as(owner) }
    }
}

fn log_recovered(recovered: &RecoveredMove) {
    info!(asked = %recovered.time, files = recovered.paths.len(), "finished an interrupted move of files");
}
