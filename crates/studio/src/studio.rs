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
use retake_store::runtime::RuntimeDatabase;
use retake_timeline::{StoreError, Timeline};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::page_error::PageError;
use crate::picture::{self, Picture};
use crate::{
    assets, attachments, blame, compare, compare_versions, conversation, dialog, files, glossary, history,
    page, search, settings, tree, turn, welcome,
};

/// Path of the start page.
pub const HOME: &str = "/studio";

/// Content security policy: own styles, scripts and requests only, and nothing inline.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Pages rendered at once; further ones wait.
const MAX_CONCURRENT_PAGES: usize = 16;

/// The studio and the data that it renders.
pub struct Studio {
    pub(crate) timeline: Timeline,
    pub(crate) setup: Setup,
    /// The folder whose project is shown first.
    pub(crate) folder: PathBuf,
    pub(crate) runtime_database: RuntimeDatabase,
    /// Cached file changes of takes.
    pub(crate) badges: tree::BadgeCache,
    drawing: Semaphore,
}

/// The query parameters of all pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PageQuery {
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

impl PageQuery {
    /// The `until` parameter for refreshing a list that was extended.
    pub(crate) fn drawn_until(&self, last: Option<u64>) -> Option<String> {
        let further = self.before.is_some() || self.until.is_some();
        last.filter(|_| further).map(|last| format!("&until={last}"))
    }
}

/// Renders a page of a thread.
type ThreadPage = fn(&Studio, ThreadId, &PageQuery) -> Result<Markup, PageError>;

impl Studio {
    /// Creates the studio for a timeline.
    pub fn new(timeline: Timeline, setup: Setup, folder: PathBuf) -> Result<Self, StoreError> {
        let runtime_database = timeline.store().runtime_database()?;
        let badges = tree::BadgeCache::default();
        Ok(Self {
            timeline,
            setup,
            folder,
            runtime_database,
            badges,
            drawing: Semaphore::new(MAX_CONCURRENT_PAGES),
        })
    }

    /// All routes, for a server that also has the API and authenticates requests.
    pub fn routes(self) -> Router {
        let studio = Arc::new(self);
        let of_thread = |draw: ThreadPage| studio.of_thread(draw);
        let router = Router::new()
            .route(HOME, studio.home())
            .route("/studio/", studio.home())
            .route("/studio/tree", studio.plain(tree::threads))
            .route("/studio/search", studio.plain(search::draw))
            .route("/studio/glossary", studio.plain(glossary::draw))
            .route("/studio/threads/{thread}", of_thread(page::draw))
            .route("/studio/threads/{thread}/entries", of_thread(conversation::draw))
            .route("/studio/threads/{thread}/picked", of_thread(conversation::filtered))
            .route("/studio/threads/{thread}/picture", studio.picture())
            .route("/studio/threads/{thread}/bar", of_thread(page::bar))
            .route("/studio/threads/{thread}/turn", of_thread(turn::draw))
            .route("/studio/threads/{thread}/attached", of_thread(attachments::draw))
            .route("/studio/threads/{thread}/set-to", of_thread(turn::model_status))
            .route("/studio/threads/{thread}/files", of_thread(files::draw))
            .route("/studio/threads/{thread}/call", of_thread(files::changes_of_call))
            .route("/studio/threads/{thread}/versions", of_thread(files::versions))
            .route("/studio/threads/{thread}/blame", of_thread(blame::draw))
            .route("/studio/threads/{thread}/history", of_thread(history::draw))
            .route("/studio/threads/{thread}/settings", of_thread(settings::draw))
            .route("/studio/threads/{thread}/sent", of_thread(settings::sent))
            .route("/studio/threads/{thread}/compare-versions", of_thread(compare_versions::draw))
            .route("/studio/threads/{thread}/dialog", of_thread(dialog::draw))
            .route("/studio/threads/{thread}/compare", of_thread(compare::draw))
            .route("/studio/studio.css", asset("text/css; charset=utf-8", assets::STYLE))
            .route("/studio/icon.svg", asset("image/svg+xml", assets::ICON));
        assets::MODULES.iter().fold(router, |router, (address, source)| {
            router.route(address, asset("text/javascript; charset=utf-8", source))
        })
    }

    fn of_thread(self: &Arc<Self>, draw: ThreadPage) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let drawn = match read(request).await {
                Ok((Some(thread), query)) => studio.draw(move |studio| draw(studio, thread, &query)).await,
                Ok((None, _)) => Err(PageError::not_found("No such thread.")),
                Err(failed) => Err(failed),
            };
            show(drawn)
        })
    }

    fn picture(self: &Arc<Self>) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let read = match read(request).await {
                Ok((Some(thread), query)) => {
                    studio.draw(move |studio| picture::read(studio, thread, &query)).await
                }
                Ok((None, _)) => Err(PageError::not_found("No such thread.")),
                Err(failed) => Err(failed),
            };
            match read {
                Ok(picture) => send(picture),
                Err(failed) => show(Err(failed)),
            }
        })
    }

    fn plain(self: &Arc<Self>, draw: fn(&Self, &PageQuery) -> Result<Markup, PageError>) -> MethodRouter {
        let studio = Arc::clone(self);
        get(move |request: Request| async move {
            let drawn = match read(request).await {
                Ok((_, query)) => studio.draw(move |studio| draw(studio, &query)).await,
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
        draw: impl FnOnce(&Self) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let studio = Arc::clone(&self);
        let Ok(_permit) = studio.drawing.acquire().await else { return Err(PageError::internal()) };
        tokio::task::spawn_blocking(move || draw(&self)).await.unwrap_or_else(|_| Err(PageError::internal()))
    }
}

/// Parses a request: the thread of its path, if any, and the query.
async fn read(request: Request) -> Result<(Option<ThreadId>, PageQuery), PageError> {
    let (mut parts, _) = request.into_parts();
    let unclear =
        |error: serde_urlencoded::de::Error| PageError::not_found(format!("Invalid address: {error}."));
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(parts.uri.query().unwrap_or_default()).map_err(unclear)?;
    let (roles, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(name, _)| name == "role");
    let others = serde_urlencoded::to_string(others).unwrap_or_default();
    let mut query: PageQuery = serde_urlencoded::from_str(&others).map_err(unclear)?;
    query.roles = roles.into_iter().map(|(_, role)| role).filter(|role| !role.is_empty()).collect();
    // Opening a fragment directly in a browser shows a full page.
    if parts.headers.get("sec-fetch-dest").is_some_and(|kind| kind == "document") {
        query.whole.get_or_insert_default();
    }
    let named =
        RawPathParams::from_request_parts(&mut parts, &()).await.map_err(|_| PageError::internal())?;
    let thread = named.iter().find(|(name, _)| *name == "thread").and_then(|(_, text)| text.parse().ok());
    Ok((thread, query))
}

fn show(drawn: Result<Markup, PageError>) -> Response<Body> {
    let (status, markup) = match drawn {
        Ok(markup) => (StatusCode::OK, markup),
        Err(failed) => (failed.status, failed.draw()),
    };
    let mut response = Response::new(Body::from(markup.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    response
}

/// Pictures are addressed by content and cached for ever.
fn send(picture: Picture) -> Response<Body> {
    let mut response = Response::new(Body::from(picture.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(picture.media));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
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
