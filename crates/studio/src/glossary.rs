//! The glossary from the documentation, available offline.

use maud::{Markup, html};

use crate::draw::document;
use crate::failed::Failed;
use crate::markdown;
use crate::studio::{Asked, Studio};

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

#[expect(clippy::unnecessary_wraps, reason = "every page has this signature")]
pub(crate) fn draw(_: &Studio, _: &Asked) -> Result<Markup, Failed> {
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
