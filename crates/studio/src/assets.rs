//! Assets: one style sheet, one script, one icon.
//!
//! Style sheet and script consist of several source files, joined and minified.

use std::sync::LazyLock;

/// The style sheet.
pub(crate) static STYLE: LazyLock<String> = LazyLock::new(|| {
    // Send the source if it cannot be minified.
    minifier::css::minify(STYLE_SOURCE).map_or_else(|_| STYLE_SOURCE.to_owned(), |small| small.to_string())
});

/// The script.
pub(crate) static MODULE: LazyLock<String> = LazyLock::new(|| {
    // A semicolon before a closing brace is redundant.
    minifier::js::minify(SOURCE).to_string().replace(";}", "}")
});

/// The favicon.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

/// In cascade order.
const STYLE_SOURCE: &str = concat!(
    include_str!("assets/style/base.css"),
    include_str!("assets/style/frame.css"),
    include_str!("assets/style/tree.css"),
    include_str!("assets/style/bar.css"),
    include_str!("assets/style/conversation.css"),
    include_str!("assets/style/composer.css"),
    include_str!("assets/style/panel.css"),
    include_str!("assets/style/history.css"),
    include_str!("assets/style/blame.css"),
    include_str!("assets/style/dialog.css"),
    include_str!("assets/style/compare.css"),
    include_str!("assets/style/narrow.css"),
);

/// In dependency order.
const SOURCE: &str = concat!(
    include_str!("assets/module/asking.js"),
    include_str!("assets/module/conversation.js"),
    include_str!("assets/module/events.js"),
    include_str!("assets/module/writing.js"),
    include_str!("assets/module/acts.js"),
    include_str!("assets/module/keys.js"),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small() {
        assert!(MODULE.len() < 25_000, "the script has {} bytes", MODULE.len());
    }
}
