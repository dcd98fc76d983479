//! stub
use retake_model::content::ContentId;
use retake_model::object::Objects;
use serde::Serialize;
use std::path::Path;
/// c
#[derive(Clone, Debug, Serialize, Default)]
pub struct Copied {
    /// f
    pub files: u64,
    /// b
    pub bytes: u64,
}
/// e
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct CopyError;
/// m
pub fn materialise(_objects: &dyn Objects, _tree: ContentId, _path: &Path) -> Result<Copied, CopyError> {
    Err(CopyError)
}
