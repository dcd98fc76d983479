//! The state shared by all requests: one field per subject, each with its own type.
//!
//! Work that outlives a request (turns, streams) holds the subjects that it needs, never the whole service.

mod environment;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::Router;
use retake_agent::Cancel;
use retake_agent::provider::config::ProviderEnvironment;
use retake_agent::setup::Setup;
use retake_store::runtime::RuntimeDatabase;
use retake_timeline::{RecoveredMove, Timeline};
use tracing::{info, warn};

use environment::Projects;
pub(crate) use environment::{GitStatus, environment_at};

use crate::auth::{Auth, Hosts, TokenFile};
use crate::dispatch::Admission;
use crate::document::Document;
use crate::events::EventBus;
use crate::folders::Folders;
use crate::idempotency::RequestOwner;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::problem::Problem;
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
    pub(crate) runtime_database: RuntimeDatabase,
    pub(crate) agent: AgentOptions,
    pub(crate) projects: Projects,
    pub(crate) folders: Folders,
    pub(crate) auth: Arc<Auth>,
    pub(crate) admission: Admission,
    pub(crate) request_owner: RequestOwner,
    pub(crate) event_bus: Arc<EventBus>,
    pub(crate) turns: Arc<RunningTurns>,
    pub(crate) metrics: Arc<Metrics>,
    /// Set on shutdown.
    pub(crate) stop: Cancel,
    document: OnceLock<Document>,
}

/// The configuration of turns.
pub(crate) struct AgentOptions {
    pub(crate) setup: Setup,
    pub(crate) provider_environment: fn() -> ProviderEnvironment<'static>,
}

impl Service {
    pub(crate) fn new(options: Options, stop: Cancel) -> Result<Arc<Self>, Problem> {
        let Options { timeline, setup, provider_environment, folder, token, hosts, limits, pages: _ } =
            options;
        let metrics = Arc::new(Metrics::new());
        let auth = Arc::new(Auth::new(&timeline, token, Hosts::new(&hosts))?);
        let event_bus = Arc::new(EventBus::new(&timeline, Arc::clone(&auth))?);
        Ok(Arc::new(Self {
            runtime_database: timeline.store().runtime_database()?,
            agent: AgentOptions { setup, provider_environment },
            projects: Projects::new(timeline.clone(), folder),
            folders: Folders::default(),
            admission: Admission::new(limits, timeline.random_u64()),
            request_owner: RequestOwner::new(&timeline)?,
            turns: Arc::new(RunningTurns::new(Arc::clone(&event_bus), Arc::clone(&metrics))),
            auth,
            event_bus,
            metrics,
            stop,
            document: OnceLock::new(),
            timeline,
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

    pub(crate) fn document(&self) -> &Document {
        self.document.get_or_init(|| Document::of(&crate::routes::all(), self.auth.cookie()))
    }
}

fn log_recovered(recovered: &RecoveredMove) {
    info!(asked = %recovered.time, files = recovered.paths.len(), "finished an interrupted move of files");
}
