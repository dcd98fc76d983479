//! What a page loads beside itself: one style, one module, one picture.

use std::sync::LazyLock;

/// How everything looks.
pub(crate) const STYLE: &str = include_str!("assets/studio.css");
/// What reacts to a person and to the server. It is written for readers, a subject a file; a browser gets it as one, without
/// what only they need.
pub(crate) static MODULE: LazyLock<String> = LazyLock::new(|| compact(SOURCE));
/// The picture on the browser's tab.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

/// The parts of the module, each after those that it begins with.
const SOURCE: &str = concat!(
    include_str!("assets/module/asking.js"),
    include_str!("assets/module/conversation.js"),
    include_str!("assets/module/events.js"),
    include_str!("assets/module/writing.js"),
    include_str!("assets/module/acts.js"),
    include_str!("assets/module/keys.js"),
);

/// Signs beside which a space says nothing.
const SIGNS: &str = "{}()[]=+-*/<>?:;,|&!";

/// A module without indentation, without lines that are only a comment, and without spaces beside signs and signs before
/// the end of a block. No text of the module goes over several lines or holds another one, so that texts are told from the
/// rest by their quotes alone.
fn compact(module: &str) -> String {
    let lines = module.lines().map(str::trim);
    let needed = lines.filter(|line| !(line.is_empty() || line.starts_with("//") || line.starts_with("/**")));
    let mut out = String::with_capacity(module.len());
    for line in needed {
        let mut quote = None;
        // The same to a browser, which never sees one of them assigned to.
        let line = line.replace("const ", "let ");
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            let beside_sign = |other: Option<char>| other.is_none_or(|other| SIGNS.contains(other));
            match (quote, character) {
                (Some(_), '\\') => {
                    out.push(character);
                    out.extend(characters.next());
                    continue;
                }
                (Some(open), _) if open == character => quote = None,
                (None, '"' | '\'' | '`') => quote = Some(character),
                (None, ' ') if beside_sign(out.chars().last()) || beside_sign(characters.peek().copied()) => {
                    continue;
                }
                (None, '}') if out.ends_with([';', ',', '\n']) => {
                    out.pop();
                }
                (None, '>') if out.ends_with(")=") => bare_parameter(&mut out),
                _ => {}
            }
            out.push(character);
        }
        // A line that ends so is over; any other may go on without its end.
        if !out.ends_with([';', '{', ',', '(', '[']) {
            out.push('\n');
        }
    }
    out
}

/// Takes the brackets off a function's only parameter: `(name)=` becomes `name=`, before the rest of the arrow.
fn bare_parameter(out: &mut String) {
    let Some(open) = out.rfind('(') else { return };
    let name = &out[open + 1..out.len() - 2];
    let stands_free =
        out[..open].ends_with(|before| SIGNS.contains(before) && before != ')' && before != ']');
    if stands_free && !name.is_empty() && name.chars().all(char::is_alphanumeric) {
        *out = format!("{}{name}=", &out[..open]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_readers_need_goes_and_texts_stay() {
        let module =
            "// A word.\nconst double = (x) => {\n  say(\"a  (x) => b; }\");\n  return x + x;\n};\nf(x);\n";
        assert_eq!(compact(module), "let double=x=>{say(\"a  (x) => b; }\");return x+x};f(x);");
        let kept = "async (x) => x;\n() => 1;\n(a, b) => a;\n({ a }) => a;\n";
        assert_eq!(compact(kept), "async(x)=>x;()=>1;(a,b)=>a;({a})=>a;");
    }

    #[test]
    fn the_module_is_small_and_no_text_of_it_goes_over_several_lines() {
        assert!(MODULE.len() < 25_000, "the module has {} bytes", MODULE.len());
        for (number, line) in SOURCE.lines().enumerate() {
            assert!(
                line.matches('`').count() % 2 == 0,
                "line {} opens a text that it does not close",
                number + 1
            );
        }
    }
}
