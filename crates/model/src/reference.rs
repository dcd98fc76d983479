//! References between pieces of content, for garbage collection, verification and import.

use crate::content::{Content, ContentId, Kind, MalformedError, decode};
use crate::entry::{Block, EntryVersion};
use crate::environment::Environment;
use crate::list::{Cell, EntryCell, List, NodeContents, TakeCell, parse_node};
use crate::operation::OperationKind;
use crate::sealed::SealedFiles;
use crate::settings::Settings;
use crate::state::ThreadState;
use crate::take::Take;
use crate::tree::{Chunks, Excluded, Node, Parts, Snapshot, TreeNode};

/// A reference to a piece of content.
pub type Reference = (Kind, ContentId);

/// All direct references of these canonical bytes. Invalid bytes are refused, so importers also use this as
/// validation.
pub fn references(kind: Kind, bytes: &[u8]) -> Result<Vec<Reference>, MalformedError> {
    Ok(match kind {
        Kind::Blob | Kind::Sealed => Vec::new(),
        Kind::Entry => {
            let entry: EntryVersion = decode(bytes)?;
            entry
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Image { blob, .. } => Some((Kind::Blob, *blob)),
                    _ => None,
                })
                .collect()
        }
        Kind::Entries => node_references::<EntryCell>(bytes, |cell, found| {
            found.push((Kind::Entry, cell.version));
            found.extend(cell.files.map(|snapshot| (Kind::Snapshot, snapshot)));
        })?,
        Kind::Takes => {
            node_references::<TakeCell>(bytes, |cell, found| found.push((Kind::Take, cell.content)))?
        }
        Kind::Take => {
            let take: Take = decode(bytes)?;
            let mut found = root(&take.entries);
            found.extend(take.attached.iter().map(|attached| (Kind::Blob, attached.picture)));
            if let Some(sent) = take.sent {
                found.extend([(Kind::Blob, sent.markdown), (Kind::Blob, sent.system_prompt)]);
            }
            found
        }
        Kind::Settings => none::<Settings>(bytes)?,
        Kind::Environment => none::<Environment>(bytes)?,
        Kind::State => {
            let state: ThreadState = decode(bytes)?;
            let mut found = root(&state.takes);
            found.push((Kind::Settings, state.settings));
            found
        }
        Kind::Operation => {
            let operation: crate::operation::Operation = decode(bytes)?;
            let mut found = vec![(Kind::State, operation.after)];
            found.extend(operation.environment.map(|id| (Kind::Environment, id)));
            found.extend(
                operation
                    .files
                    .iter()
                    .flat_map(|files| [(Kind::Snapshot, files.before), (Kind::Snapshot, files.after)]),
            );
            found.extend(named_entries(&operation.kind).into_iter().flatten());
            found
        }
        Kind::Tree => {
            let node: TreeNode = decode(bytes)?;
            node.check()?;
            let children = node.children().map(|id| (Kind::Tree, id));
            children.chain(node.entries().iter().filter_map(|entry| node_content(&entry.node))).collect()
        }
        Kind::Parts => decode::<Parts>(bytes)?.0.into_iter().map(|part| (Kind::Blob, part)).collect(),
        Kind::Chunks => {
            let chunks: Chunks = decode(bytes)?;
            chunks.items().iter().map(|item| (chunks.kind_of_items(), item.id)).collect()
        }
        Kind::Snapshot => {
            let snapshot: Snapshot = decode(bytes)?;
            let mut found: Vec<Reference> =
                snapshot.roots.iter().map(|root| (Kind::Tree, root.tree)).collect();
            found.extend(
                snapshot.roots.iter().filter_map(|root| root.excluded).map(|id| (Kind::Excluded, id)),
            );
            let sealed = snapshot.roots.iter().filter_map(|root| root.sealed);
            found.extend(sealed.map(|id| (Kind::SealedFiles, id)));
            found
        }
        Kind::Excluded => none::<Excluded>(bytes)?,
        Kind::SealedFiles => {
            let sealed: SealedFiles = decode(bytes)?;
            sealed.parts().map(|part| (Kind::Sealed, part)).collect()
        }
    })
}

