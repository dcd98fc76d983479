//! Media types of pictures and documents, detected from their first bytes instead of the file name.

/// The media type of a PDF document.
pub const PDF: &str = "application/pdf";

/// Detects the media type of an attachment: a picture or a PDF document.
pub fn attachment_media_of(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(PDF),
        _ => detect_media_type(beginning),
    }
}

/// Detects the media type of a picture; `None` if models do not support the format.
pub fn detect_media_type(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
