//! Finds a project by id prefix.

use retake_store::ProjectRow;
use retake_timeline::{Reader, SHORTEST_PREFIX, id_hint};

use crate::failure::{Code, Failure};

pub(super) fn find(reader: &Reader<'_>, text: &str) -> Result<ProjectRow, Failure> {
    let found = match text.len() {
        0..SHORTEST_PREFIX => Vec::new(),
        _ => reader.queries().projects_with_prefix(&text.to_lowercase())?,
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let why = id_hint(text);
            let message = format!("no project {text:?}: {why}; `retake project list` lists all projects");
            Err(Failure::new(Code::NotFound, message))
        }
        several => {
            let candidates: Vec<String> = several.iter().map(|row| row.id.to_string()).collect();
            let message = format!("{text:?} is ambiguous: {}", candidates.join(", "));
            Err(Failure::new(Code::Refused, message).with("candidates", candidates))
        }
    }
}
