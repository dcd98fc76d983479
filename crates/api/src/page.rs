//! The reference page: no scripts and no external resources.

mod shape;

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use crate::document::Document;
use crate::problem::{self, Code, Problem};

pub(crate) const HTML: &str = "text/html; charset=utf-8";

pub(crate) const STYLE: &str = include_str!("page/style.css");

/// Renders the `OpenAPI` document.
pub(crate) fn reference(document: &Document) -> String {
    let value = &document.value;
    let tags = list(&value["tags"]);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Retake API" }
                link rel="stylesheet" href="/docs.css";
            }
            body {
                nav aria-label="Routes" {
                    h1 { "Retake API" }
                    p { a href="/openapi.json" { "OpenAPI 3.1" } " · version " (text(&value["info"]["version"])) }
                    @for tag in tags { (contents(value, text(&tag["name"]))) }
                    h2 { a href="#shapes" { "Schemas" } }
                    h2 { a href="#problems" { "Problems" } }
                }
                main {
                    @for paragraph in text(&value["info"]["description"]).split("\n\n") { p { (marked(paragraph)) } }
                    @for tag in tags { (group(value, text(&tag["name"]))) }
                    (shape::all(value))
                    section id="problems" {
                        h2 { "Problems" }
                        dl {
                            @for code in Code::over_http() {
                                dt id=(format!("problem-{}", code.name())) {
                                    code { (code.name()) } " " span class="status" { (code.http_status()) } " "
                                    (code.title())
                                }
                                dd { (marked(&problem::action(code, ""))) }
                            }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// A problem as a page. Without a style sheet, because an unauthenticated browser cannot load one.
pub(crate) fn refusal(problem: &Problem, request: &str) -> String {
    let title = problem.code.title();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Retake" }
            }
            body {
                h1 { (title) }
                p { (marked(&sentence(&problem.message))) }
                @if problem.code == Code::Unauthorized {
                    p {
                        "Run " code { "retake serve link" } " on the server's machine and open the link that it prints. \
                         The link is single-use and valid for ten minutes."
                    }
                } @else {
                    p { (marked(problem.code.action())) }
                }
                p { small { (problem.code.http_status()) " " code { (problem.code.name()) } " · request " code { (request) } } }
            }
        }
    };
    page.into_string()
}

/// Turns a detail into a sentence.
fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if detail.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// The routes of a group.
fn routes<'a>(document: &'a Value, tag: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .filter(move |(_, _, operation)| operation["tags"][0] == tag)
}

fn contents(document: &Value, tag: &str) -> Markup {
    html! {
        h2 { (tag) }
        ul {
            @for (_, method, operation) in routes(document, tag) {
                li { a href=(format!("#{}", text(&operation["operationId"]))) {
                    span class=(format!("method {method}")) { (method.to_uppercase()) } " "
                    (text(&operation["summary"]))
                } }
            }
        }
    }
}

fn group(document: &Value, tag: &str) -> Markup {
    html! {
        section {
            h2 { (tag) }
            @for (path, method, operation) in routes(document, tag) {
                article id=(text(&operation["operationId"])) {
                    h3 {
                        span class=(format!("method {method}")) { (method.to_uppercase()) } " "
                        code { (path) }
                    }
                    p { (marked(text(&operation["summary"]))) }
                    @if !operation["description"].is_null() {
                        p class="detail" { (marked(text(&operation["description"]))) }
                    }
                    (parameters(operation))
                    (body(document, operation))
                    (answer(operation))
                }
            }
        }
    }
}

fn parameters(operation: &Value) -> Markup {
    let parameters = list(&operation["parameters"]);
    html! {
        @if !parameters.is_empty() {
            table {
                thead { tr { th scope="col" { "Parameter" } th scope="col" { "In" } th scope="col" { "About" } } }
                tbody {
                    @for parameter in parameters {
                        tr {
                            td {
                                code { (text(&parameter["name"])) }
                                @if parameter["required"] == true { span class="required" { " required" } }
                            }
                            td { (text(&parameter["in"])) }
                            td { (marked(text(&parameter["description"]))) }
                        }
                    }
                }
            }
        }
    }
}

fn body(document: &Value, operation: &Value) -> Markup {
    let content = operation["requestBody"]["content"].as_object();
    html! {
        @for (kind, shape) in content.into_iter().flatten() {
            @if let Some(named) = named(document, &shape["schema"]) {
                details open { summary { "Body: " code { (kind) } } (shape::fields(document, named)) }
            } @else {
                p class="answers" { "Body: " code { (kind) } }
            }
        }
    }
}

fn answer(operation: &Value) -> Markup {
    let responses = operation["responses"].as_object().into_iter().flatten();
    let good = responses.filter(|(status, _)| status.starts_with('2'));
    html! {
        @for (status, response) in good {
            @for (kind, shape) in response["content"].as_object().into_iter().flatten() {
                p class="answers" {
                    "Response " span class="status" { (status) } ": " code { (kind) }
                    @if !shape["schema"].is_null() { ": " (shape::kind(&shape["schema"])) }
                }
            }
        }
    }
}

/// Renders text in backquotes as code.
fn marked(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Resolves a reference to a schema.
fn named<'a>(document: &'a Value, shape: &'a Value) -> Option<&'a Value> {
    match shape["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => document.pointer(path),
        None => (!shape.is_null()).then_some(shape),
    }
}
