//! Static files of the pages: one stylesheet, ES modules, one icon. They are served as they are written.

/// All styles; later parts override earlier ones.
pub(crate) const STYLE: &str = concat!(
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

/// The tab icon.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$((concat!("/studio/", $name), include_str!(concat!("assets/js/", $name)))),*]
    };
}

/// The ES modules: address and source. The first one is the entry point and imports the others.
pub(crate) const MODULES: &[(&str, &str)] = modules![
    "studio.js",
    "actions.js",
    "api.js",
    "conversation.js",
    "dialog.js",
    "dom.js",
    "draft.js",
    "editing.js",
    "events.js",
    "folder.js",
    "input.js",
    "live.js",
    "moves.js",
    "page.js",
    "refresh.js",
    "settings.js",
    "storage.js",
    "times.js",
    "unsaved.js",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_imported_module_is_served() {
        for (address, source) in MODULES {
            for import in source.split("from \"./").skip(1).chain(source.split("import \"./").skip(1)) {
                let name = import.split('"').next().expect("split yields a first part");
                let imported = format!("/studio/{name}");
                assert!(
                    MODULES.iter().any(|(known, _)| *known == imported),
                    "{address} imports {imported}, which is not served"
                );
            }
        }
    }

    #[test]
    fn the_modules_are_small() {
        let bytes: usize = MODULES.iter().map(|(_, source)| source.len()).sum();
        assert!(bytes < 60_000, "the modules have {bytes} bytes");
    }
}
