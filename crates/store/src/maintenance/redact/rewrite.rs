//! Redacts text in states and in the log itself: titles, drafts, names, messages, settings, actors.
//!
//! ```text
//!   operation 1 ◄── operation 2 ◄── operation 3         each refers to its predecessor by hash
//!      S1              S2 (secret)     S3
//!
//!   operation 1 ◄── operation 2' ◄─ operation 3'        rewritten from the first one with a secret
//!      S1              S2'             S3
//! ```
//!
//! A state cannot be destroyed like an entry, because the whole thread depends on it. So states are rewritten without
//! the text, and so is the log from the first of them on: versions, times, turns and positions stay, ids of
//! operations change. The old states are removed from the store.

use std::collections::{HashMap, HashSet};

use retake_model::agent::AgentState;
use retake_model::content::{Content, ContentId, Kind, encode};
use retake_model::environment::Environment;
use retake_model::id::ThreadId;
use retake_model::json::Json;
use retake_model::list::{List, NodeContents, TakeCell, parse_node};
use retake_model::object::{Additions, ObjectError, Objects, load};
use retake_model::operation::{Actor, OperationKind, TurnStep};
use retake_model::settings::Settings;
use retake_model::state::ThreadState;
use retake_model::take::{FileItem, SentContext, Take};
use retake_model::time::Timestamp;
use rusqlite::params;

use super::Secrets;
use crate::log::queries::Queries;
use crate::objects::read_write::unpack;
use crate::{ProjectRow, StoreError, WriteTransaction};

/// Replaces redacted text.
pub(crate) const REDACTED: &str = "[redacted]";

/// The result of a rewrite.
#[derive(Default)]
pub(super) struct RewriteReport {
    pub(super) operations: u64,
    /// Objects that are no longer needed: those that contained a secret, and those that referred to them.
    pub(super) replaced: HashSet<(Kind, ContentId)>,
    /// Sent requests that contain a secret.
    pub(super) sent: HashSet<ContentId>,
}

