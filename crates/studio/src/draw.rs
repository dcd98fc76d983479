//! Common elements of pages.

use maud::{DOCTYPE, Markup, html};
use retake_model::replay::OnConflict;
use retake_model::time::Timestamp;
use retake_surface::Choice;

use crate::assets::MODULES;

/// A full page. `facts` are data for the script.
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
                // Loads all modules at once instead of one import after the other.
                @for (address, _) in &MODULES[1..] { link rel="modulepreload" href=(address); }
                script type="module" src=(MODULES[0].0) {}
            }
            body {
                // The script finds these by id.
                (self::facts(facts))
                (body)
                template id="choice" { (choice()) }
                dialog id="dialog" {
                    form method="dialog" {
                        div id="dialog-body" {}
                        // The default action comes first in the source; the style sheet shows it last.
                        p class="acts" {
                            button value="yes" class="primary" id="dialog-yes" { "OK" }
                            button value="no" id="dialog-no" formnovalidate { "Cancel" }
                        }
                    }
                }
                div id="toasts" role="status" aria-live="polite" {}
            }
        }
    }
}

/// The choice for files with conflicts.
fn choice() -> Markup {
    let label = |conflicts| match conflicts {
        OnConflict::Keep => "Keep current",
        OnConflict::Take => "Restore old",
        OnConflict::Mark => "Write both with conflict markers",
    };
    html! {
        fieldset {
            legend { "You changed these files since" }
            @for (conflicts, name, _) in OnConflict::CHOICES {
                label class="check" {
                    input type="radio" name="conflicts" value=(name) checked[*conflicts == OnConflict::default()]; (label(*conflicts))
                }
            }
        }
    }
}

/// Data for the script.
fn facts(facts: &[(&str, String)]) -> Markup {
    html! {
        div id="facts" hidden {
            @for (name, value) in facts { data id=(format!("fact-{name}")) value=(value) {} }
        }
    }
}

/// Shows invisible and bidirectional control characters by their code points, for text that users judge by sight, such
/// as commands and diffs.
pub(crate) fn with_visible_controls(text: &str) -> Markup {
    html! {
        @for piece in text.split_inclusive(is_invisible) {
            @match piece.chars().next_back().filter(|last| is_invisible(*last)) {
                None => (piece),
                Some(last) => {
                    (&piece[..piece.len() - last.len_utf8()])
                    span class="odd" title="Invisible character" { "U+" (format!("{:04X}", u32::from(last))) }
                }
            }
        }
    }
}

/// Invisible characters that change how text reads.
fn is_invisible(letter: char) -> bool {
    let control = letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    control
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A time, which the script shows as a relative time.
pub(crate) fn moment(time: Timestamp) -> Markup {
    html! { time datetime=(time.to_string()) { (time.to_string()) } }
}

/// An address with encoded query parameters.
pub(crate) fn address(path: &str, query: &[(&str, &str)]) -> String {
    format!("{path}?{}", serde_urlencoded::to_string(query).unwrap_or_default())
}

/// An amount of money.
pub(crate) fn dollars(micro_dollars: u64) -> String {
    match micro_dollars {
        0 => "free".to_owned(),
        few if few < 10_000 => format!("${:.4}", few as f64 / 1e6),
        more => format!("${:.2}", more as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_shown_by_code_point() {
        let check = |text: &str, drawn: &str| assert_eq!(with_visible_controls(text).0, drawn, "{text:?}");
        let odd =
            |number: &str| format!("<span class=\"odd\" title=\"Invisible character\">U+{number}</span>");
        check("", "");
        check("rm -rf <a>\tä\n", "rm -rf &lt;a&gt;\tä\n");
        check("a\u{202e}b", &format!("a{}b", odd("202E")));
        check("\u{feff}\u{200b}", &format!("{}{}", odd("FEFF"), odd("200B")));
        check("\u{1b}[2J", &format!("{}[2J", odd("001B")));
    }
}
