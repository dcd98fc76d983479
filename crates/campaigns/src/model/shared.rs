//! Shared prompts and roles in the simplest way: all values with the thread that set them, in order.

use retake_model::id::ThreadId;
use retake_timeline::{Command, Timeline};

use super::compare::same;
use super::log::ReferenceThread;
use super::plain::PlainThread;
use super::world::World;
use crate::violation::BoxError;

/// Shared prompts.
pub const PROMPTS: [&str; 2] = ["project_system_prompt", "global_system_prompt"];
const ROLES: &str = "roles";
/// Maximum number of stored values per setting.
const MAX_VALUES: usize = 100;

/// Every shared value: its name, thread and value.
#[derive(Debug, Default)]
pub struct SharedSettings(Vec<(String, ThreadId, String)>);

impl SharedSettings {
    /// Records a shared value that a command set.
    pub fn record(&mut self, thread: ThreadId, command: &Command, after: &PlainThread) {
        match command {
            Command::SetRoles { .. } => self.0.push((ROLES.to_owned(), thread, after.roles.join("\n"))),
            Command::Set { values } => {
                let shared = values.iter().filter(|(name, _)| PROMPTS.contains(&name.as_str()));
                self.0.extend(shared.map(|(name, value)| (name.clone(), thread, value.clone())));
            }
            _ => {}
        }
    }

    /// The latest value that its thread still has.
    fn value(&self, threads: &[ReferenceThread], name: &str) -> Option<&str> {
        let known = self.0.iter().rev().filter(|(known, ..)| known == name).take(MAX_VALUES);
        let mut stored = known.filter(|(_, id, value)| {
            let thread = threads.iter().rfind(|thread| thread.id == *id);
            thread.is_none_or(|thread| own(thread.picture(), name) == *value)
        });
        stored.next().map(|(_, _, value)| value.as_str())
    }
}

/// The thread's own value.
fn own(picture: &PlainThread, name: &str) -> String {
    if name == ROLES {
        return picture.roles.join("\n");
    }
    picture
        .settings
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.clone())
        .unwrap_or_default()
}

impl World {
    /// The roles offered for entries of a thread.
    pub fn roles_of(&self, index: usize) -> Vec<String> {
        match self.shared.value(&self.threads, ROLES) {
            Some(roles) => roles.lines().map(str::to_owned).collect(),
            None => self.threads[index].picture().roles.clone(),
        }
    }

    /// Compares the shared prompts and roles of a thread.
    pub fn check_shared(&self, timeline: &Timeline, index: usize) -> Result<(), BoxError> {
        let thread = &self.threads[index];
        let reader = timeline.read()?;
        same("roles", &reader.settings(thread.id).roles()?, &self.roles_of(index))?;
        let settings = reader.settings(thread.id).effective()?;
        for name in PROMPTS {
            let expected = self.shared.value(&self.threads, name);
            let expected = expected.map_or_else(|| own(thread.picture(), name), str::to_owned);
            same(name, &settings.get(name).unwrap_or_default(), &expected)?;
        }
        Ok(())
    }
}
