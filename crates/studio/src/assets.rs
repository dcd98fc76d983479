//! What a page loads beside itself: one style, one module, one picture.

use std::sync::LazyLock;

/// How everything looks.
pub(crate) const STYLE: &str = include_str!("assets/studio.css");
/// What reacts to a person and to the server. It is written for readers; a browser gets it without what only they need.
pub(crate) static MODULE: LazyLock<String> = LazyLock::new(|| compact(include_str!("assets/studio.js")));
/// The picture on the browser's tab.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

/// The lines of a module without indentation and without lines that are only a comment. No text of the module goes
/// over several lines, so that nothing else is touched.
fn compact(module: &str) -> String {
    let lines = module.lines().map(str::trim);
    let needed = lines.filter(|line| !(line.is_empty() || line.starts_with("//") || line.starts_with("/**")));
    needed.fold(String::with_capacity(module.len()), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_small_and_no_text_of_it_goes_over_several_lines() {
        assert!(MODULE.len() < 25_000, "the module has {} bytes", MODULE.len());
        for (number, line) in include_str!("assets/studio.js").lines().enumerate() {
            assert!(line.matches('`').count() % 2 == 0, "line {} opens a text that it does not close", number + 1);
        }
    }
}
