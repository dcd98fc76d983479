//! Redaction: finds all versions of an entry, and all entries that contain a text, and erases them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::{EntryId, ThreadId};
use retake_model::object::load;
use retake_store::{DeletedFilter, RedactError, RedactionReport, Secrets, ThreadFilter};

use crate::{ReadError, Timeline};

/// Shorter texts would match almost everywhere.
pub const SHORTEST_SECRET: usize = 4;

/// The content to erase: an entry, texts, or both.
#[derive(Clone, Debug, Default)]
pub struct RedactionRequest {
    /// An entry, with all its versions.
    pub entry: Option<EntryId>,
    /// Texts. Every entry that contains one is erased, in all threads and all history.
    pub texts: Vec<String>,
}

/// The content that a redaction would erase. Nothing changes until it is executed.
#[derive(Debug, Default)]
pub struct RedactionPlan {
    /// The entries.
    pub entries: Vec<RedactedEntry>,
    /// Threads that have or had them.
    pub threads: Vec<ThreadId>,
    /// Pictures that remain, because a captured file or another entry has the same content.
    pub retained_pictures: BTreeSet<ContentId>,
    contents: BTreeSet<(Kind, ContentId)>,
    secrets: Secrets,
}

/// An entry to erase.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RedactedEntry {
    /// The entry.
    pub entry: EntryId,
    /// Threads that have or had it.
    pub threads: BTreeSet<ThreadId>,
    /// Its remaining versions.
    pub versions: BTreeSet<ContentId>,
    /// Its role and the start of its text.
    #[serde(skip)]
    pub preview: String,
}

impl RedactionPlan {
    /// Versions of entries to erase.
    pub fn versions(&self) -> BTreeSet<ContentId> {
        let entries = self.contents.iter().filter(|(kind, _)| *kind == Kind::Entry);
        entries.map(|(_, id)| *id).collect()
    }
}

impl Timeline {
    /// Finds the content to erase; `None` if no thread ever had the entry.
    ///
    /// Also finds an entry that was already redacted, without versions: executing the plan then completes an
    /// interrupted redaction.
    pub fn plan_redaction(&self, request: &RedactionRequest) -> Result<Option<RedactionPlan>, ReadError> {
        let reader = self.read()?;
        let queries = reader.queries();
        let mut plan = RedactionPlan::default();
        for text in &request.texts {
            plan.secrets.add_passage(text);
        }
        // Includes versions that no log refers to.
        let holding = queries.entries_holding(&plan.secrets)?;
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let rows = reader.threads(&filter)?;
        let threads: HashMap<i64, ThreadId> = rows.iter().map(|row| (row.number, row.summary.id)).collect();
        let mut entries: BTreeMap<EntryId, RedactedEntry> = BTreeMap::new();
        queries.each_entry_version(&mut |thread, cell| {
            let is_wanted = request.entry == Some(cell.entry) || holding.contains(&cell.version);
            if let (true, Some(thread)) = (is_wanted, threads.get(&thread)) {
                let found = entries.entry(cell.entry).or_insert_with(|| RedactedEntry {
                    entry: cell.entry,
                    threads: BTreeSet::new(),
                    versions: BTreeSet::new(),
                    preview: String::new(),
                });
                found.threads.insert(*thread);
                found.versions.insert(cell.version);
            }
            Ok(())
        })?;
        if request.entry.is_some_and(|entry| !entries.contains_key(&entry)) {
            return Ok(None);
        }
        let unreferenced = holding.into_iter().map(|version| (Kind::Entry, version));
        plan.contents.extend(unreferenced);
        let mut pictures = BTreeSet::new();
        for found in entries.values_mut() {
            let mut left = BTreeSet::new();
            for version in &found.versions {
                if queries.is_redacted(*version)? {
                    continue;
                }
                let content: EntryVersion = load(&queries, *version)?;
                found.preview = format!("{}: {}", content.role, content.preview());
                plan.secrets.add_entry(&content);
                pictures.extend(content.blocks.iter().filter_map(|block| match block {
                    Block::Image { blob, .. } => Some(*blob),
                    _ => None,
                }));
                plan.contents.insert((Kind::Entry, *version));
                left.insert(*version);
            }
            found.versions = left;
        }
        let of_entries = |(kind, id): &(Kind, ContentId)| (*kind == Kind::Entry).then_some(*id);
        let versions: BTreeSet<ContentId> = plan.contents.iter().filter_map(of_entries).collect();
        plan.retained_pictures = queries.blobs_in_use(&pictures, &versions)?;
        let destroyed = pictures.difference(&plan.retained_pictures).map(|picture| (Kind::Blob, *picture));
        plan.contents.extend(destroyed);
        // If nothing is left of an entry, its threads were cleaned before.
        entries.retain(|entry, found| !found.versions.is_empty() || request.entry == Some(*entry));
        let touched = entries.values().filter(|found| !found.versions.is_empty());
        let threads: BTreeSet<ThreadId> = touched.flat_map(|found| &found.threads).copied().collect();
        plan.threads = threads.into_iter().collect();
        plan.entries = entries.into_values().collect();
        Ok(Some(plan))
    }

    /// Erases the planned content everywhere: in states and logs, shared settings, the search index and the runtime
    /// database. If this is interrupted, planning and executing it again completes it.
    pub fn redact(&self, plan: &RedactionPlan) -> Result<RedactionReport, RedactError> {
        let contents: Vec<(Kind, ContentId)> = plan.contents.iter().copied().collect();
        self.store().redact_with(&contents, &plan.secrets, &plan.threads, self.now())
    }
}
