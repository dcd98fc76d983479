//! Commands on the thread as a whole.

use retake_timeline::Command;

use super::super::fault::ModelFault;
use super::super::names;
use super::super::plain::{PlainTake, PlainThread};
use super::super::shared::PROMPTS;
use super::ExpectedRefusal;

/// Maximum number of tags and of roles.
const MAX_NAMES: usize = 256;

pub(super) fn change(picture: &mut PlainThread, command: &Command, now: i64) -> Result<(), ExpectedRefusal> {
    match command {
        Command::Rename { title } => picture.title = names::meaning(title).ok_or(ExpectedRefusal::Name)?,
        Command::Tag { add, remove } => {
            let (add, remove) = (all(add)?, all(remove)?);
            let mut tags = picture.tags.clone();
            tags.extend(add);
            tags.retain(|tag| !remove.contains(tag));
            tags.sort();
            tags.dedup();
            picture.tags = few(tags)?;
        }
        Command::Pin { pinned } => picture.pinned = *pinned,
        // Visibility is not part of history.
        Command::Share { .. } => {}
        Command::Delete => picture.deleted = picture.deleted.or(Some(now)),
        Command::Restore => picture.deleted = None,
        Command::SetRoles { roles } => {
            let mut kept = Vec::new();
            for role in all(roles)? {
                if !kept.contains(&role) {
                    kept.push(role);
                }
            }
            picture.roles = few(kept)?;
        }
        Command::Set { values } => {
            for (name, value) in values {
                let means = names::setting_meaning(name, value).ok_or(ExpectedRefusal::Setting)?;
                for (known, setting) in &mut picture.settings {
                    if known == name {
                        means.clone_into(setting);
                    }
                }
            }
        }
        other => unreachable!("{other:?} is not a command on a thread as a whole"),
    }
    Ok(())
}

pub(super) fn reset(picture: &mut PlainThread, fault: Option<ModelFault>) {
    let mut settings = names::default_settings();
    if fault != Some(ModelFault::ResetClearsSharedPrompts) {
        for (after, before) in settings.iter_mut().zip(&picture.settings) {
            if PROMPTS.contains(&after.0.as_str()) {
                after.clone_from(before);
            }
        }
    }
    picture.settings = settings;
    for take in &mut picture.takes {
        let draft =
            if fault == Some(ModelFault::ResetKeepsDrafts) { take.draft.clone() } else { String::new() };
        *take = PlainTake {
            id: take.id,
            name: take.name.clone(),
            created: take.created,
            entries: Vec::new(),
            draft,
            attached: Vec::new(),
            files: [Vec::new(), Vec::new(), Vec::new()],
            parent: take.parent,
            fork_point: None,
            sent: None,
            running: None,
        };
    }
}

fn all(names: &[String]) -> Result<Vec<String>, ExpectedRefusal> {
    names.iter().map(|name| names::meaning(name).ok_or(ExpectedRefusal::Name)).collect()
}

fn few(names: Vec<String>) -> Result<Vec<String>, ExpectedRefusal> {
    if names.len() > MAX_NAMES { Err(ExpectedRefusal::TooMuch) } else { Ok(names) }
}
