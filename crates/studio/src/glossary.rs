//! The glossary from the documentation, available offline.

use maud::{Markup, html};

use crate::draw::document;
use crate::markdown;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

#[expect(clippy::unnecessary_wraps, reason = "every page has this signature")]
pub(crate) fn draw(_: &Studio, _: &PageQuery) -> Result<Markup, PageError> {
    Ok(document(
        "Glossary",
        &[],
        &html! {
            main id="whole" tabindex="0" {
                div class="alone" id="glossary" {
                    h1 { "Glossary" }
                    (markdown::draw(GLOSSARY.trim_start_matches("# Glossary")))
                    p { a href="/studio" { "Back to the studio" } }
                }
            }
        },
    ))
}
