//! The text of a commit.

use retake_model::time::Timestamp;

use super::super::config::Variable;
use super::super::identity::GitIdentity;
use super::super::objects::{ObjectId, digits_of};

/// Encodes a commit. Its time is in UTC.
pub(super) fn commit(
    tree: &ObjectId,
    parent: Option<&ObjectId>,
    author: &GitIdentity,
    time: Timestamp,
    message: &str,
) -> Vec<u8> {
    let parent = parent.map(|parent| format!("parent {}\n", digits_of(parent))).unwrap_or_default();
    let seconds = time.millis().div_euclid(1000).max(0);
    let person = format!("{} <{}> {seconds} +0000", author.name, author.email);
    let mut message: String =
        message.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect();
    message.truncate(message.trim_end().len());
    format!("tree {}\n{parent}author {person}\ncommitter {person}\n\n{message}\n", digits_of(tree))
        .into_bytes()
}

/// Whether the configuration converts files: line endings, or filters.
pub(super) fn converts(configuration: &[Variable]) -> bool {
    configuration.iter().any(|variable| match (variable.section.as_str(), variable.key.as_str()) {
        ("filter", _) => true,
        ("core", "autocrlf") => {
            !["false", "off", "no", "0"].contains(&variable.value.to_ascii_lowercase().as_str())
        }
        _ => false,
    })
}
