//! The routes of the studio.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::routing::{MethodRouter, get};
use maud::Markup;
use retake_agent::Setup;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_timeline::Timeline;
use retake_timeline::store::{Ledger, StoreError};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::failed::Failed;
use crate::picture::{self, Picture};
use crate::{
    assets, attached, between, blame, compare, conversation, dialog, files, glossary, history, page, search,
    settings, tree, turn, welcome,
};

/// Path of the start page.
pub const HOME: &str = "/studio";

/// Content security policy: own styles, scripts and requests only, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Pages rendered at once; further ones wait.
const DRAWN_AT_ONCE: usize = 16;

/// The studio and the data that it renders.
pub struct Studio {
    pub(crate) timeline: Timeline,
    pub(crate) setup: Setup,
    /// The folder whose project is shown first.
    pub(crate) folder: PathBuf,
    pub(crate) ledger: Ledger,
    /// Cached file changes of takes.
    pub(crate) badges: tree::Badges,
    drawing: Semaphore,
}

/// The query parameters of all pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// The take; the active one by default.
    pub(crate) take: Option<TakeId>,
    /// Another take to compare with.
    pub(crate) other: Option<TakeId>,
    /// Index of the first entry.
    pub(crate) from: Option<u64>,
    /// Only entries of these roles, from repeated parameters.
    #[serde(skip)]
    pub(crate) roles: Vec<String>,
    /// Search text.
    pub(crate) q: Option<String>,
    /// A path in the workspace.
    pub(crate) path: Option<String>,
    /// A root of the workspace.
    pub(crate) root: Option<String>,
    /// A snapshot with the current version of a file.
    pub(crate) ours: Option<String>,
    /// The content of the incoming version.
    pub(crate) theirs: Option<String>,
    /// Where a list continues.
    pub(crate) before: Option<u64>,
    /// A version.
    pub(crate) at: Option<u64>,
    /// How far back a list is already rendered.
    pub(crate) until: Option<u64>,
    /// The kind of a dialog.
    pub(crate) about: Option<String>,
    pub(crate) entry: Option<EntryId>,
    /// Open lanes of the history graph where a list continues.
    pub(crate) lanes: Option<String>,
    /// Whether to render a full page instead of a fragment.
    pub(crate) whole: Option<String>,
    /// Filter for kinds of threads.
    pub(crate) only: Option<String>,
    /// Cursor into the list of threads.
    pub(crate) after: Option<String>,
    /// How many threads are already rendered.
    pub(crate) most: Option<usize>,
}

impl Asked {
    /// The `until` parameter for refreshing a list that was extended.
    pub(crate) fn drawn_until(&self, last: Option<u64>) -> Option<String> {
        let further = self.before.is_some() || self.until.is_some();
        last.filter(|_| further).map(|last| format!("&until={last}"))
    }
}

/// Renders a page of a thread.
type OfThread = fn(&Studio, ThreadId, &Asked) -> Result<Markup, Failed>;

impl Studio {
    /// Creates the studio for a timeline.
    pub fn new(timeline: Timeline, setup: Setup, folder: PathBuf) -> Result<Self, StoreError> {
        let ledger = timeline.store().ledger()?;
        let badges = tree::Badges::default();
        Ok(Self { timeline, setup, folder, ledger, badges, drawing: Semaphore::new(DRAWN_AT_ONCE) })
    }

    /// All routes, for a server that also has the API and authenticates requests.
    pub fn routes(self) -> Router {
        let studio = Arc::new(self);
        let of_thread = |draw: OfThread| studio.of_thread(draw);
        let router = Router::new()
            .route(HOME, studio.home())
            .route("/studio/", studio.home())
            .route("/studio/tree", studio.plain(tree::threads))
            .route("/studio/search", studio.plain(search::draw))
            .route("/studio/glossary", studio.plain(glossary::draw))
            .route("/studio/threads/{thread}", of_thread(page::draw))
            .route("/studio/threads/{thread}/entries", of_thread(conversation::draw))
            .route("/studio/threads/{thread}/picked", of_thread(conversation::picked))
            .route("/studio/threads/{thread}/picture", studio.picture())
            .route("/studio/threads/{thread}/bar", of_thread(page::bar))
            .route("/studio/threads/{thread}/turn", of_thread(turn::draw))
            .route("/studio/threads/{thread}/attached", of_thread(attached::draw))
            .route("/studio/threads/{thread}/set-to", of_thread(turn::set_to))
            .route("/studio/threads/{thread}/files", of_thread(files::draw))
            .route("/studio/threads/{thread}/call", of_thread(files::of_call))
            .route("/studio/threads/{thread}/versions", of_thread(files::versions))
            .route("/studio/threads/{thread}/blame", of_thread(blame::draw))
            .route("/studio/threads/{thread}/history", of_thread(history::draw))
            .route("/studio/threads/{thread}/settings", of_thread(settings::draw))
            .route("/studio/threads/{thread}/sent", of_thread(settings::sent))
            .route("/studio/threads/{thread}/compare-versions", of_thread(between::draw))
            .route("/studio/threads/{thread}/dialog", of_thread(dialog::draw))
            .route("/studio/threads/{thread}/compare", of_thread(compare::draw))
            .route("/studio/studio.css", asset("text/css; charset=utf-8", assets::STYLE))
            .route("/studio/icon.svg", asset("image/svg+xml", assets::ICON));
        assets::MODULES.iter().fold(router, |router, (address, source)| {
            router.route(address, asset("text/javascript; charset=utf-8", source))
        })
    }

