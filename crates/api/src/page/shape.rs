//! Renders JSON schemas: fields, types, descriptions.

use maud::{Markup, html};
use serde_json::Value;

use super::{list, marked, text};

/// Path of the named schemas in the document.
const SCHEMAS: &str = "/components/schemas";

/// All named schemas.
pub(super) fn all(document: &Value) -> Markup {
    let named = document.pointer(SCHEMAS).and_then(Value::as_object);
    html! {
        section id="shapes" {
            h2 { "Shapes" }
            @for (name, shape) in named.into_iter().flatten() {
                article id=(anchor(name)) {
                    h3 { code { (name) } }
                    (about(shape))
                    (fields(document, shape))
                }
            }
        }
    }
}

/// The fields of a schema as a table, or its type if it has none.
pub(super) fn fields(document: &Value, shape: &Value) -> Markup {
    let required = list(&shape["required"]);
    let known = shape["properties"].as_object();
    let choices = ["oneOf", "anyOf"].iter().flat_map(|way| list(&shape[*way]));
    let choices: Vec<&Value> = choices.collect();
    html! {
        @if let Some(known) = known.filter(|known| !known.is_empty()) {
            table {
                thead { tr { th scope="col" { "Field" } th scope="col" { "Type" } th scope="col" { "About" } } }
                tbody {
                    @for (name, field) in known {
                        tr {
                            td {
                                code { (name) }
                                @if required.iter().any(|needed| needed == name) { span class="required" { " always" } }
                            }
                            td { (kind(field)) }
                            td { (marked(text(&field["description"]))) }
                        }
                    }
                }
            }
        } @else if choices.is_empty() {
            p class="detail" { (kind(shape)) }
        }
        @for part in list(&shape["allOf"]) { (fields(document, part)) }
        @if !choices.is_empty() {
            p class="detail" { "One of:" }
            ul {
                @for choice in choices {
                    li { (kind(choice)) " " (marked(text(&choice["description"]))) (inner(document, choice)) }
                }
            }
        }
    }
}

/// The name of a schema, with a link to its description.
pub(super) fn kind(shape: &Value) -> Markup {
    let choices: Vec<&Value> = ["oneOf", "anyOf"].iter().flat_map(|way| list(&shape[*way])).collect();
    html! {
        @if let Some(name) = shape["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            a href=(format!("#{}", anchor(name))) { (name) }
        } @else if let Some(value) = shape.get("const") {
            code { (value.to_string()) }
        } @else if let [first, rest @ ..] = list(&shape["enum"]) {
            code { (first.to_string()) } @for value in rest { ", " code { (value.to_string()) } }
        } @else if shape["type"] == "array" {
            "list of " (kind(&shape["items"]))
        } @else if let [first, rest @ ..] = choices.as_slice() {
            (kind(first)) @for choice in rest { " or " (kind(choice)) }
        } @else if let [first, rest @ ..] = list(&shape["type"]) {
            (text(first)) @for other in rest { " or " (text(other)) }
        } @else if let Some(name) = shape["type"].as_str() {
            (name)
        } @else {
            "anything"
        }
    }
}

fn inner(document: &Value, choice: &Value) -> Markup {
    html! { @if choice.get("properties").is_some() { (fields(document, choice)) } }
}

fn about(shape: &Value) -> Markup {
    html! {
        @if let Some(description) = shape["description"].as_str() { p class="detail" { (marked(description)) } }
    }
}

fn anchor(name: &str) -> String {
    format!("shape-{name}")
}
