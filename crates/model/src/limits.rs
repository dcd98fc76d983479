//! Size limits.
//!
//! They are far above normal use and far below harmful sizes: a larger input is a mistake or an attack, and
//! is rejected at the boundary with the limit in the message.

/// Bytes of one entry, all blocks together.
pub const ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of a draft or a system prompt.
pub const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a thread's title.
pub const TITLE_CHARS: usize = 200;
/// Characters of a take's name, a tag or a role.
pub const NAME_CHARS: usize = 100;
/// Tags or roles of one thread.
pub const NAMES: usize = 256;
/// Context files, screenshots or files of one take.
pub const FILES: usize = 10_000;
/// Pictures attached to one draft.
pub const PICTURES: usize = 100;
/// Characters of an entry's preview.
pub const PREVIEW_CHARS: usize = 60;
/// Bytes of an observed value: a folder's path, a branch, a client's name.
pub const OBSERVATION_BYTES: usize = 64 * 1024;
/// Paths in one expanded file tree.
pub const TREE_PATHS: usize = 1 << 22;
