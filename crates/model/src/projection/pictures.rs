//! Tokens of pictures and documents, by the rules that providers document.
//!
//! - Anthropic: a token per 750 pixels, at most 1,568 pixels long and about 1,600 tokens; a page of a document
//!   is read as text (up to 3,000 tokens) and as a picture.
//! - `OpenAI`: 85 tokens and 170 for each tile of 512 pixels, after scaling the shorter side to 768; pages of
//!   documents are read as text and as pictures.
//! - Gemini: 258 tokens for a small picture, for each tile of 768 pixels, and for each page of a document.

use super::Wire;
use crate::entry::PDF;

/// Tokens of a picture whose size is unknown.
const USUAL_PICTURE: u64 = 1_500;
/// Pages of a document whose page count is compressed.
const USUAL_PAGES: u64 = 10;
/// The most pages that any provider accepts.
const MOST_PAGES: u64 = 1_000;
/// Tokens of a page whose text and picture are both read.
const PAGE: u64 = 2_000;

/// Estimates the tokens of a picture or PDF document without its bytes.
pub fn usual_picture_tokens(media: &str) -> u64 {
    if media == PDF { USUAL_PAGES * PAGE } else { USUAL_PICTURE }
}

/// Estimates the tokens of a picture or PDF document.
pub fn picture_tokens(wire: Wire, media: &str, bytes: &[u8]) -> u64 {
    if media == PDF {
        let page = match wire {
            Wire::Anthropic => 3_000 + 1_600,
            Wire::Gemini => 258,
            Wire::Chat | Wire::Responses => PAGE,
        };
        return pages(bytes).unwrap_or(USUAL_PAGES).min(MOST_PAGES) * page;
    }
    let Some((width, height)) = size(bytes).filter(|(width, height)| *width > 0 && *height > 0) else {
        return USUAL_PICTURE;
    };
    let (long, short) = (width.max(height), width.min(height));
    match wire {
        Wire::Anthropic => {
            let (long, short) = fit(long, short, 1_568);
            (long * short).div_ceil(750).min(1_600)
        }
        Wire::Chat | Wire::Responses => {
            let (long, short) = fit(long, short, 2_048);
            let (long, short) = if short > 768 { (long * 768 / short, 768) } else { (long, short) };
            85 + 170 * long.div_ceil(512) * short.div_ceil(512)
        }
        Wire::Gemini if long <= 384 => 258,
        Wire::Gemini => 258 * long.div_ceil(768) * short.div_ceil(768),
    }
}

/// Scales a size so that its longer side has at most `most` pixels.
fn fit(long: u64, short: u64, most: u64) -> (u64, u64) {
    if long > most { (most, (short * most / long).max(1)) } else { (long, short) }
}

/// The pages of a PDF document: its page objects, as far as they are not compressed, or the count of its page
/// tree.
fn pages(bytes: &[u8]) -> Option<u64> {
    let (mut objects, mut count) = (0, 0);
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let name = &bytes[at..];
        if let Some(rest) = name.strip_prefix(b"/Type") {
            let rest = rest.trim_ascii_start();
            let is_page = rest.starts_with(b"/Page") && !rest.get(5).is_some_and(u8::is_ascii_alphabetic);
            objects += u64::from(is_page);
        } else if let Some(rest) = name.strip_prefix(b"/Count") {
            let digits = rest.trim_ascii_start();
            let end = digits.iter().take(7).take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&digits[..end]).ok().and_then(|text| text.parse().ok());
            count = count.max(number.unwrap_or(0));
        }
    }
    [objects, count].into_iter().find(|pages| *pages > 0)
}

/// Width and height of a PNG, GIF, JPEG or WebP picture.
fn size(bytes: &[u8]) -> Option<(u64, u64)> {
    let read = |at: usize, big: bool, length: usize| -> Option<u64> {
        let field = bytes.get(at..at + length)?;
        let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
        Some(if big { field.iter().fold(0, add) } else { field.iter().rev().fold(0, add) })
    };
    if bytes.starts_with(b"\x89PNG") {
        return Some((read(16, true, 4)?, read(20, true, 4)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((read(6, false, 2)?, read(8, false, 2)?));
    }
    if bytes.starts_with(b"RIFF") {
        return match bytes.get(12..16)? {
            b"VP8X" => Some((read(24, false, 3)? + 1, read(27, false, 3)? + 1)),
            b"VP8L" => {
                let bits = read(21, false, 4)?;
                Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
            }
            b"VP8 " => Some((read(26, false, 2)? & 0x3FFF, read(28, false, 2)? & 0x3FFF)),
            _ => None,
        };
    }
    if !bytes.starts_with(b"\xFF\xD8") {
        return None;
    }
    let mut at = 2;
    while *bytes.get(at)? == 0xFF {
        let marker = *bytes.get(at + 1)?;
        // Start of frame, except for tables and the arithmetic-coding marker among them.
        if matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
            return Some((read(at + 7, true, 2)?, read(at + 5, true, 2)?));
        }
        at += if marker == 0xFF { 1 } else { 2 + usize::try_from(read(at + 2, true, 2)?).ok()?.max(2) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat()
    }

    #[test]
    fn picture_tokens_match_the_documented_examples() {
        let check = |wire: Wire, (width, height): (u32, u32), expected: u64| {
            let found = picture_tokens(wire, "image/png", &png(width, height));
            assert_eq!(found, expected, "{wire:?} {width}×{height}");
        };
        // Anthropic's table of sizes.
        check(Wire::Anthropic, (200, 200), 54);
        check(Wire::Anthropic, (1_000, 1_000), 1_334);
        check(Wire::Anthropic, (1_092, 1_092), 1_590);
        check(Wire::Anthropic, (8_000, 8_000), 1_600);
        // OpenAI's examples.
        check(Wire::Responses, (1_024, 1_024), 765);
        check(Wire::Responses, (2_048, 4_096), 1_105);
        // Google's rule.
        check(Wire::Gemini, (384, 100), 258);
        check(Wire::Gemini, (960, 540), 516);
        assert_eq!(picture_tokens(Wire::Gemini, "image/png", b"no picture"), USUAL_PICTURE);
        assert_eq!(picture_tokens(Wire::Gemini, "image/png", &png(0, 7)), USUAL_PICTURE);
    }

    #[test]
    fn picture_sizes_are_read_from_every_format() {
        assert_eq!(size(b"GIF89a\x05\x00\x07\x01"), Some((5, 263)));
        let jpeg = b"\xFF\xD8\xFF\xE0\x00\x04ab\xFF\xC0\x00\x11\x08\x00\x07\x01\x05\x03";
        assert_eq!(size(jpeg), Some((261, 7)));
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X".to_vec();
        webp.extend([0; 8]);
        webp.extend([4, 0, 0, 6, 0, 0]);
        assert_eq!(size(&webp), Some((5, 7)));
        for cut in 0..jpeg.len() {
            assert!(size(&jpeg[..cut]).is_none_or(|size| size == (261, 7)));
        }
    }

    #[test]
    fn document_tokens_depend_on_the_pages() {
        let check = |bytes: &[u8], gemini: u64| {
            assert_eq!(picture_tokens(Wire::Gemini, PDF, bytes), gemini * 258);
        };
        check(b"%PDF /Type /Pages /Count 2 /Type/Page /Type /Page ", 2);
        check(b"%PDF <</Type/Pages/Count 31>>", 31);
        check(b"%PDF compressed", USUAL_PAGES);
        check(b"/Count 9999999", MOST_PAGES);
        assert_eq!(picture_tokens(Wire::Anthropic, PDF, b"/Type/Page>>"), 4_600);
    }
}
