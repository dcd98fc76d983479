//! The page of a link: text only, without scripts, and nothing is loaded from elsewhere.

use maud::{DOCTYPE, html};
use retake_sync::wire::SharedPage;

/// What a browser may do with the page: apply the style in it, and nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; sandbox";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;\
    color-scheme:light dark}h2{font-size:1rem;margin:2rem 0 .25rem}pre{white-space:pre-wrap;overflow-wrap:anywhere;\
    font:inherit;margin:0}footer{margin-top:3rem;opacity:.7}";

/// The page as HTML.
pub(crate) fn draw(page: &SharedPage) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex, nofollow";
                meta name="referrer" content="no-referrer";
                title { (page.title) }
                style { (STYLE) }
            }
            body {
                main {
                    h1 { (page.title) }
                    @for entry in &page.entries {
                        section { h2 { (entry.role) } pre { (entry.text) } }
                    }
                }
                footer { "Shared with Retake. This page shows one version and does not change." }
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use retake_sync::wire::SharedEntry;

    #[test]
    fn text_never_becomes_markup() {
        let entry =
            SharedEntry { role: "<b>".to_owned(), text: "</pre><script>alert(1)</script>".to_owned() };
        let page = SharedPage { title: "</title><img src=x>".to_owned(), entries: vec![entry] };
        let html = draw(&page);
        for forbidden in ["<script", "<img", "<b>", "href", "src="] {
            assert!(!html.replace("&lt;img src=x&gt;", "").contains(forbidden), "{forbidden} in {html}");
        }
    }
}
