//! Large files: canonical chunks, small edits, equality with files of older versions, hostile nodes.

use std::collections::HashSet;
use std::convert::Infallible;

use retake_model::content::{ContentId, Kind, decode, encode};
use retake_model::object::{Additions, MemoryObjects, NewObject, Objects};
use retake_model::path::FileName;
use retake_model::tree::{
    Chunk, Chunker, Chunks, FileHasher, MAX_WHOLE, Node, PART, Parts, Tree, TreeEntry, add_file,
    chunk_ranges, differences, read, read_piece,
};

use crate::support::Rng;

fn noise(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.below(256) as u8).collect()
}

/// A text of numbered lines, which differ.
fn lines(count: u64) -> Vec<u8> {
    let mut rng = Rng::new(count);
    let line =
        |number| format!("line {number}: let value_{} = compute({});\n", rng.below(1000), rng.below(99));
    (0..count).map(line).collect::<String>().into_bytes()
}

fn cut(bytes: &[u8], mut piece: impl FnMut() -> usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut each = |chunk: &[u8]| {
        found.push(chunk.to_vec());
        Ok::<_, Infallible>(())
    };
    let mut chunker = Chunker::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece().clamp(1, rest.len()));
        let Ok(()) = chunker.push(now, &mut each);
        rest = later;
    }
    let Ok(()) = chunker.finish(&mut each);
    found
}

fn file(bytes: &[u8]) -> (Node, Vec<NewObject>) {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let node = add_file(&mut additions, bytes.to_vec(), 0o644);
    (node, additions.into_new())
}

fn stored(objects: &[NewObject]) -> MemoryObjects {
    let mut memory = MemoryObjects::default();
    memory.insert_all(objects.iter().cloned());
    memory
}

#[test]
fn boundaries_are_part_of_the_format() {
    let bytes = lines(5_000);
    let lengths: Vec<usize> = cut(&bytes, || usize::MAX).iter().map(Vec::len).collect();
    let hash = blake3::hash(format!("{lengths:?}").as_bytes()).to_hex().to_string();
    assert_eq!(&hash[..16], "2631130c9af91fe9", "stored files would be stored again: {lengths:?}");
}

#[test]
fn chunks_do_not_depend_on_how_the_bytes_arrive() {
    let mut rng = Rng::new(3);
    for length in [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 300_000] {
        for bytes in [noise(&mut rng, length), vec![0; length], lines(length as u64 / 50)] {
            let whole = cut(&bytes, || usize::MAX);
            assert_eq!(whole.concat(), bytes);
            assert!(whole.iter().all(|chunk| chunk.len() <= 65_536));
            assert!(whole.iter().rev().skip(1).all(|chunk| chunk.len() > 4096));
            let mut sizes = Rng::new(length as u64);
            assert_eq!(cut(&bytes, || sizes.below(40_000) as usize), whole);
            assert_eq!(cut(&bytes, || sizes.below(9_000) as usize), whole);
        }
    }
}

#[test]
fn an_edit_of_a_large_file_stores_kilobytes() {
    let mut rng = Rng::new(5);
    for (what, start, most, mean) in
        [("text", lines(50_000), 110_000, 40_000), ("noise", noise(&mut rng, 2_000_000), 110_000, 40_000)]
    {
        let mut bytes = start;
        let mut known: HashSet<ContentId> = file(&bytes).1.iter().map(|object| object.id).collect();
        let (mut worst, mut sum) = (0, 0);
        for _ in 0..20 {
            let at = rng.below(bytes.len() as u64) as usize;
            let line = format!("edited {}\n", rng.below(1000));
            bytes.splice(at..(at + rng.below(40) as usize).min(bytes.len()), line.into_bytes());
            let new: usize =
                file(&bytes).1.iter().filter(|object| known.insert(object.id)).map(|o| o.bytes.len()).sum();
            (worst, sum) = (worst.max(new), sum + new);
        }
        // Before compression, which the store adds.
        assert!(worst < most && sum / 20 < mean, "{what}: at most {worst}, on average {}", sum / 20);
    }
}

#[test]
fn any_range_of_a_file_is_read() {
    let mut rng = Rng::new(9);
    for length in [0, 10, MAX_WHOLE as usize, MAX_WHOLE as usize + 1, 1_000_000, PART as usize + 70_000] {
        let bytes = noise(&mut rng, length);
        let (node, objects) = file(&bytes);
        let memory = stored(&objects);
        assert_eq!(matches!(node, Node::File { chunks: Some(_), .. }), length as u64 > MAX_WHOLE);
        assert_eq!(read(&memory, &node).expect("in memory"), bytes);
        for _ in 0..20 {
            let start = rng.below(length as u64 + 10);
            let end = start + rng.below(100_000);
            let from = (start as usize).min(length);
            let expected = &bytes[from..(end as usize).clamp(from, length)];
            assert_eq!(read_piece(&memory, &node, start..end).expect("in memory"), expected);
        }
        let ranges = chunk_ranges(&memory, &node).expect("in memory");
        let covered: u64 = ranges.iter().map(|(_, range)| range.end - range.start).sum();
        assert!(ranges.is_empty() || covered == length as u64);
    }
}

