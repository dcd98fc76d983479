//! Converts the real state to plain values.
//!
//! Content with the same id is the same: the store verifies it on every read. After a step, an observer therefore only
//! reads content with a new id. A new observer reads everything, which the passes over the whole history use.

use std::collections::HashMap;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::{EntryId, TurnId};
use retake_model::list::{EntryCell, NodeContents, parse_node};
use retake_model::object::{ObjectError, Objects, load};
use retake_model::settings::{NAMES, Settings};
use retake_model::state::{ThreadState, Visibility};
use retake_model::take::{Attachment, FileItem, Take};
use retake_model::time::Timestamp;

use super::plain::{Digest, EntryContent, ImageRef, Part, PlainEntry, PlainTake, PlainThread, append};

/// Longer lists are read leaf by leaf, and only new leaves.
const LONG_LIST: u64 = 200;

/// Converts states to digests, caching those of known content.
#[derive(Debug, Default)]
pub struct Observer {
    takes: HashMap<ContentId, Digest>,
    entries: HashMap<ContentId, Digest>,
    leaves: HashMap<ContentId, Vec<u8>>,
}

impl Observer {
    /// The digest of a state.
    pub fn digest<O: Objects>(&mut self, objects: &O, state: &ThreadState) -> Result<Digest, ObjectError> {
        let mut takes = Vec::new();
        for cell in state.takes.iter(objects, 0) {
            let cell = cell?;
            let digest = match self.takes.get(&cell.content) {
                Some(digest) => *digest,
                None => self.look_at_take(objects, cell.content)?,
            };
            takes.push(digest);
        }
        Ok(bare_picture(objects, state)?.digest_with(&takes))
    }

    fn look_at_take<O: Objects>(&mut self, objects: &O, content: ContentId) -> Result<Digest, ObjectError> {
        let take: Take = load(objects, content)?;
        let mut entries = Vec::new();
        match take.entries.root() {
            Some(root) if take.entries.len() > LONG_LIST => self.look_at_node(objects, root, &mut entries)?,
            _ => {
                for cell in take.entries.iter(objects, 0) {
                    self.look_at_entry(objects, &cell?, &mut entries)?;
                }
            }
        }
        let digest = take_picture(objects, &take, Vec::new())?.digest_with(&entries);
        self.takes.insert(content, digest);
        Ok(digest)
    }

    /// The entries below a node of a long list; known leaves are not read again.
    fn look_at_node<O: Objects>(
        &mut self,
        objects: &O,
        node: ContentId,
        entries: &mut Vec<u8>,
    ) -> Result<(), ObjectError> {
        if let Some(seen) = self.leaves.get(&node) {
            entries.extend_from_slice(seen);
            return Ok(());
        }
        let bytes = objects.bytes(Kind::Entries, node)?;
        let damaged = |_| ObjectError::Damaged { kind: Kind::Entries, id: node };
        match parse_node::<EntryCell>(&bytes).map_err(damaged)? {
            NodeContents::Nodes(nodes) => {
                for node in nodes {
                    self.look_at_node(objects, node, entries)?;
                }
            }
            NodeContents::Cells(cells) => {
                let start = entries.len();
                for cell in &cells {
                    self.look_at_entry(objects, cell, entries)?;
                }
                self.leaves.insert(node, entries[start..].to_vec());
            }
        }
        Ok(())
    }

    fn look_at_entry<O: Objects>(
        &mut self,
        objects: &O,
        cell: &EntryCell,
        entries: &mut Vec<u8>,
    ) -> Result<(), ObjectError> {
        let digest = if let Some(digest) = self.entries.get(&cell.version) {
            *digest
        } else {
            let digest = entry_content(&load(objects, cell.version)?).digest();
            self.entries.insert(cell.version, digest);
            digest
        };
        append(entries, cell.entry, digest);
        Ok(())
    }
}

