//! Actions by name: each callback calls a route of `/v1` with the thread filled in.

use std::collections::BTreeMap;

use axum::http::Method;
use retake_model::id::{TakeId, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::GROUP;
use crate::endpoint::{
    Answer, Call, Endpoint, IncomingRequest, NoPath, NoQuery, ReplyBody, RequestBody, get, post,
};
use crate::problem::{Code, Problem};

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/api/callbacks", list).about(
            GROUP,
            "List callbacks",
            "Each calls a route, which the reference describes.",
        ),
        post("/api/callbacks/{callback}", call_back).about(
            GROUP,
            "Call a callback",
            "`arguments` is the body of the route that it calls.",
        ),
    ]
}

/// A name for a route.
struct Callback {
    name: &'static str,
    method: Method,
    path: &'static str,
    /// Further path parameters.
    named: &'static [(&'static str, &'static str)],
    /// Query parameters of the route.
    query: &'static [&'static str],
}

const fn callback(
    name: &'static str,
    method: Method,
    path: &'static str,
    query: &'static [&'static str],
) -> Callback {
    Callback { name, method, path, named: &[], query }
}

const fn list_of(name: &'static str, list: &'static [(&'static str, &'static str)]) -> Callback {
    let path = "/v1/threads/{thread}/lists/{list}";
    Callback { name, method: Method::PUT, path, named: list, query: &["take"] }
}

const PRESET: &str = "{preset}";

const CALLBACKS: &[Callback] = &[
    callback("undo", Method::POST, "/v1/threads/{thread}/undo", &["take", "dry_run"]),
    callback("patch_undo", Method::POST, "/v1/threads/{thread}/patch-undo", &["take", "dry_run"]),
    callback("redo", Method::POST, "/v1/threads/{thread}/redo", &["take", "dry_run"]),
    callback("jump", Method::POST, "/v1/threads/{thread}/jump", &["take", "dry_run"]),
    callback("save", Method::POST, "/v1/threads/{thread}/save", &[]),
    callback("reset", Method::POST, "/v1/threads/{thread}/reset", &["dry_run"]),
    callback("add_entries", Method::POST, "/v1/threads/{thread}/entries", &["take"]),
    callback("truncate", Method::POST, "/v1/threads/{thread}/truncate", &["take", "dry_run"]),
    callback("clear", Method::POST, "/v1/threads/{thread}/clear", &["take", "dry_run"]),
    callback("compress", Method::POST, "/v1/threads/{thread}/compress", &["take"]),
    callback("send_draft", Method::POST, "/v1/threads/{thread}/send-draft", &["take"]),
    callback("branch", Method::POST, "/v1/threads/{thread}/branch", &["take", "dry_run"]),
    callback("fork", Method::POST, "/v1/threads/{thread}/fork", &["take", "dry_run"]),
    callback("switch", Method::POST, "/v1/threads/{thread}/takes/{take}/switch", &["dry_run"]),
    callback("run", Method::POST, "/v1/threads/{thread}/turns", &["take"]),
    callback("retry", Method::POST, "/v1/threads/{thread}/retry", &["take"]),
    callback("resume", Method::POST, "/v1/threads/{thread}/turn/resume", &["take"]),
    callback("steer", Method::POST, "/v1/threads/{thread}/turn/steer", &["take"]),
    callback("approve", Method::POST, "/v1/threads/{thread}/turn/approve", &["take"]),
    callback("interrupt", Method::POST, "/v1/threads/{thread}/turn/interrupt", &["take"]),
    callback("set_settings", Method::PATCH, "/v1/threads/{thread}/settings", &[]),
    callback("set_roles", Method::PUT, "/v1/threads/{thread}/roles", &[]),
    callback("set_draft", Method::PUT, "/v1/threads/{thread}/draft", &["take"]),
    list_of("set_files", &[("list", "files")]),
    list_of("set_context_files", &[("list", "context_files")]),
    list_of("set_screenshots", &[("list", "screenshots")]),
    callback("save_context_preset", Method::POST, "/v1/threads/{thread}/presets", &["take"]),
    callback("load_context_preset", Method::POST, "/v1/threads/{thread}/presets/load", &["take"]),
    callback("restore_context_preset", Method::POST, "/v1/threads/{thread}/presets/restore", &[]),
    callback("delete_context_preset", Method::DELETE, "/v1/threads/{thread}/presets/{preset}", &[]),
];

/// A callback in the list.
#[derive(Serialize, JsonSchema)]
struct CallbackItem {
    /// Its name.
    name: &'static str,
    /// Description.
    about: &'static str,
    /// Method of the route.
    method: String,
    /// Path of the route.
    path: &'static str,
}

/// All callbacks.
#[derive(Serialize, JsonSchema)]
struct CallbackList {
    /// The callbacks.
    callbacks: Vec<CallbackItem>,
}

fn list(_: &Call<'_, NoPath, NoQuery>) -> Result<Answer<CallbackList>, Problem> {
    let routes = crate::routes::all();
    let about = |callback: &Callback| {
        let route = routes.iter().find(|route| callback.stands_for(route));
        route.map_or("", |route| route.summary)
    };
    let listed = |callback: &Callback| CallbackItem {
        name: callback.name,
        about: about(callback),
        method: callback.method.to_string(),
        path: callback.path,
    };
    Ok(Answer::of(CallbackList { callbacks: CALLBACKS.iter().map(listed).collect() }))
}

