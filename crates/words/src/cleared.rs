//! What a reset takes away, in words.

use retake_timeline::Cleared;

use crate::number::counted;

/// What a reset takes away.
pub fn cleared(cleared: &Cleared) -> String {
    let mut parts = Vec::new();
    if cleared.entries > 0 {
        let entries = counted(cleared.entries, "entry", "entries");
        parts.push(format!("{entries} of {}", counted(cleared.takes, "take", "takes")));
    }
    if cleared.drafts > 0 {
        parts.push(counted(cleared.drafts, "draft", "drafts"));
    }
    if cleared.files > 0 {
        parts.push(counted(cleared.files, "file", "files"));
    }
    if !cleared.settings.is_empty() {
        parts.push(format!("the settings {}", cleared.settings.join(", ")));
    }
    if parts.is_empty() { "what was last sent".to_owned() } else { parts.join(", ") }
}
