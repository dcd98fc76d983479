//! Writes objects into a new pack of a repository.
//!
//! ```text
//!   pack-X.pack   "PACK" version count │ object │ object │ … │ SHA-1 of all that        X: that SHA-1
//!   pack-X.idx    how many ids begin with a byte up to 0, 1, … │ ids │ checksums │ offsets │ SHA-1s
//! ```
//!
//! One pack instead of thousands of files: it is complete or absent, and one sync makes it durable. Git finds a pack by its
//! index, which therefore gets its name last. Left-over temporary files have names that `git gc` removes.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{MZFlush, MZStatus};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::objects::{ObjectId, ObjectKind, digits_of};

/// Fast compression; `git gc` compresses again.
const LEVEL: i32 = 3;
/// Positive for a zlib header.
const WINDOW_BITS: i32 = 15;
/// Offsets from here on need eight bytes.
const FAR: u64 = 0x8000_0000;

/// A pack that is being written. Dropping it removes it.
pub(super) struct PackWriter {
    folder: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    hash: Context,
    offset: u64,
    entries: Vec<Entry>,
    count: u32,
}

struct Entry {
    id: ObjectId,
    checksum: u32,
    offset: u64,
}

impl PackWriter {
    /// Begins a pack with so many objects in the folder of packs.
    pub(super) fn create(folder: &Path, count: u32) -> io::Result<Self> {
        let temporary = folder.join(format!("tmp_pack_retake_{}", std::process::id()));
        let file = create_new(&temporary)?;
        let mut writer = Self {
            folder: folder.to_owned(),
            temporary,
            file: BufWriter::with_capacity(256 * 1024, file),
            hash: Context::new(&SHA1_FOR_LEGACY_USE_ONLY),
            offset: 0,
            entries: Vec::with_capacity(count as usize),
            count,
        };
        let header = [&b"PACK"[..], &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
        writer.write(&header, &mut Checksum::default())?;
        Ok(writer)
    }

    /// Adds an object, whose content arrives in pieces.
    pub(super) fn add<E: From<io::Error>>(
        &mut self,
        id: ObjectId,
        kind: ObjectKind,
        size: u64,
        pieces: impl IntoIterator<Item = Result<Vec<u8>, E>>,
    ) -> Result<(), E> {
        let offset = self.offset;
        let mut checksum = Checksum::default();
        self.write(&header(kind, size), &mut checksum)?;
        let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, WINDOW_BITS, 0));
        let mut written = 0;
        for piece in pieces {
            let piece = piece?;
            written += piece.len() as u64;
            self.compress(&mut compressor, &piece, MZFlush::None, &mut checksum)?;
        }
        if written != size {
            return Err(io::Error::other("a file has another size than recorded").into());
        }
        self.compress(&mut compressor, &[], MZFlush::Finish, &mut checksum)?;
        self.entries.push(Entry { id, checksum: checksum.value(), offset });
        Ok(())
    }

    fn compress(
        &mut self,
        compressor: &mut CompressorOxide,
        mut input: &[u8],
        flush: MZFlush,
        checksum: &mut Checksum,
    ) -> io::Result<()> {
        let mut output = vec![0; 64 * 1024];
        loop {
            let result = deflate(compressor, input, &mut output, flush);
            self.write(&output[..result.bytes_written], checksum)?;
            input = &input[result.bytes_consumed..];
            match result.status {
                Ok(MZStatus::StreamEnd) => return Ok(()),
                _ if flush == MZFlush::None && input.is_empty() => return Ok(()),
                Ok(_) if result.bytes_written > 0 || result.bytes_consumed > 0 => {}
                _ => return Err(io::Error::other("the compression failed")),
            }
        }
    }

    fn write(&mut self, bytes: &[u8], checksum: &mut Checksum) -> io::Result<()> {
        self.hash.update(bytes);
        checksum.update(bytes);
        self.offset += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Makes the pack durable and visible.
    pub(super) fn finish(mut self) -> io::Result<()> {
        assert_eq!(self.entries.len(), self.count as usize, "the header has the number of objects");
        let pack = self.hash.clone().finish();
        self.file.write_all(pack.as_ref())?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        let name: ObjectId = pack.as_ref().try_into().expect("SHA-1 has 20 bytes");
        let target = self.folder.join(format!("pack-{}", digits_of(&name)));
        self.entries.sort_unstable_by_key(|entry| entry.id);
        let index = index(&self.entries, pack.as_ref());
        let temporary_index = self.temporary.with_file_name(format!("tmp_idx_retake_{}", std::process::id()));
        let mut file = create_new(&temporary_index)?;
        file.write_all(&index)?;
        file.sync_all()?;
        for (from, extension) in [(&self.temporary, "pack"), (&temporary_index, "idx")] {
            fs::set_permissions(from, Permissions::from_mode(0o444))?;
            fs::rename(from, target.with_extension(extension))?;
        }
        File::open(&self.folder)?.sync_all()
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        // Absent after `finish`.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    // Left over from a process with the same id that was killed.
    let _ = fs::remove_file(path);
    File::options().write(true).create_new(true).mode(0o644).open(path)
}

/// Kind and size of an object: three bits, and groups of 4, 7, 7, … bits.
fn header(kind: ObjectKind, size: u64) -> Vec<u8> {
    let mut bytes = vec![(kind.number() << 4) | (size & 15) as u8];
    let mut rest = size >> 4;
    while rest > 0 {
        *bytes.last_mut().expect("it has one") |= 0x80;
        bytes.push((rest & 0x7F) as u8);
        rest >>= 7;
    }
    bytes
}

/// The index of a pack: sorted ids with their checksums and offsets.
fn index(entries: &[Entry], pack: &[u8]) -> Vec<u8> {
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    let mut count = 0_u32;
    for first in 0..=u8::MAX {
        count += entries[count as usize..].iter().take_while(|entry| entry.id[0] == first).count() as u32;
        bytes.extend(count.to_be_bytes());
    }
    bytes.extend(entries.iter().flat_map(|entry| entry.id));
    bytes.extend(entries.iter().flat_map(|entry| entry.checksum.to_be_bytes()));
    let mut far = Vec::new();
    for entry in entries {
        let offset = if entry.offset < FAR {
            entry.offset
        } else {
            far.push(entry.offset);
            FAR | (far.len() as u64 - 1)
        };
        bytes.extend((offset as u32).to_be_bytes());
    }
    bytes.extend(far.iter().flat_map(|offset| offset.to_be_bytes()));
    bytes.extend(pack);
    let hash = ring::digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    bytes.extend(hash.as_ref());
    bytes
}

/// CRC-32, as in zip files.
struct Checksum(u32);

impl Default for Checksum {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Checksum {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = Self::TABLE[((self.0 ^ u32::from(*byte)) & 0xFF) as usize] ^ (self.0 >> 8);
        }
    }

    fn value(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_zip_files() {
        let mut checksum = Checksum::default();
        checksum.update(b"1234");
        checksum.update(b"56789");
        assert_eq!(checksum.value(), 0xCBF4_3926);
        assert_eq!(Checksum::default().value(), 0);
    }

    #[test]
    fn headers_have_kind_and_size() {
        assert_eq!(header(ObjectKind::Blob, 5), [0x35]);
        assert_eq!(header(ObjectKind::Commit, 16), [0x90, 1]);
        assert_eq!(header(ObjectKind::Tree, 15 + (0x7F << 4) + (1 << 11)), [0xAF, 0xFF, 1]);
    }
}
