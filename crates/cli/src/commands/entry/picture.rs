//! Images of an entry.

use std::io::Read;
use std::path::Path;

use retake_model::command::InvalidPictureError;
use retake_model::entry::{EntryVersion, attachment_media_of};
use retake_timeline::NewEntry;

use crate::failure::{Code, Failure};
use crate::files::open_regular;
use crate::ui::input::MAX_CONTENT_BYTES;

/// Reads a picture. Its type is detected from its content, not its name.
pub(in crate::commands) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |reason: String| Failure::new(Code::Usage, format!("{}: {reason}", path.display()));
    let file = open_regular(path).map_err(|error| fail(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_CONTENT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > MAX_CONTENT_BYTES {
        return Err(fail("larger than 64 MiB".to_owned()));
    }
    if attachment_media_of(&bytes).is_none() {
        return Err(fail(InvalidPictureError.to_string()));
    }
    Ok(bytes)
}

/// Appends the pictures to the entry's text.
pub(in crate::commands) fn attach(
    version: EntryVersion,
    pictures: Vec<Vec<u8>>,
) -> Result<NewEntry, Failure> {
    NewEntry::with_pictures(version, pictures).map_err(|error| Failure::new(Code::Usage, error))
}
