//! What a page loads beside itself: one style, one module, one picture.
//!
//! Both are written for readers, a subject a file. A browser gets each as one, without what only readers need.

use std::sync::LazyLock;

/// How everything looks.
pub(crate) static STYLE: LazyLock<String> = LazyLock::new(|| {
    // What cannot be made smaller is sent as it is.
    minifier::css::minify(STYLE_SOURCE).map_or_else(|_| STYLE_SOURCE.to_owned(), |small| small.to_string())
});

/// What reacts to a person and to the server.
pub(crate) static MODULE: LazyLock<String> = LazyLock::new(|| {
    // The end of a block ends what stands before it.
    minifier::js::minify(SOURCE).to_string().replace(";}", "}")
});

/// The picture on the browser's tab.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

/// The parts of the style, the later ones over the earlier.
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

/// The parts of the module, each after those that it begins with.
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
    fn the_module_is_small() {
        assert!(MODULE.len() < 25_000, "the module has {} bytes", MODULE.len());
    }
}
