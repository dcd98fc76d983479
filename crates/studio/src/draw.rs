//! Small things that all pages are made of.

use maud::{DOCTYPE, Markup, html};
use retake_model::time::Timestamp;

/// A whole page. `facts` are what the module must know of it: they become attributes of the body.
pub(crate) fn document(title: &str, facts: &[(&str, String)], body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Retake" }
                link rel="icon" href="/studio/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/studio/studio.css";
                script type="module" src="/studio/studio.js" {}
            }
            body {
                // Known to the module by its id; attributes with data are no part of the text.
                (self::facts(facts))
                (body)
            }
        }
    }
}

/// What the module must know.
fn facts(facts: &[(&str, String)]) -> Markup {
    html! {
        div id="facts" hidden {
            @for (name, value) in facts { data id=(format!("fact-{name}")) value=(value) {} }
        }
    }
}

/// A moment; the browser says how long ago that was.
pub(crate) fn moment(time: Timestamp) -> Markup {
    html! { time datetime=(time.to_string()) { (time.to_string()) } }
}

/// A button that the module knows by what it does.
pub(crate) fn button(act: &str, label: &str, title: &str) -> Markup {
    html! { button type="button" data-act=(act) title=(title) { (label) } }
}

/// Money, from millionths of a dollar.
pub(crate) fn dollars(micro_dollars: u64) -> String {
    match micro_dollars {
        0 => "free".to_owned(),
        few if few < 10_000 => format!("${:.4}", few as f64 / 1e6),
        more => format!("${:.2}", more as f64 / 1e6),
    }
}
