//! Parses the operations of the `OpenAPI` document.

use serde_json::Value;

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// Documented statuses.
    pub(super) statuses: Vec<u16>,
}

/// A path, query or header parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: ParameterLocation,
    pub(super) required: bool,
    pub(super) schema: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
}

#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) kind: String,
    pub(super) schema: Value,
    pub(super) required: bool,
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(super) fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let described = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, described)| (path, method, described))
    });
    described
        .filter(|(_, method, _)| METHODS.contains(&method.as_str()))
        .map(|(path, method, described)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            parameters: described["parameters"].as_array().into_iter().flatten().map(parameter).collect(),
            body: body(&described["requestBody"]),
            statuses: described["responses"]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(status, _)| status.parse().ok())
                .collect(),
        })
        .collect()
}

fn parameter(described: &Value) -> Parameter {
    let place = match described["in"].as_str() {
        Some("path") => ParameterLocation::Path,
        Some("query") => ParameterLocation::Query,
        _ => ParameterLocation::Header,
    };
    Parameter {
        name: described["name"].as_str().unwrap_or_default().to_owned(),
        place,
        required: described["required"] == true,
        schema: described["schema"].clone(),
    }
}

fn body(described: &Value) -> Option<Body> {
    let (kind, content) = described["content"].as_object()?.iter().next()?;
    let required = described["required"] == true;
    Some(Body { kind: kind.clone(), schema: content["schema"].clone(), required })
}
