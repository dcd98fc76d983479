//! Pictures that come along with an entry.

use std::io::Read;
use std::path::Path;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_timeline::NewEntry;

use crate::failure::{Code, Failure};
use crate::ui::input::LIMIT;

/// A picture and its media type.
pub(in crate::commands) struct Picture {
    media: &'static str,
    bytes: Vec<u8>,
}

/// Reads a picture; what it is shows in its first bytes, whatever its name says.
pub(in crate::commands) fn read(path: &Path) -> Result<Picture, Failure> {
    let fail = |reason: String| Failure::new(Code::Usage, format!("{}: {reason}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| fail(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > LIMIT {
        return Err(fail("larger than 64 MiB".to_owned()));
    }
    let media = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(fail("not a png, jpg, gif or webp picture".to_owned())),
    };
    Ok(Picture { media, bytes })
}

/// The entry with its pictures behind its text.
pub(in crate::commands) fn attach(mut version: EntryVersion, pictures: Vec<Picture>) -> NewEntry {
    let mut blobs = Vec::new();
    for Picture { media, bytes } in pictures {
        let blob = ContentId::of(Kind::Blob, &bytes);
        version.blocks.push(Block::Image { media: media.to_owned(), blob, extra: Fields::default() });
        blobs.push(bytes);
    }
    NewEntry { id: None, version, blobs }
}