    fn of_thread(self: &Arc<Self>, draw: OfThread) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let drawn = match read(request).await {
                Ok((Some(thread), asked)) => studio.draw(move |studio| draw(studio, thread, &asked)).await,
                Ok((None, _)) => Err(Failed::not_found("No such thread.")),
                Err(failed) => Err(failed),
            };
            show(drawn)
        })
    }

    fn picture(self: &Arc<Self>) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let read = match read(request).await {
                Ok((Some(thread), asked)) => {
                    studio.draw(move |studio| picture::read(studio, thread, &asked)).await
                }
                Ok((None, _)) => Err(Failed::not_found("No such thread.")),
                Err(failed) => Err(failed),
            };
            match read {
                Ok(picture) => send(picture),
                Err(failed) => show(Err(failed)),
            }
        })
    }

    fn plain(self: &Arc<Self>, draw: fn(&Self, &Asked) -> Result<Markup, Failed>) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let drawn = match read(request).await {
                Ok((_, asked)) => studio.draw(move |studio| draw(studio, &asked)).await,
                Err(failed) => Err(failed),
            };
            show(drawn)
        })
    }

    /// Redirects to the current thread, or shows the welcome page.
    fn home(self: &Arc<Self>) -> MethodRouter {
        let studio = Arc::clone(self);
        get(|| async move {
            let begun = studio.clone().draw(|studio| Ok(welcome::current(studio))).await;
            match begun {
                Ok(Some(thread)) => go(&format!("/studio/threads/{thread}")),
                Ok(None) => show(studio.draw(welcome::draw).await),
                Err(failed) => show(Err(failed)),
            }
        })
    }

    /// Renders in a thread that may block on the disk.
    async fn draw<T: Send + 'static>(
        self: Arc<Self>,
        draw: impl FnOnce(&Self) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let studio = Arc::clone(&self);
        let Ok(_permit) = studio.drawing.acquire().await else { return Err(Failed::broken()) };
        tokio::task::spawn_blocking(move || draw(&self)).await.unwrap_or_else(|_| Err(Failed::broken()))
    }
}

/// Parses a request: the thread of its path, if any, and the query.
async fn read(request: Request) -> Result<(Option<ThreadId>, Asked), Failed> {
    let (mut parts, _) = request.into_parts();
    let unclear =
        |error: serde_urlencoded::de::Error| Failed::not_found(format!("Invalid address: {error}."));
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(parts.uri.query().unwrap_or_default()).map_err(unclear)?;
    let (roles, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(name, _)| name == "role");
    let others = serde_urlencoded::to_string(others).unwrap_or_default();
    let mut asked: Asked = serde_urlencoded::from_str(&others).map_err(unclear)?;
    asked.roles = roles.into_iter().map(|(_, role)| role).filter(|role| !role.is_empty()).collect();
    // Opening a fragment directly in a browser shows a full page.
    if parts.headers.get("sec-fetch-dest").is_some_and(|kind| kind == "document") {
        asked.whole.get_or_insert_default();
    }
    let named = RawPathParams::from_request_parts(&mut parts, &()).await.map_err(|_| Failed::broken())?;
    let thread = named.iter().find(|(name, _)| *name == "thread").and_then(|(_, text)| text.parse().ok());
    Ok((thread, asked))
}

fn show(drawn: Result<Markup, Failed>) -> Response<Body> {
    let (status, markup) = match drawn {
        Ok(markup) => (StatusCode::OK, markup),
        Err(failed) => (failed.status, failed.draw()),
    };
    let mut response = Response::new(Body::from(markup.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Pictures are addressed by content and cached for ever.
fn send(picture: Picture) -> Response<Body> {
    let mut response = Response::new(Body::from(picture.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(picture.media));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    response
}

fn go(place: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// A static asset. Browsers revalidate it, so that an update takes effect at once.
fn asset(kind: &'static str, text: &'static str) -> MethodRouter {
    get(move || async move {
        let mut response = Response::new(Body::from(text));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    })
}