/// The complete plain value of a state.
pub fn picture<O: Objects>(objects: &O, state: &ThreadState) -> Result<PlainThread, ObjectError> {
    let mut picture = bare_picture(objects, state)?;
    for take in state.all_takes(objects)? {
        let mut entries = Vec::new();
        for cell in take.entries.iter(objects, 0) {
            let cell = cell?;
            entries.push(PlainEntry::new(cell.entry, entry_content(&load(objects, cell.version)?)));
        }
        picture.takes.push(take_picture(objects, &take, entries)?);
    }
    Ok(picture)
}

/// The plain content of an entry version.
pub fn entry_content(version: &EntryVersion) -> EntryContent {
    let part = |block: &Block| match block {
        Block::Text { text, .. } => Part::Text(text.clone()),
        Block::ToolResult { call, text, failed, extra } => {
            Part::Answer(text.clone(), format!("{call:?} {failed} {extra:?}"))
        }
        Block::Image { media, blob, extra } if extra.is_empty() => {
            Part::Picture(ImageRef { media: media.clone(), picture: *blob })
        }
        other => Part::Kept(format!("{other:?}")),
    };
    let beside = if version.extra.is_empty() && version.usage.is_none() && version.model.is_none() {
        String::new()
    } else {
        format!("{:?} {:?} {:?}", version.extra, version.usage, version.model)
    };
    EntryContent {
        role: version.role.clone(),
        parts: version.blocks.iter().map(part).collect(),
        created: version.created.millis(),
        edited: version.edited.map(Timestamp::millis),
        beside,
    }
}

/// The plain value of an image of a draft.
pub fn shown(attached: &Attachment) -> ImageRef {
    ImageRef { media: attached.media.clone(), picture: attached.picture }
}

/// The number of a turn.
pub fn turn_number(turn: TurnId) -> u64 {
    let (_, number) = turn.bytes().split_at(8);
    number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The name of a visibility.
pub fn visibility(visibility: Visibility) -> String {
    format!("{visibility:?}")
}

/// The paths of a file list, with unknown fields.
pub fn paths(items: &[FileItem]) -> Vec<String> {
    items.iter().map(|item| format!("{} {:?}", item.path, item.extra)).collect()
}

/// The ids of a take's entries.
pub fn entry_ids<O: Objects>(objects: &O, take: &Take) -> Result<Vec<EntryId>, ObjectError> {
    take.entries.iter(objects, 0).map(|cell| Ok(cell?.entry)).collect()
}

fn bare_picture<O: Objects>(objects: &O, state: &ThreadState) -> Result<PlainThread, ObjectError> {
    let settings: Settings = load(objects, state.settings)?;
    Ok(PlainThread {
        title: state.title.clone(),
        tags: state.tags.iter().cloned().collect(),
        pinned: state.pinned,
        visibility: visibility(state.visibility),
        private: state.private,
        shared_with_support: state.shared_with_support,
        roles: state.roles.clone(),
        settings: NAMES
            .iter()
            .map(|name| ((*name).to_owned(), settings.get(name).unwrap_or_default()))
            .collect(),
        takes: Vec::new(),
        active: state.active,
        deleted: state.deleted.map(Timestamp::millis),
        parent: state.parent.map(|parent| (parent.thread, parent.take, parent.fork_point)),
    })
}

fn take_picture<O: Objects>(
    objects: &O,
    take: &Take,
    entries: Vec<PlainEntry>,
) -> Result<PlainTake, ObjectError> {
    let blob = |id: ContentId| -> Result<String, ObjectError> {
        Ok(String::from_utf8_lossy(&objects.bytes(Kind::Blob, id)?).into_owned())
    };
    let sent = match &take.sent {
        Some(sent) => Some((blob(sent.markdown)?, blob(sent.system_prompt)?)),
        None => None,
    };
    Ok(PlainTake {
        id: take.id,
        name: take.name.clone(),
        created: take.created.millis(),
        entries,
        draft: take.draft.clone(),
        attached: take.attached.iter().map(shown).collect(),
        files: [paths(&take.files), paths(&take.context_files), paths(&take.screenshots)],
        parent: take.parent,
        fork_point: take.fork_point,
        sent,
        running: take
            .agent
            .as_ref()
            .filter(|agent| agent.state.is_running())
            .map(|agent| turn_number(agent.turn)),
    })
}
