//! Generates the `OpenAPI` 3.1 document from the request and response types.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::http::{Method, StatusCode};
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value, json};

use crate::endpoint::{EVENTS, Endpoint, JSON, MakeSchema, RequestBodyKind};
use crate::idempotency::RecoveredChange;
use crate::problem::{self, Code, ProblemDocument};

/// The `OpenAPI` document.
pub(crate) struct Document {
    pub(crate) value: Value,
    /// `value` as text.
    pub(crate) text: String,
    page: OnceLock<String>,
}

const ABOUT: &str = "Conversation and files on one timeline. Every change is an operation, which is on disk before the \
    response, returns its `operation` and `version`, and can be undone.\n\n\
    Send the token as `Authorization: Bearer TOKEN` (`retake serve token` prints it). Send the expected version in \
    `If-Match`, as in the `ETag` of a response: if the thread has changed, nothing happens, and the response is 412 with \
    the `current` version. Send an `Idempotency-Key` with each POST: the same request with the same key runs once and \
    gets the same response, even after a restart. Lists have a `next` cursor if there is more.";

impl Document {
    pub(crate) fn of(endpoints: &[Endpoint], cookie: &str) -> Self {
        let mut answers = generator(SchemaPlacement::Named);
        let problem = answers.subschema_for::<ProblemDocument<'_>>();
        let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for endpoint in endpoints {
            let operation = operation(endpoint, &mut answers);
            let method = endpoint.method.as_str().to_lowercase();
            paths.entry(endpoint.path).or_default().insert(method, operation);
        }
        let schemas = answers.take_definitions(true);
        let value = json!({
            "openapi": "3.1.0",
            "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
            "info": {
                "title": "Retake",
                "version": env!("CARGO_PKG_VERSION"),
                "description": ABOUT,
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{"token": []}, {"cookie": []}],
            "tags": tags(endpoints),
            "paths": paths,
            "components": {
                "schemas": schemas,
                "responses": {"Problem": {
                    "description": "The request failed",
                    "content": {"application/problem+json": {"schema": problem}},
                }},
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
                },
            },
        });
        let text = serde_json::to_string_pretty(&value).expect("the document contains only JSON values");
        Self { value, text, page: OnceLock::new() }
    }

    /// The document as a page, rendered on first use.
    pub(crate) fn page(&self) -> &str {
        self.page.get_or_init(|| crate::page::reference(self))
    }
}

/// Where schemas of nested types go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPlacement {
    /// Under a name, with references.
    Named,
    /// Inline.
    InPlace,
}

fn generator(shapes: SchemaPlacement) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.definitions_path = "/components/schemas".into();
    settings.inline_subschemas = shapes == SchemaPlacement::InPlace;
    // Requests may omit fields with defaults; responses do not.
    let settings = match shapes {
        SchemaPlacement::Named => settings.for_serialize(),
        SchemaPlacement::InPlace => settings.for_deserialize(),
    };
    settings.into_generator()
}

/// Adds the bounds of an integer, because a schema cannot state its width otherwise.
fn bound(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint64" | "uint") => (json!(0), json!(u64::MAX)),
        Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        _ => return,
    };
    let fields = schema.ensure_object();
    fields.entry("minimum").or_insert(least);
    fields.entry("maximum").or_insert(most);
}

fn in_place(make: MakeSchema) -> Schema {
    let mut schema = make(&mut generator(SchemaPlacement::InPlace));
    RecursiveTransform(bound).transform(&mut schema);
    schema
}

fn tags(endpoints: &[Endpoint]) -> Vec<Value> {
    let mut seen: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        if !seen.contains(&endpoint.group) {
            seen.push(endpoint.group);
        }
    }
    seen.into_iter().map(|name| json!({"name": name})).collect()
}

fn operation(endpoint: &Endpoint, answers: &mut SchemaGenerator) -> Value {
    let mut parameters = parameters("path", endpoint.path_schema);
    parameters.extend(self::parameters("query", endpoint.query_schema));
    if endpoint.versioned {
        parameters.push(header(
            "If-Match",
            "The expected version of the thread; otherwise the response is 412.",
            json!({
                "type": "string", "pattern": "^(\"[0-9]{1,18}\"|[0-9]{1,18}|\\*)$",
            }),
        ));
    }
    if endpoint.method == Method::POST {
        parameters.push(header(
            "Idempotency-Key",
            "Idempotency key: requests with the same key run once.",
            json!({
                "type": "string", "pattern": "^[!-~]([ -~]{0,198}[!-~])?$",
            }),
        ));
    }
    if endpoint.method != Method::GET {
        parameters.push(header(
            "Retake-Client",
            "Name of the client program, recorded in the history.",
            json!({
                "type": "string", "pattern": "^[!-~]([ -~]{0,58}[!-~])?$",
            }),
        ));
    }
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "tags": [endpoint.group],
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": responses(endpoint, answers),
    });
    let fields = operation.as_object_mut().expect("created as an object above");
    if !endpoint.detail.is_empty() {
        fields.insert("description".to_owned(), endpoint.detail.into());
    }
    match endpoint.takes {
        RequestBodyKind::Nothing => {}
        RequestBodyKind::Json(make) => {
            let schema = in_place(make);
            let required =
                schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
            let body = json!({"required": required, "content": {JSON: {"schema": schema}}});
            fields.insert("requestBody".to_owned(), body);
        }
        RequestBodyKind::File(kind) => {
            let body = json!({"required": true, "content": {kind: {"schema": {"type": "string"}}}});
            fields.insert("requestBody".to_owned(), body);
        }
    }
    operation
}