/// The entry versions that an operation names itself. Most are in its state too, but versions it removed are
/// only in an older one. Without this check, a forged log could name versions that never existed.
///
/// The snapshot of a restore is not included: it is the requested snapshot, and `files` has the result.
pub fn named_entries(kind: &OperationKind) -> [Option<Reference>; 2] {
    let entry = |id: ContentId| Some((Kind::Entry, id));
    match kind {
        OperationKind::EntryEdited { from, to, .. } => [entry(*from), entry(*to)],
        OperationKind::EntriesAdded { version, .. }
        | OperationKind::EntriesDeleted { version, .. }
        | OperationKind::Compressed { version, .. } => [entry(*version), None],
        OperationKind::TurnAdvanced { added, .. } | OperationKind::TakeMerged { added, .. } => {
            [added.and_then(|added| entry(added.version)), None]
        }
        OperationKind::ThreadCreated { .. }
        | OperationKind::RoleChanged { .. }
        | OperationKind::EntriesReplaced { .. }
        | OperationKind::Truncated { .. }
        | OperationKind::Cleared { .. }
        | OperationKind::TakeBranched { .. }
        | OperationKind::TakeForked { .. }
        | OperationKind::TakeSwitched { .. }
        | OperationKind::TakeRenamed { .. }
        | OperationKind::TakeDeleted { .. }
        | OperationKind::TakeKept { .. }
        | OperationKind::TakePromoted { .. }
        | OperationKind::ThreadPromoted { .. }
        | OperationKind::Renamed { .. }
        | OperationKind::Tagged { .. }
        | OperationKind::Pinned { .. }
        | OperationKind::SharingChanged { .. }
        | OperationKind::SharingSet { .. }
        | OperationKind::Deleted
        | OperationKind::Restored
        | OperationKind::RolesChanged { .. }
        | OperationKind::SettingsChanged { .. }
        | OperationKind::DraftChanged { .. }
        | OperationKind::FilesListed { .. }
        | OperationKind::SendRecorded { .. }
        | OperationKind::Reset
        | OperationKind::Saved { .. }
        | OperationKind::Undone { .. }
        | OperationKind::Redone { .. }
        | OperationKind::Jumped { .. }
        | OperationKind::ExternalEdits { .. }
        | OperationKind::FilesChanged { .. }
        | OperationKind::FilesRestored { .. }
        | OperationKind::FilesMoved { .. }
        | OperationKind::DraftAttached { .. }
        | OperationKind::DraftCleared { .. } => [None, None],
    }
}

fn none<C: Content>(bytes: &[u8]) -> Result<Vec<Reference>, MalformedError> {
    decode::<C>(bytes).map(|_| Vec::new())
}

/// The content that a folder entry refers to.
fn node_content(node: &Node) -> Option<Reference> {
    match node {
        Node::Folder { tree, .. } => Some((Kind::Tree, *tree)),
        Node::File { .. } | Node::Link { .. } => node.stored_as(),
    }
}

fn root<C: Cell>(list: &List<C>) -> Vec<Reference> {
    list.root().map(|id| (C::KIND, id)).into_iter().collect()
}

fn node_references<C: Cell>(
    bytes: &[u8],
    of_cell: impl Fn(&C, &mut Vec<Reference>),
) -> Result<Vec<Reference>, MalformedError> {
    Ok(match parse_node::<C>(bytes)? {
        NodeContents::Cells(cells) => {
            let mut found = Vec::new();
            for cell in &cells {
                of_cell(cell, &mut found);
            }
            found
        }
        NodeContents::Nodes(children) => children.into_iter().map(|id| (C::KIND, id)).collect(),
    })
}