impl WriteTransaction<'_> {
    /// Rewrites the logs of all threads that contain a secret.
    ///
    /// In `threads`, a title or draft that is part of a secret counts too, because it is derived from it. In other
    /// threads that is coincidence.
    pub(super) fn rewrite_logs(
        &self,
        secrets: &Secrets,
        threads: &[ThreadId],
        now: Timestamp,
    ) -> Result<RewriteReport, StoreError> {
        let mut rewritten = RewriteReport::default();
        let numbers: Vec<i64> = {
            let mut statement =
                self.connection.prepare("SELECT DISTINCT thread FROM operation WHERE version > 0")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        for number in numbers {
            let own = self.head(number)?.is_some_and(|head| threads.contains(&head.operation.thread));
            let matches = if own { Secrets::match_excerpt } else { Secrets::occur_in };
            self.rewrite_log(number, (secrets, matches), now, &mut rewritten)?;
        }
        Ok(rewritten)
    }

    fn rewrite_log(
        &self,
        number: i64,
        (secrets, matches): (&Secrets, MatchFn),
        now: Timestamp,
        rewritten: &mut RewriteReport,
    ) -> Result<(), StoreError> {
        let last = self.head(number)?.map_or(0, |head| head.operation.version);
        let mut rewriter = Rewriter {
            additions: Additions::new(&**self),
            secrets,
            matches,
            known: HashMap::new(),
            takes: HashMap::new(),
            rewritten,
        };
        let mut previous = None;
        let mut changed = Vec::new();
        for version in 1..=last {
            let Some(stored) = self.operation(number, version)? else { continue };
            let mut operation = stored.operation.clone();
            operation.after = rewriter.state(operation.after)?;
            clean(&mut operation.kind, secrets, matches);
            if let Actor::Client { name } | Actor::ToolCall { call: name } = &mut operation.actor {
                redact(name, secrets, Secrets::occur_in);
            }
            operation.environment =
                operation.environment.map(|around| rewriter.environment(around)).transpose()?;
            operation.previous = previous.or(operation.previous);
            let body = encode(&operation);
            let id = ContentId::of(Kind::Operation, &body);
            if id != stored.id {
                // From here on, every operation refers to a rewritten predecessor.
                previous = Some(id);
                changed.push((stored.sequence, id, body));
            }
        }
        let new = rewriter.additions.into_new();
        self.put_objects(&new, now)?;
        self.sort_recent()?;
        for (sequence, id, body) in changed {
            self.connection
                .prepare_cached("UPDATE operation SET id = ?2, body = ?3 WHERE sequence = ?1")?
                .execute(params![sequence, id.bytes(), body])?;
            rewritten.operations += 1;
        }
        // Rows that are derived next must not come from the old operations, whose environments are gone.
        self.forget_operations();
        Ok(())
    }

    /// Removes the remotes of projects that contain a secret. A remote only helps to recognise a project.
    pub(super) fn redact_remotes(&self, secrets: &Secrets) -> Result<(), StoreError> {
        for project in self.projects()? {
            if project.remote.as_ref().is_some_and(|remote| secrets.occur_in(remote)) {
                self.put_project(&ProjectRow { remote: None, ..project })?;
            }
        }
        Ok(())
    }

    /// Removes quarantined rows that contain a secret, and all damaged bundles: any of them may.
    pub(super) fn purge_quarantined(&self, secrets: &Secrets) -> Result<(), StoreError> {
        let mut doomed = Vec::new();
        {
            let mut statement = self
                .connection
                .prepare("SELECT number, packing, body, source FROM quarantine WHERE body IS NOT NULL")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (packing, body): (Option<i64>, Vec<u8>) = (row.get(1)?, row.get(2)?);
                let unpacked = packing.and_then(|packing| unpack(packing, &body));
                let holds = |bytes: &[u8]| secrets.occur_in_bytes(bytes);
                let is_bundle = row.get_ref(3)?.as_str().is_ok_and(|source| source == "bundle");
                if is_bundle || holds(&body) || unpacked.is_some_and(|bytes| holds(&bytes)) {
                    doomed.push(row.get::<_, i64>(0)?);
                }
            }
        }
        for number in doomed {
            self.connection.prepare_cached("DELETE FROM quarantine WHERE number = ?1")?.execute([number])?;
        }
        Ok(())
    }
}

struct Rewriter<'rewrite, 'store, 'transaction> {
    additions: Additions<'store, Queries<'transaction>>,
    secrets: &'rewrite Secrets,
    /// Decides whether a title or draft contains a secret.
    matches: MatchFn,
    /// Visited states, takes and settings, with their replacements.
    known: HashMap<ContentId, ContentId>,
    /// Visited lists of takes.
    takes: HashMap<ContentId, List<TakeCell>>,
    rewritten: &'rewrite mut RewriteReport,
}

