//! All routes of the served `OpenAPI` document: new routes are covered automatically.

use serde_json::Value;

use crate::http::{Client, Request};
use crate::scene::Scene;

/// A route of the document.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of the document by itself")]
pub(crate) struct Route {
    pub(crate) method: String,
    /// With placeholders.
    pub(crate) path: String,
    /// The content type of its body, if it takes one.
    pub(crate) kind: Option<String>,
    /// Whether it accepts an expected version.
    pub(crate) versioned: bool,
    /// Whether it accepts an idempotency key.
    pub(crate) keyed: bool,
    /// Whether it supports a dry run.
    pub(crate) previews: bool,
    /// Whether its query can name a thread.
    asks_for_thread: bool,
    /// Whether its body can name a thread.
    takes_thread: bool,
}

impl Route {
    pub(crate) fn all(client: &Client) -> Vec<Self> {
        let document = client.get("/openapi.json").done();
        let paths = document["paths"].as_object().expect("a document has paths");
        let routes: Vec<Self> = paths
            .iter()
            .flat_map(|(path, methods)| methods.as_object().into_iter().flatten().map(move |one| (path, one)))
            .map(|(path, (method, operation))| Self::read(path, method, operation))
            .collect();
        assert!(routes.len() > 40, "the document has only {} routes", routes.len());
        routes
    }

    fn read(path: &str, method: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().expect("parameters are a list");
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        let content = operation["requestBody"]["content"].as_object();
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            kind: content.and_then(|content| content.keys().next().cloned()),
            versioned: has("If-Match"),
            keyed: has("Idempotency-Key"),
            previews: has("dry_run"),
            asks_for_thread: has("thread") && !path.contains("{thread}"),
            takes_thread: content.is_some_and(|content| {
                content.values().any(|kind| !kind["schema"]["properties"]["thread"].is_null())
            }),
        }
    }

    /// Its name in messages and in the table of bodies.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// A valid request for the route, with ids of a scene.
    pub(crate) fn request(&self, client: &Client, scene: &Scene) -> Request {
        let query = if self.asks_for_thread { format!("?thread={}", scene.thread) } else { String::new() };
        let request = client.request(&self.method, &(scene.path(&self.path) + &query));
        match self.kind.as_deref() {
            None => request,
            Some("application/json") => {
                let mut body = scene.body(&self.name());
                if self.takes_thread {
                    body["thread"] = scene.thread.clone().into();
                }
                request.json(&body)
            }
            Some(kind) => request.body(kind, &scene.file(client)),
        }
    }

    /// The same request as a dry run.
    pub(crate) fn looking_ahead(&self, client: &Client, scene: &Scene) -> Request {
        let mut request = self.request(client, scene);
        request.path.push(if request.path.contains('?') { '&' } else { '?' });
        request.path.push_str("dry_run=true");
        request
    }
}