/// The same file as versions of Retake before chunks stored it.
fn earlier(bytes: &[u8]) -> (Node, Vec<NewObject>) {
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let mut parts = bytes.chunks(PART as usize).map(|part| additions.add_bytes(Kind::Blob, part.to_vec()));
    let content = if bytes.len() as u64 > PART {
        let parts = Parts(parts.by_ref().collect());
        additions.add(&parts)
    } else {
        parts.next().expect("not empty")
    };
    (Node::file(content, bytes.len() as u64, 0o644), additions.into_new())
}

#[test]
fn a_file_of_an_older_version_compares_equal() {
    let mut rng = Rng::new(11);
    for length in [100, 70_000, 1_000_000, PART as usize, PART as usize + 1, 2 * PART as usize + 5] {
        let bytes = noise(&mut rng, length);
        let ((old, mut objects), (new, more)) = (earlier(&bytes), file(&bytes));
        assert_eq!(old, new, "{length}");
        objects.extend(more);
        let memory = stored(&objects);
        for node in [&old, &new] {
            assert_eq!(read(&memory, node).expect("in memory"), bytes);
        }
        let mut additions = Additions::new(&memory);
        let mut tree = |node: &Node| {
            let name = FileName::new(b"file").expect("a name");
            Tree::new(vec![TreeEntry { name, node: node.clone() }]).add_to(&mut additions)
        };
        let (old, new) = (tree(&old), tree(&new));
        assert_eq!(old == new, length as u64 <= MAX_WHOLE);
        assert_eq!(differences(&additions, Some(old), Some(new)).expect("in memory"), []);
    }
}

#[test]
fn hostile_nodes_are_refused() {
    let bytes = noise(&mut Rng::new(13), 1_500_000);
    let (node, objects) = file(&bytes);
    let memory = stored(&objects);
    let Node::File { content, size, chunks: Some(top), .. } = node else { unreachable!("it is large") };
    let encoded = memory.bytes(Kind::Chunks, top).expect("in memory").to_vec();
    for end in 0..encoded.len() {
        assert!(decode::<Chunks>(&encoded[..end]).is_err(), "truncated at {end}");
    }
    let mut rng = Rng::new(17);
    for _ in 0..2_000 {
        let mut damaged = encoded.clone();
        damaged[rng.below(encoded.len() as u64) as usize] ^= 1 << rng.below(8);
        let Ok(decoded) = decode::<Chunks>(&damaged) else { continue };
        assert_eq!(encode(&decoded), damaged, "two encodings of one node");
        let mut additions = Additions::new(&memory);
        let chunks = Some(additions.add(&decoded));
        let read = read(&additions, &Node::File { content, size, mode: 0, chunks });
        assert!(read.is_err(), "other bytes pass for the file");
    }

    // The bytes of another file, and nodes that refer to one node again and again.
    let other = noise(&mut rng, 1_500_000);
    let (forged, more) = file(&other);
    let mut all = stored(&objects);
    all.insert_all(more);
    let Node::File { chunks, .. } = forged else { unreachable!("it is a file") };
    assert!(read(&all, &Node::File { content, size, mode: 0, chunks }).is_err());
    let Node::File { content: right, size, chunks, .. } = forged else { unreachable!("it is a file") };
    for (content, accepted) in [(right, true), (content, false)] {
        let node = Node::File { content, size, mode: 0, chunks };
        for end in [size, size + 1] {
            assert_eq!(read_piece(&all, &node, 0..end).is_ok(), accepted, "the whole file");
        }
    }
    let base = MemoryObjects::default();
    let mut additions = Additions::new(&base);
    let chunk = additions.add_bytes(Kind::Blob, vec![7; 65_536]);
    let mut add = |node| Ok::<_, Infallible>(additions.add_bytes(Kind::Chunks, node));
    let Ok(bomb) = Chunks::encode_nodes(vec![Chunk { id: chunk, bytes: 65_536 }; 20_000], &mut add);
    let claims = |size| Node::File { content, size, mode: 0, chunks: Some(bomb) };
    for size in [0, 65_536, 1 << 40, u64::MAX] {
        assert!(read(&additions, &claims(size)).is_err(), "{size}");
    }
    let piece = read_piece(&additions, &claims(20_000 << 16), (1 << 30)..(1 << 30) + 10).expect("one chunk");
    assert_eq!(piece, [7; 10]);
}

#[test]
fn a_content_id_is_computed_from_any_pieces() {
    let bytes = noise(&mut Rng::new(19), 2 * PART as usize + 11);
    for length in [0, 1, PART as usize, PART as usize + 1, bytes.len()] {
        let bytes = &bytes[..length];
        let mut hasher = FileHasher::default();
        bytes.chunks(700_001).for_each(|piece| hasher.push(piece));
        let expected = if length == 0 { ContentId::of(Kind::Blob, b"") } else { file_id(bytes) };
        assert_eq!(hasher.finish(), expected, "{length}");
    }
}

fn file_id(bytes: &[u8]) -> ContentId {
    match earlier(bytes).0 {
        Node::File { content, .. } => content,
        Node::Link { .. } | Node::Folder { .. } => unreachable!("it is a file"),
    }
}