impl Rewriter<'_, '_, '_> {
    /// The replacement of an object, computed once. Lost content stays lost.
    fn replace<C: Content + PartialEq>(
        &mut self,
        id: ContentId,
        clean: impl FnOnce(&mut Self, &mut C) -> Result<(), StoreError>,
    ) -> Result<ContentId, StoreError> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let mut content: C = match load(&self.additions, id) {
            Ok(content) => content,
            Err(error @ ObjectError::Unreadable(_)) => return Err(error.into()),
            Err(_) => return Ok(id),
        };
        let before = encode(&content);
        clean(self, &mut content)?;
        let new = if encode(&content) == before {
            id
        } else {
            self.rewritten.replaced.insert((C::KIND, id));
            self.additions.add(&content)
        };
        self.known.insert(id, new);
        Ok(new)
    }

    fn state(&mut self, id: ContentId) -> Result<ContentId, StoreError> {
        self.replace(id, |this, state: &mut ThreadState| {
            redact(&mut state.title, this.secrets, this.matches);
            state.tags.retain(|tag| !this.secrets.occur_in(tag));
            state.roles.retain(|role| !this.secrets.occur_in(role));
            state.settings = this.settings(state.settings)?;
            state.takes = this.list(state.takes)?;
            Ok(())
        })
    }

    fn settings(&mut self, id: ContentId) -> Result<ContentId, StoreError> {
        self.replace(id, |this, settings: &mut Settings| {
            for prompt in [
                &mut settings.project_system_prompt,
                &mut settings.global_system_prompt,
                &mut settings.base_system_prompt,
            ] {
                if this.secrets.occur_in(prompt) {
                    REDACTED.clone_into(prompt);
                }
            }
            // An unknown name would fail every turn; without one the default applies.
            for name in [&mut settings.provider, &mut settings.model] {
                name.take_if(|name| this.secrets.occur_in(name));
            }
            Ok(())
        })
    }

    fn environment(&mut self, id: ContentId) -> Result<ContentId, StoreError> {
        self.replace(id, |this, around: &mut Environment| {
            let Environment { workspace_root, working_directory, git_branch, git_remote, .. } = around;
            for text in [workspace_root, working_directory, git_branch, git_remote].into_iter().flatten() {
                redact(text, this.secrets, Secrets::occur_in);
            }
            for text in around.environment.iter_mut().flat_map(|variables| variables.values_mut()) {
                redact(text, this.secrets, Secrets::occur_in);
            }
            Ok(())
        })
    }

    fn list(&mut self, list: List<TakeCell>) -> Result<List<TakeCell>, StoreError> {
        let Some(root) = list.root() else { return Ok(list) };
        if let Some(known) = self.takes.get(&root) {
            return Ok(*known);
        }
        let mut cells: Vec<TakeCell> = list.iter(&self.additions, 0).collect::<Result<_, _>>()?;
        let mut changed = false;
        for cell in &mut cells {
            let content = self.take(cell.content)?;
            changed |= content != cell.content;
            cell.content = content;
        }
        let new = if changed {
            self.mark_replaced_nodes(root)?;
            List::from_cells(&mut self.additions, cells)
        } else {
            list
        };
        self.takes.insert(root, new);
        Ok(new)
    }

    /// Marks list nodes that lead to a replaced take: no remaining list contains them.
    fn mark_replaced_nodes(&mut self, node: ContentId) -> Result<bool, StoreError> {
        let bytes = self.additions.bytes(Kind::Takes, node)?;
        let damaged = |_| ObjectError::Damaged { kind: Kind::Takes, id: node };
        let doomed = match parse_node::<TakeCell>(&bytes).map_err(damaged)? {
            NodeContents::Cells(cells) => cells.iter().any(|cell| {
                self.known.get(&cell.content).is_some_and(|replacement| *replacement != cell.content)
            }),
            NodeContents::Nodes(nodes) => {
                let mut any = false;
                for child in nodes {
                    any |= self.mark_replaced_nodes(child)?;
                }
                any
            }
        };
        if doomed {
            self.rewritten.replaced.insert((Kind::Takes, node));
        }
        Ok(doomed)
    }

    fn take(&mut self, id: ContentId) -> Result<ContentId, StoreError> {
        self.replace(id, |this, take: &mut Take| {
            if (this.matches)(this.secrets, &take.draft) {
                take.draft.clear();
            }
            if this.secrets.occur_in(&take.name) {
                // Take names are unique in a thread.
                take.name = format!("redacted-{}", take.id.short());
            }
            for list in [&mut take.files, &mut take.context_files, &mut take.screenshots] {
                list.retain(|item| !item_holds(item, this.secrets));
            }
            if let Some(agent) = &mut take.agent
                && let AgentState::Failed { message, .. } = &mut agent.state
            {
                redact(message, this.secrets, Secrets::occur_in);
            }
            if let Some(SentContext { markdown, system_prompt }) = take.sent {
                for blob in [markdown, system_prompt] {
                    let holds = |bytes: &[u8]| this.secrets.occur_in_bytes(bytes);
                    if this.additions.bytes(Kind::Blob, blob).is_ok_and(|bytes| holds(&bytes)) {
                        this.rewritten.sent.insert(blob);
                    }
                }
            }
            Ok(())
        })
    }
}