impl Callback {
    fn stands_for(&self, route: &Endpoint) -> bool {
        route.method == self.method && route.path == self.path
    }
}

#[derive(Deserialize, JsonSchema)]
struct CallbackPath {
    /// The callback's name.
    callback: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallQuery {
    /// The thread; by default the current thread of the server's project.
    thread: Option<ThreadId>,
    /// The take; the active one by default.
    take: Option<TakeId>,
    /// Preview the change without making it.
    dry_run: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallBody {
    /// The body of the route.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    arguments: BTreeMap<String, Box<RawValue>>,
}

/// The response of a callback.
#[derive(Serialize, JsonSchema)]
struct CallbackAnswer {
    /// Its name.
    callback: &'static str,
    /// The response of the route.
    #[schemars(with = "Value")]
    result: Box<RawValue>,
}

fn call_back(call: &Call<'_, CallbackPath, CallQuery, CallBody>) -> Result<Answer<CallbackAnswer>, Problem> {
    let name = &call.path.callback;
    let callback = CALLBACKS
        .iter()
        .find(|callback| callback.name == *name)
        .ok_or_else(|| Problem::not_found(format!("no callback {name:?}; GET /api/callbacks lists them")))?;
    let routes = crate::routes::all();
    let route = routes.iter().find(|route| callback.stands_for(route));
    let route = route.ok_or_else(|| Problem::new(Code::Internal, "the callback has no route"))?;
    if call.expected.is_some() && !route.versioned {
        return Err(Problem::new(Code::Refused, format!("{name} changes no thread and accepts no If-Match")));
    }
    let thread = call.service.resolve_thread(call.query.thread)?;
    let arrived = IncomingRequest {
        who: call.who.clone(),
        path: path(callback, call, thread)?,
        query: query(callback, &call.query)?,
        body: RequestBody::Bytes(body(callback, &call.body.arguments)?),
        expected: call.expected,
        request: call.request,
        made: call.made,
        last_event: None,
    };
    let reply = (route.run)(call.service, arrived).map_err(as_refused)?;
    let ReplyBody::Bytes(bytes) = reply.body else {
        return Err(Problem::new(Code::Internal, "the callback returned a stream"));
    };
    let result = serde_json::from_slice(&bytes).map_err(|error| Problem::new(Code::Internal, error))?;
    let body = CallbackAnswer { callback: callback.name, result };
    Ok(Answer { body, version: reply.version, location: reply.location })
}

/// The `OpenAPI` document cannot describe the arguments of each callback, so that wrong arguments are 422 and not 400.
fn as_refused(problem: Problem) -> Problem {
    match problem.code {
        Code::InvalidRequest => Problem::new(Code::Refused, problem.message),
        _ => problem,
    }
}

fn path(
    callback: &Callback,
    call: &Call<'_, CallbackPath, CallQuery, CallBody>,
    thread: ThreadId,
) -> Result<Vec<(String, String)>, Problem> {
    let mut path = vec![("thread".to_owned(), thread.to_string())];
    path.extend(callback.named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if callback.path.contains("{take}") {
        let none = || Problem::new(Code::Refused, format!("{} needs `take` in the query", callback.name));
        path.push(("take".to_owned(), call.query.take.ok_or_else(none)?.to_string()));
    }
    if callback.path.contains(PRESET) {
        let name = call.body.arguments.get("name").and_then(|name| serde_json::from_str(name.get()).ok());
        let none = || Problem::new(Code::Refused, format!("{} needs `name` in the arguments", callback.name));
        path.push(("preset".to_owned(), name.ok_or_else(none)?));
    }
    Ok(path)
}

/// The body of the route; routes with a preset in the path have none.
fn body(callback: &Callback, arguments: &BTreeMap<String, Box<RawValue>>) -> Result<Vec<u8>, Problem> {
    if callback.path.contains(PRESET) {
        return Ok(Vec::new());
    }
    serde_json::to_vec(arguments).map_err(|error| Problem::new(Code::Internal, error))
}

fn query(callback: &Callback, asked: &CallQuery) -> Result<String, Problem> {
    let take = asked.take.filter(|_| !callback.path.contains("{take}"));
    let given = [
        ("take", take.map(|take| take.to_string())),
        ("dry_run", asked.dry_run.map(|dry_run| dry_run.to_string())),
    ];
    let mut query = Vec::new();
    for (name, value) in given {
        let Some(value) = value else { continue };
        if !callback.query.contains(&name) {
            return Err(Problem::new(Code::Refused, format!("{} has no parameter `{name}`", callback.name)));
        }
        query.push((name, value));
    }
    serde_urlencoded::to_string(query).map_err(|error| Problem::new(Code::Internal, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_callback_has_a_route_and_lists_its_query_parameters() {
        let routes = crate::routes::all();
        for callback in CALLBACKS {
            let route = routes.iter().find(|route| callback.stands_for(route));
            let route = route.unwrap_or_else(|| panic!("{} has no route", callback.name));
            let mut generator = schemars::SchemaGenerator::default();
            (route.query_schema)(&mut generator);
            let known = serde_json::to_string(generator.definitions()).expect("schemas are JSON");
            for name in ["take", "dry_run"] {
                let takes = known.contains(&format!("\"{name}\":"));
                assert_eq!(callback.query.contains(&name), takes, "{} and {name}", callback.name);
            }
        }
    }
}
