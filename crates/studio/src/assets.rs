//! What a page loads beside itself: one style, one module, one picture.

/// How everything looks.
pub(crate) const STYLE: &str = include_str!("assets/studio.css");
/// What reacts to a person and to the server.
pub(crate) const MODULE: &str = include_str!("assets/studio.js");
/// The picture on the browser's tab.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");
