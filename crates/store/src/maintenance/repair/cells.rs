//! Reads a damaged list: the cells of all readable nodes, in order.

use std::collections::HashSet;

use retake_model::content::ContentId;
use retake_model::list::{Cell, List, NodeContents, parse_node};

use crate::StoreError;
use crate::log::queries::Queries;

pub(super) fn readable_cells<C: Cell>(queries: &Queries<'_>, list: &List<C>) -> Result<Vec<C>, StoreError> {
    let mut cells = Vec::new();
    let mut open: Vec<ContentId> = list.root().into_iter().collect();
    // A node refers to its children by hash, so there are no cycles, but a node may occur twice.
    let mut lost = HashSet::new();
    while let Some(id) = open.pop() {
        if lost.contains(&id) {
            continue;
        }
        let bytes = queries.stored_object(C::KIND, id)?;
        match bytes.and_then(|bytes| parse_node::<C>(&bytes).ok()) {
            Some(NodeContents::Cells(found)) => cells.extend(found),
            Some(NodeContents::Nodes(below)) => open.extend(below.into_iter().rev()),
            None => {
                lost.insert(id);
            }
        }
    }
    Ok(cells)
}
