//! Large files, which are stored in chunks: texts across the boundary of two chunks, and the destruction of one file.

use std::collections::{BTreeSet, HashMap, HashSet};

use retake_model::content::{ContentId, Kind, decode};
use retake_model::object::Objects;
use retake_model::reference::{Reference, references};
use retake_model::tree::{Node, TreeNode, chunk_ranges};

use super::Secrets;
use crate::StoreError;
use crate::log::queries::Queries;

/// A captured file that is stored in chunks.
pub(super) struct ChunkedFile {
    /// The id of its bytes, of which no object exists.
    pub(super) content: ContentId,
    node: Node,
}

impl Queries<'_> {
    /// The captured files in chunks, one for each content.
    pub(super) fn chunked_files(&self) -> Result<Vec<ChunkedFile>, StoreError> {
        let mut found = HashMap::new();
        self.each_stored(Some(Kind::Tree), &mut |_, bytes| {
            let Ok(tree) = decode::<TreeNode>(bytes) else { return };
            for entry in tree.entries() {
                if let node @ Node::File { content, chunks: Some(chunks), .. } = &entry.node {
                    found.entry((*content, *chunks)).or_insert_with(|| node.clone());
                }
            }
        })?;
        Ok(found.into_iter().map(|((content, _), node)| ChunkedFile { content, node }).collect())
    }

    /// The captured files in which a secret begins in one chunk and ends in the next.
    pub(super) fn chunked_files_holding(&self, secrets: &Secrets) -> Result<BTreeSet<ContentId>, StoreError> {
        let mut found = BTreeSet::new();
        // Most chunks of a version are those of the version before.
        let mut known: HashMap<(ContentId, ContentId), bool> = HashMap::new();
        for file in self.chunked_files()? {
            // A damaged file is searched chunk by chunk, like every object.
            let chunks = chunk_ranges(self, &file.node).unwrap_or_default();
            for pair in chunks.windows(2) {
                let pair = (pair[0].0, pair[1].0);
                let holds = *known.entry(pair).or_insert_with(|| self.holds_across(pair, secrets));
                if holds {
                    found.insert(file.content);
                    break;
                }
            }
        }
        Ok(found)
    }

    fn holds_across(&self, (left, right): (ContentId, ContentId), secrets: &Secrets) -> bool {
        let (Ok(left), Ok(right)) = (self.bytes(Kind::Blob, left), self.bytes(Kind::Blob, right)) else {
            return false;
        };
        let end = &left[left.len().saturating_sub(secrets.longest())..];
        let start = &right[..right.len().min(secrets.longest())];
        secrets.occur_verbatim_in(&[end, start].concat())
    }

    /// The captured files among these contents that are stored in chunks, and those of their nodes and chunks that no
    /// other file has. The top node of a file is always one of them, so that nothing can read the file.
    pub(super) fn chunked_among(
        &self,
        contents: &[Reference],
    ) -> Result<(Vec<ContentId>, Vec<Reference>), StoreError> {
        let wanted: HashSet<ContentId> =
            contents.iter().filter(|(kind, _)| *kind == Kind::Blob).map(|(_, id)| *id).collect();
        if wanted.is_empty() {
            return Ok(Default::default());
        }
        let (destroyed, others): (Vec<_>, Vec<_>) =
            self.chunked_files()?.into_iter().partition(|file| wanted.contains(&file.content));
        let mut used = HashSet::new();
        if !destroyed.is_empty() {
            self.chunks_below(&others, &mut used);
        }
        let mut found = HashSet::new();
        self.chunks_below(&destroyed, &mut found);
        let files = destroyed.iter().map(|file| file.content).collect();
        Ok((files, found.difference(&used).copied().collect()))
    }

    fn chunks_below(&self, files: &[ChunkedFile], found: &mut HashSet<Reference>) {
        let mut open: Vec<Reference> = files.iter().filter_map(|file| file.node.stored_as()).collect();
        while let Some((kind, id)) = open.pop() {
            if found.insert((kind, id)) && kind == Kind::Chunks {
                let below = self.bytes(kind, id).ok().and_then(|bytes| references(kind, &bytes).ok());
                open.extend(below.unwrap_or_default());
            }
        }
    }
}