fn responses(endpoint: &Endpoint, answers: &mut SchemaGenerator) -> Value {
    let keyed = endpoint.method == Method::POST;
    let content = match endpoint.gives.schema {
        // If the stored answer was lost, the response has what the log knows.
        Some(make) if keyed && endpoint.gives.kind == JSON => {
            let lost = answers.subschema_for::<RecoveredChange>().to_value();
            json!({"schema": {"anyOf": [make(answers).to_value(), lost]}})
        }
        Some(make) => json!({"schema": make(answers).to_value()}),
        // OpenAPI 3.1 cannot describe the events of a stream.
        None if endpoint.gives.kind == EVENTS => json!({}),
        None => json!({"schema": {"type": "string"}}),
    };
    let mut good = json!({"description": endpoint.summary, "content": {endpoint.gives.kind: content}});
    for kind in endpoint.gives.or {
        good["content"][*kind] =
            if *kind == JSON { json!({}) } else { json!({"schema": {"type": "string"}}) };
    }
    let header = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    good["headers"] = json!({"X-Request-Id": header("Id of the request in the log")});
    if endpoint.versioned || endpoint.path.starts_with("/v1/threads/{thread}") {
        good["headers"]["ETag"] = header("Version of the thread");
    }
    if keyed {
        good["headers"]["Idempotency-Replayed"] =
            header("`true` if this is the stored response of an earlier request with the same key");
    }
    if matches!(endpoint.gives.status, StatusCode::CREATED | StatusCode::ACCEPTED) {
        good["headers"]["Location"] = header("URL of the created object, if it has one");
    }
    let mut responses = Map::new();
    responses.insert(endpoint.gives.status.as_str().to_owned(), good);
    for code in Code::over_http() {
        let status = problem::status(code);
        let reference = json!({"$ref": "#/components/responses/Problem"});
        responses.entry(status.as_str().to_owned()).or_insert(reference);
    }
    Value::Object(responses)
}

/// The fields of a type as parameters.
fn parameters(place: &str, make: MakeSchema) -> Vec<Value> {
    let schema = in_place(make).to_value();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .map(|(name, field)| {
            let mut field = field.clone();
            let about = field.as_object_mut().and_then(|field| field.remove("description"));
            json!({
                "name": name,
                "in": place,
                "required": place == "path" || required.contains(&name.as_str()),
                "description": about.unwrap_or_default(),
                "schema": never_null(field),
            })
        })
        .collect()
}

/// Query parameters are present or absent, never null.
fn never_null(mut field: Value) -> Value {
    if let Some(kinds) = field["type"].as_array() {
        let kinds: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
        if let [one] = kinds.as_slice() {
            field["type"] = (*one).clone();
        }
    }
    if let Some(choices) = field["anyOf"].as_array() {
        let choices: Vec<&Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
        if let [one] = choices.as_slice() {
            return (*one).clone();
        }
    }
    if let Some(fields) = field.as_object_mut()
        && fields.get("default").is_some_and(Value::is_null)
    {
        fields.remove("default");
    }
    field
}

fn header(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": about, "schema": schema})
}

/// The operation id, from the method and the path.
fn operation_id(endpoint: &Endpoint) -> String {
    let mut id = endpoint.method.as_str().to_lowercase();
    for part in endpoint.path.split('/').filter(|part| !part.is_empty()) {
        let name = part.trim_start_matches('{').trim_end_matches('}');
        id.push('_');
        id.push_str(&name.replace(['-', '.'], "_"));
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operation_ids_are_unique_and_references_resolve() {
        let document = Document::of(&crate::routes::all(), "retake");
        let paths = document.value["paths"].as_object().expect("paths");
        let operations = paths.values().flat_map(|path| path.as_object().into_iter().flatten());
        let ids: Vec<&str> =
            operations.map(|(_, operation)| operation["operationId"].as_str().unwrap_or_default()).collect();
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len(), "operation ids are unique");
        let schemas = document.value["components"]["schemas"].as_object().expect("schemas");
        for reference in document.text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name} is referenced but missing");
        }
    }

    #[test]
    fn integers_of_requests_have_bounds() {
        fn check(value: &Value, at: &str) {
            if let Some(fields) = value.as_object() {
                let integer = fields.get("type").is_some_and(|kind| {
                    kind == "integer"
                        || kind.as_array().is_some_and(|kinds| kinds.contains(&"integer".into()))
                });
                assert!(!integer || fields.contains_key("maximum"), "{at}: {value}");
                fields.values().for_each(|value| check(value, at));
            }
            value.as_array().into_iter().flatten().for_each(|value| check(value, at));
        }
        for endpoint in crate::routes::all() {
            check(&in_place(endpoint.query_schema).to_value(), endpoint.path);
            if let RequestBodyKind::Json(make) = endpoint.takes {
                check(&in_place(make).to_value(), endpoint.path);
            }
        }
    }

    #[test]
    fn path_parameters_match_the_path() {
        for endpoint in crate::routes::all() {
            let named: BTreeSet<String> = endpoint
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .map(str::to_owned)
                .collect();
            let known = parameters("path", endpoint.path_schema);
            let known: BTreeSet<String> =
                known.iter().filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect();
            assert_eq!(named, known, "{}", endpoint.path);
        }
    }
}