/// Redacts the description of an operation.
fn clean(kind: &mut OperationKind, secrets: &Secrets, matches: MatchFn) {
    match kind {
        OperationKind::Renamed { from, to } => {
            redact(from, secrets, matches);
            redact(to, secrets, matches);
        }
        OperationKind::TakeRenamed { from, to, .. } | OperationKind::RoleChanged { from, to, .. } => {
            redact(from, secrets, Secrets::occur_in);
            redact(to, secrets, Secrets::occur_in);
        }
        OperationKind::TakeKept { name, deleted, .. } => {
            redact(name, secrets, Secrets::occur_in);
            for name in deleted {
                redact(name, secrets, Secrets::occur_in);
            }
        }
        OperationKind::TakeBranched { name, .. }
        | OperationKind::TakeForked { name, .. }
        | OperationKind::TakeDeleted { name, .. }
        | OperationKind::TakeMerged { name, .. }
        | OperationKind::TakePromoted { name, .. }
        | OperationKind::Saved { name } => {
            redact(name, secrets, Secrets::occur_in);
        }
        OperationKind::Tagged { added, removed } | OperationKind::RolesChanged { added, removed } => {
            added.retain(|tag| !secrets.occur_in(tag));
            removed.retain(|tag| !secrets.occur_in(tag));
        }
        OperationKind::TurnAdvanced { step: TurnStep::Failed { message }, .. } => {
            redact(message, secrets, Secrets::occur_in);
        }
        // These contain no text. All are listed, so that a new kind is not forgotten.
        OperationKind::ThreadCreated { .. }
        | OperationKind::EntriesAdded { .. }
        | OperationKind::EntryEdited { .. }
        | OperationKind::EntriesDeleted { .. }
        | OperationKind::EntriesReplaced { .. }
        | OperationKind::Truncated { .. }
        | OperationKind::Cleared { .. }
        | OperationKind::TakeSwitched { .. }
        | OperationKind::ThreadPromoted { .. }
        | OperationKind::Pinned { .. }
        | OperationKind::SharingChanged { .. }
        | OperationKind::Deleted
        | OperationKind::Restored
        | OperationKind::SettingsChanged { .. }
        | OperationKind::DraftChanged { .. }
        | OperationKind::FilesListed { .. }
        | OperationKind::SendRecorded { .. }
        | OperationKind::Reset
        | OperationKind::Undone { .. }
        | OperationKind::Redone { .. }
        | OperationKind::Jumped { .. }
        | OperationKind::ExternalEdits { .. }
        | OperationKind::FilesChanged { .. }
        | OperationKind::FilesRestored { .. }
        | OperationKind::FilesMoved { .. }
        | OperationKind::Compressed { .. }
        | OperationKind::DraftAttached { .. }
        | OperationKind::DraftCleared { .. }
        | OperationKind::SharingSet { .. }
        | OperationKind::TurnAdvanced { .. } => {}
    }
}

/// Whether a file item contains a secret.
pub(crate) fn item_holds(item: &FileItem, secrets: &Secrets) -> bool {
    let holds =
        |(name, value): (&String, &Json)| secrets.occur_in(name) || secrets.occur_in_json(value.as_str());
    secrets.occur_in(&item.path) || item.extra.iter().any(holds)
}

type MatchFn = fn(&Secrets, &str) -> bool;

/// Replaces a text that contains a secret.
fn redact(text: &mut String, secrets: &Secrets, matches: MatchFn) {
    if matches(secrets, text) {
        REDACTED.clone_into(text);
    }
}

/// Whether logs may be rewritten: a pending file move contains an unpublished operation.
pub(super) fn has_no_pending_moves(queries: &Queries<'_>) -> Result<bool, StoreError> {
    Ok(queries.intents()?.is_empty())
}
