//! Predicts the effect of tools on files, as plain texts by path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use retake_model::agent::ToolOutcome;

use super::scripted_model::{Effect, ScriptedModel};
use crate::folder::{FileNode, Folder};

/// The expected files, and those that cannot be predicted.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    texts: BTreeMap<PathBuf, String>,
    doubtful: BTreeSet<PathBuf>,
    nothing_is_known: bool,
}

impl Files {
    /// The files of a folder.
    pub(super) fn of(folder: &Folder) -> Self {
        Self { texts: texts(folder), ..Self::default() }
    }

    /// The files after these calls ended like this, in order.
    pub(super) fn after(mut self, ended: &[(String, ToolOutcome)], assistant: &ScriptedModel) -> Self {
        assistant.with(|mind| {
            for (call, outcome) in ended {
                match mind.effects.get(call) {
                    Some(effect) if !mind.doubtful.contains(call) => self.apply(effect, *outcome),
                    // Two calls had the same id, or it was replaced.
                    _ => self.nothing_is_known = true,
                }
            }
        });
        self
    }

    fn apply(&mut self, effect: &Effect, outcome: ToolOutcome) {
        let (Effect::Holds(path, _)
        | Effect::Adds(path, _)
        | Effect::Replaces(path, ..)
        | Effect::Removes(path)) = effect
        else {
            return;
        };
        let path = Path::new(path);
        match (outcome, effect) {
            (ToolOutcome::Succeeded, Effect::Holds(_, content)) => {
                self.texts.insert(path.to_owned(), content.clone());
                self.doubtful.remove(path);
            }
            (ToolOutcome::Succeeded, Effect::Adds(_, line)) => {
                self.texts.entry(path.to_owned()).or_default().push_str(line);
            }
            (ToolOutcome::Succeeded, Effect::Replaces(_, old, new)) => match self.texts.get_mut(path) {
                Some(text) if text.contains(old) => *text = text.replacen(old, new, 1),
                _ => _ = self.doubtful.insert(path.to_owned()),
            },
            (ToolOutcome::Succeeded, Effect::Removes(_)) => {
                self.texts.remove(path);
                self.doubtful.remove(path);
            }
            // A file is written completely or not at all.
            (ToolOutcome::Denied, _) | (ToolOutcome::Failed, Effect::Holds(..) | Effect::Replaces(..)) => {}
            // A command may have finished its work before it was stopped.
            _ => _ = self.doubtful.insert(path.to_owned()),
        }
    }
}

/// Compares the folder with the expected files.
pub(super) fn compare(expected: &Files, there: &Folder) -> Result<(), String> {
    if expected.nothing_is_known {
        return Ok(());
    }
    let there = texts(there);
    let paths: BTreeSet<&PathBuf> = expected.texts.keys().chain(there.keys()).collect();
    for path in paths.into_iter().filter(|path| !expected.doubtful.contains(*path)) {
        let (wanted, found) = (expected.texts.get(path), there.get(path));
        if wanted != found {
            return Err(format!("{} should contain {wanted:?}, but contains {found:?}", path.display()));
        }
    }
    Ok(())
}

fn texts(folder: &Folder) -> BTreeMap<PathBuf, String> {
    let text = |(path, thing): (&PathBuf, &FileNode)| match thing {
        FileNode::File { bytes, .. } => Some((path.clone(), String::from_utf8_lossy(bytes).into_owned())),
        _ => None,
    };
    folder.0.iter().filter_map(text).collect()
}
