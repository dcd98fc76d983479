//! Remotes, and the exchange of threads with them.

use retake_model::id::ThreadId;
use retake_model::rebase::MergeReport;
use retake_surface::open_remote;
use retake_sync::config::{RemoteConfig, Remotes};
use retake_sync::remote::OpenMode;
use retake_sync::session::{Retry, Session, ThreadRound};
use retake_sync::status::RemoteStatus;
use retake_timeline::PauseReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::Problem;
use crate::service::Service;

const GROUP: &str = "Sync";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/remotes", list).about(
            GROUP,
            "List remotes",
            "Remotes are added and removed with `retake remote`, by a user at the machine.",
        ),
        get("/v1/sync", status).about(
            GROUP,
            "Show the state of each thread towards the remotes",
            "And what failed and is tried again. Private threads are not listed. A remote that does not answer is reported \
             with its error, and with what this machine knows.",
        ),
        post("/v1/sync", exchange).unversioned().about(
            GROUP,
            "Exchange threads with remotes now",
            "Fetches, merges and sends, and tries everything again that failed. Changes no files. Operations that arrive are \
             events like any other.",
        ),
    ]
}

#[derive(Serialize, JsonSchema)]
struct RemoteAnswers {
    remotes: Vec<RemoteConfig>,
}

fn list(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<RemoteAnswers>, Problem> {
    Ok(Answer::of(RemoteAnswers { remotes: remotes(call.service).list()? }))
}

#[derive(Serialize, JsonSchema)]
struct StatusAnswer {
    remotes: Vec<RemoteStatus>,
}

fn status(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<StatusAnswer>, Problem> {
    let (timeline, known) = (&call.service.timeline, remotes(call.service));
    let mut answers = Vec::new();
    for config in known.list()? {
        let opened = open_remote(&config, OpenMode::Existing).map_err(|failure| failure.message);
        let remote = opened.as_deref().map_err(Clone::clone);
        answers.push(RemoteStatus::read(timeline, &known, &config, remote)?);
    }
    Ok(Answer::of(StatusAnswer { remotes: answers }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExchangeBody {
    /// The remote; all of them without it.
    remote: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ExchangeAnswer {
    remotes: Vec<ExchangedRemote>,
}

/// What was exchanged with a remote.
#[derive(Serialize, JsonSchema)]
struct ExchangedRemote {
    /// Its name.
    remote: String,
    /// Threads with an exchange that did something or failed.
    threads: Vec<ExchangedThread>,
}

/// What was exchanged of a thread.
#[derive(Serialize, JsonSchema)]
struct ExchangedThread {
    /// The thread.
    thread: ThreadId,
    /// Operations sent.
    pushed: u64,
    /// Operations taken over.
    pulled: u64,
    /// Merges with what another machine did.
    merges: Vec<MergeReport>,
    /// Why it waits.
    paused: Option<PauseReason>,
    /// Whether it was purged on the remote.
    purged: bool,
    /// Why it failed.
    error: Option<String>,
}

impl From<ThreadRound> for ExchangedThread {
    fn from(round: ThreadRound) -> Self {
        Self {
            thread: round.thread,
            pushed: round.pushed,
            pulled: round.pulled,
            merges: round.merges,
            paused: round.paused,
            purged: round.purged,
            error: round.error.map(|pending| pending.error),
        }
    }
}

fn exchange(call: &Call<'_, NoPath, NoQuery, ExchangeBody>) -> Result<Answer<ExchangeAnswer>, Problem> {
    let (timeline, known) = (&call.service.timeline, remotes(call.service));
    let chosen = match &call.body.remote {
        Some(name) => vec![known.get(name)?],
        None => known.list()?,
    };
    let mut answers = Vec::new();
    for config in chosen {
        let remote = open_remote(&config, OpenMode::Existing)?;
        let session = Session { timeline, remotes: &known, name: &config.name, remote: &*remote };
        let _lock = known.lock(&config.name)?;
        let round = session.round(Retry::Now, timeline.now().millis(), &mut |_, _| {})?;
        let threads = round.threads.into_iter().map(ExchangedThread::from).collect();
        answers.push(ExchangedRemote { remote: config.name, threads });
    }
    Ok(Answer::of(ExchangeAnswer { remotes: answers }))
}

fn remotes(service: &Service) -> Remotes {
    Remotes::of_store(service.timeline.store().folder())
}
