//! Sizes that nothing may exceed, stated once.
//!
//! They are far above what people do and far below what would hurt: a size beyond them is a mistake or an
//! attack, and is refused at the boundary with the limit in the message.

/// Bytes of one entry, all blocks together.
pub const ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of a draft or of one system prompt.
pub const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a thread's title.
pub const TITLE_CHARS: usize = 200;
/// Characters of a take's name, a tag or a role.
pub const NAME_CHARS: usize = 100;
/// Tags of one thread, and roles of one thread.
pub const NAMES: usize = 256;
/// Context files, screenshots or files of one take.
pub const FILES: usize = 10_000;
/// Pictures that are put to one draft.
pub const PICTURES: usize = 100;
/// Characters of a preview of an entry.
pub const PREVIEW_CHARS: usize = 60;
/// Bytes of something that was observed and not chosen: the path of a folder, a branch, a client's name.
pub const OBSERVATION_BYTES: usize = 64 * 1024;
/// Paths in one tree of files, when it is laid out.
pub const TREE_PATHS: usize = 1 << 22;
