//! Describes the effect of a reset.

use retake_timeline::ResetSummary;

use crate::number::counted;

/// Lists what a reset clears.
pub fn describe_reset(cleared: &ResetSummary) -> String {
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
    if parts.is_empty() { "the last request".to_owned() } else { parts.join(", ") }
}
