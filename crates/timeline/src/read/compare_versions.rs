//! Compares two versions of a thread, for previews of moves and for the effect of an operation.
//!
//! Files are not included: operations name their snapshots, and [`SnapshotReader::changes`](crate::SnapshotReader::changes)
//! compares those.

use std::collections::HashMap;

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ThreadId};
use retake_model::list::{EntryCell, Hunk, List, TakeCell};
use retake_model::object::load;
use retake_model::operation::Version;
use retake_model::state::ThreadState;
use retake_model::take::{FileItem, FileList, Take};
use retake_store::Queries;
use serde::Serialize;

use crate::{ReadError, Reader};

/// Differences between two versions of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionComparison {
    /// Changed entries of the current take, in order, up to the requested number.
    pub entries: Vec<EntryDifference>,
    /// Number of added entries in total.
    pub entries_added: u64,
    /// Number of removed entries in total.
    pub entries_removed: u64,
    /// Number of entries with changed content.
    pub entries_changed: u64,
    /// Changed texts and values by name: the title, the draft, settings, lists.
    pub fields: Vec<FieldDifference>,
    /// Names of added takes.
    pub takes_added: Vec<String>,
    /// Names of removed takes.
    pub takes_removed: Vec<String>,
}

/// An added, removed or changed entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryDifference {
    /// Position counted from 1; of a removed entry, its old position.
    pub number: u64,
    /// The entry.
    pub id: EntryId,
    /// The old content.
    pub before: Option<EntryVersion>,
    /// The new content.
    pub after: Option<EntryVersion>,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldDifference {
    /// Name, as in the API.
    pub name: String,
    /// The old value.
    pub before: String,
    /// The new value.
    pub after: String,
}

impl VersionComparison {
    /// Compares two versions of a thread, with at most that many entries.
    pub(crate) fn of(
        reader: &Reader<'_>,
        thread: ThreadId,
        [from, to]: [Version; 2],
        most: usize,
    ) -> Result<Self, ReadError> {
        let (before, after) = (reader.state_at(thread, from)?, reader.state_at(thread, to)?);
        let queries = reader.queries();
        let (old, new) = (before.active_take(&queries)?, after.active_take(&queries)?);
        let mut comparison = Self::default();
        for hunk in List::diff(&queries, &old.entries, &new.entries)? {
            comparison.add_entries(&queries, hunk, most)?;
        }
        for hunk in List::diff(&queries, &before.takes, &after.takes)? {
            comparison.add_takes(&queries, &hunk)?;
        }
        let fields = Fields::of(&queries, &before, &old)?;
        comparison.fields = fields.compare(Fields::of(&queries, &after, &new)?);
        Ok(comparison)
    }

    fn add_entries(
        &mut self,
        queries: &Queries<'_>,
        hunk: Hunk<EntryCell>,
        most: usize,
    ) -> Result<(), ReadError> {
        let mut gone: HashMap<EntryId, (u64, EntryCell)> = HashMap::new();
        let was = (hunk.old_start..).zip(hunk.removed);
        let mut changed: Vec<(u64, EntryId, [Option<EntryCell>; 2])> = Vec::new();
        let stays: std::collections::HashSet<EntryId> = hunk.added.iter().map(|cell| cell.entry).collect();
        for (place, cell) in was {
            if stays.contains(&cell.entry) {
                gone.insert(cell.entry, (place, cell));
            } else {
                changed.push((place, cell.entry, [Some(cell), None]));
            }
        }
        for (place, cell) in (hunk.new_start..).zip(hunk.added) {
            let old = gone.remove(&cell.entry).map(|(_, old)| old);
            if old.is_none_or(|old| old.version != cell.version) {
                changed.push((place, cell.entry, [old, Some(cell)]));
            }
        }
        for (place, id, cells) in changed {
            match cells {
                [None, _] => self.entries_added += 1,
                [_, None] => self.entries_removed += 1,
                _ => self.entries_changed += 1,
            }
            if self.entries.len() >= most {
                continue;
            }
            let read = |cell: Option<EntryCell>| {
                cell.map(|cell| load(queries, cell.version)).transpose().map_err(ReadError::from)
            };
            let [before, after] = cells;
            let (before, after) = (read(before)?, read(after)?);
            self.entries.push(EntryDifference { number: place + 1, id, before, after });
        }
        Ok(())
    }

    fn add_takes(&mut self, queries: &Queries<'_>, hunk: &Hunk<TakeCell>) -> Result<(), ReadError> {
        let name =
            |cell: &TakeCell| -> Result<String, ReadError> { Ok(load::<Take>(queries, cell.content)?.name) };
        let without =
            |cell: &&TakeCell, others: &[TakeCell]| !others.iter().any(|other| other.take == cell.take);
        for cell in hunk.added.iter().filter(|cell| without(cell, &hunk.removed)) {
            self.takes_added.push(name(cell)?);
        }
        for cell in hunk.removed.iter().filter(|cell| without(cell, &hunk.added)) {
            self.takes_removed.push(name(cell)?);
        }
        Ok(())
    }
}

/// The pictures of a draft, by their short ids.
fn pictures(take: &Take) -> String {
    take.attached.iter().map(|attached| attached.picture.short()).collect::<Vec<_>>().join(", ")
}

/// Names and values in a fixed order.
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// All named values of a version.
    fn of(queries: &Queries<'_>, state: &ThreadState, take: &Take) -> Result<Self, ReadError> {
        let settings = state.own_settings(queries)?;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let mut fields = Self(vec![
            ("title", state.title.clone()),
            ("tags", state.tags.iter().cloned().collect::<Vec<_>>().join(", ")),
            ("pinned", yes(state.pinned)),
            ("deleted", yes(state.deleted.is_some())),
            ("roles", state.roles.join(", ")),
            ("take", take.name.clone()),
            ("draft", take.draft.clone()),
            ("draft_pictures", pictures(take)),
            ("files", paths(take.file_list(FileList::Files))),
            ("context_files", paths(take.file_list(FileList::ContextFiles))),
            ("screenshots", paths(take.file_list(FileList::Screenshots))),
        ]);
        fields.0.extend([
            ("project_system_prompt", settings.project_system_prompt),
            ("global_system_prompt", settings.global_system_prompt),
            ("base_system_prompt", settings.base_system_prompt),
            ("use_default_base_prompt", yes(settings.use_default_base_prompt)),
            ("temperature", settings.temperature.map(|number| number.to_string()).unwrap_or_default()),
            ("top_p", settings.top_p.map(|number| number.to_string()).unwrap_or_default()),
            ("max_tokens", settings.max_tokens.map(|number| number.to_string()).unwrap_or_default()),
            ("auto_add_history", yes(settings.auto_add_history)),
            ("provider", settings.provider.unwrap_or_default()),
            ("model", settings.model.unwrap_or_default()),
            ("effort", settings.effort.map(|effort| effort.to_string()).unwrap_or_default()),
        ]);
        Ok(fields)
    }

    fn compare(self, after: Self) -> Vec<FieldDifference> {
        let both = self.0.into_iter().zip(after.0);
        both.filter(|((_, before), (_, after))| before != after)
            .map(|((name, before), (_, after))| FieldDifference { name: name.to_owned(), before, after })
            .collect()
    }
}

fn paths(items: &[FileItem]) -> String {
    items.iter().map(|item| item.path.as_str()).collect::<Vec<_>>().join("\n")
}
