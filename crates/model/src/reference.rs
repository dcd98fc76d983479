//! What content refers to what: the one place that garbage collection, verification and import ask.

use crate::content::{Content, ContentId, Kind, Malformed, decode};
use crate::entry::{Block, EntryVersion};
use crate::list::{Cell, EntryCell, List, NodeContents, TakeCell, parse_node};
use crate::settings::Settings;
use crate::state::ThreadState;
use crate::surroundings::Surroundings;
use crate::take::Take;

/// A piece of content that another one needs.
pub type Reference = (Kind, ContentId);

/// Everything that these canonical bytes refer to directly. Bytes that are not what they should be are
/// refused, so this is also the check that importers rely on.
pub fn references(kind: Kind, bytes: &[u8]) -> Result<Vec<Reference>, Malformed> {
    Ok(match kind {
        Kind::Blob => Vec::new(),
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
        Kind::Entries => node_references::<EntryCell>(bytes, |cell| (Kind::Entry, cell.version))?,
        Kind::Takes => node_references::<TakeCell>(bytes, |cell| (Kind::Take, cell.content))?,
        Kind::Take => {
            let take: Take = decode(bytes)?;
            let mut found = root(&take.entries);
            if let Some(sent) = take.sent {
                found.extend([(Kind::Blob, sent.markdown), (Kind::Blob, sent.system_prompt)]);
            }
            found
        }
        Kind::Settings => none::<Settings>(bytes)?,
        Kind::Surroundings => none::<Surroundings>(bytes)?,
        Kind::State => {
            let state: ThreadState = decode(bytes)?;
            let mut found = root(&state.takes);
            found.push((Kind::Settings, state.settings));
            found
        }
        Kind::Operation => {
            let operation: crate::operation::Operation = decode(bytes)?;
            let mut found = vec![(Kind::State, operation.after)];
            found.extend(operation.surroundings.map(|id| (Kind::Surroundings, id)));
            found
        }
    })
}

fn none<C: Content>(bytes: &[u8]) -> Result<Vec<Reference>, Malformed> {
    decode::<C>(bytes).map(|_| Vec::new())
}

fn root<C: Cell>(list: &List<C>) -> Vec<Reference> {
    list.root().map(|id| (C::KIND, id)).into_iter().collect()
}

fn node_references<C: Cell>(
    bytes: &[u8],
    of_cell: impl Fn(&C) -> Reference,
) -> Result<Vec<Reference>, Malformed> {
    Ok(match parse_node::<C>(bytes)? {
        NodeContents::Cells(cells) => cells.iter().map(of_cell).collect(),
        NodeContents::Nodes(children) => children.into_iter().map(|id| (C::KIND, id)).collect(),
    })
}
