//! Small things that all pages are made of.

use maud::{DOCTYPE, Markup, html};
use retake_model::time::Timestamp;

use crate::assets::MODULES;

/// A whole page. `facts` are what the module must know of it.
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
                // Known to the module by its id; attributes with data are no part of the text.
                (self::facts(facts))
                (body)
                template id="choice" { (choice()) }
                dialog id="dialog" {
                    form method="dialog" {
                        div id="dialog-body" {}
                        // What Enter does comes first; it is drawn last.
                        p class="acts" {
                            button value="yes" class="primary" id="dialog-yes" { "Do it" }
                            button value="no" id="dialog-no" formnovalidate { "Leave it" }
                        }
                    }
                }
                div id="toasts" role="status" aria-live="polite" {}
            }
        }
    }
}

/// What is to become of files that two have changed.
fn choice() -> Markup {
    let ways = [
        ("keep", "Leave mine as they are"),
        ("take", "Take the other version"),
        ("mark", "Write both, with markers"),
    ];
    html! {
        fieldset {
            legend { "Someone else changed these files since" }
            @for (value, label) in ways {
                label class="check" { input type="radio" name="conflicts" value=(value) checked[value == "keep"]; (label) }
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

/// A text that is judged by how it looks, such as a command or a changed line: letters that are not seen, and those that
/// turn others around, are shown by their number, so that nothing reads as something else.
pub(crate) fn exact(text: &str) -> Markup {
    html! {
        @for piece in text.split_inclusive(is_deceiving) {
            @match piece.chars().next_back().filter(|last| is_deceiving(*last)) {
                None => (piece),
                Some(last) => {
                    (&piece[..piece.len() - last.len_utf8()])
                    span class="odd" title="A letter that is not seen" { "U+" (format!("{:04X}", u32::from(last))) }
                }
            }
        }
    }
}

/// Letters that change how others are read and are not seen themselves.
fn is_deceiving(letter: char) -> bool {
    let control = letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    control
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A moment; the browser says how long ago that was.
pub(crate) fn moment(time: Timestamp) -> Markup {
    html! { time datetime=(time.to_string()) { (time.to_string()) } }
}

/// An address with what it asks for, whatever letters that has.
pub(crate) fn address(path: &str, asked: &[(&str, &str)]) -> String {
    format!("{path}?{}", serde_urlencoded::to_string(asked).unwrap_or_default())
}

/// Money, from millionths of a dollar.
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
    fn what_is_not_seen_is_shown_where_it_matters() {
        let check = |text: &str, drawn: &str| assert_eq!(exact(text).0, drawn, "{text:?}");
        let odd = |number: &str| {
            format!("<span class=\"odd\" title=\"A letter that is not seen\">U+{number}</span>")
        };
        check("", "");
        check("rm -rf <a>\tä\n", "rm -rf &lt;a&gt;\tä\n");
        check("a\u{202e}b", &format!("a{}b", odd("202E")));
        check("\u{feff}\u{200b}", &format!("{}{}", odd("FEFF"), odd("200B")));
        check("\u{1b}[2J", &format!("{}[2J", odd("001B")));
    }
}
