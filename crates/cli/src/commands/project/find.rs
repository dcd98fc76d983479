//! Finding a project by the beginning of its id.

use retake_store::ProjectRow;
use retake_timeline::Looking;

use crate::failure::{Code, Failure};

/// How many characters of an id must be given.
const SHORTEST_PREFIX: usize = 4;

/// The project whose id begins with that text.
pub(super) fn find(looking: &Looking<'_>, text: &str) -> Result<ProjectRow, Failure> {
    let found = if text.len() < SHORTEST_PREFIX {
        Vec::new()
    } else {
        looking.queries().projects_with_prefix(&text.to_lowercase())?
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let message =
                format!("no project's id begins with {text:?}; `retake project list` shows them all");
            Err(Failure::new(Code::NotFound, message))
        }
        several => {
            let candidates: Vec<String> = several.iter().map(|row| row.id.to_string()).collect();
            let message = format!("{text:?} could be any of: {}", candidates.join(", "));
            Err(Failure::new(Code::Refused, message).with("candidates", candidates))
        }
    }
}
