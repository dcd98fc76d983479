//! Ignore rules: which names of a folder are captured.
//!
//! ```text
//!   options ◄── parents of the root, up to the top of the repository ◄── root ◄── src ◄── src/deep
//!                  .gitignore, info/exclude                                  three files in each, if they exist
//! ```
//!
//! Among files of one kind, the deepest with a matching rule decides; among kinds, `.retakeignore` before `.ignore`
//! before `.gitignore` before `info/exclude`. A fingerprint identifies the rules of a folder. While it is unchanged,
//! earlier decisions stay valid, and no file is read or compiled.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use retake_model::path::{InvalidPathError, check};
use retake_model::tree::ExclusionReason;
use rustix::fs::{Mode, OFlags};

use super::globs::Globs;
use crate::pattern;

/// Ignore files, strongest first.
pub(super) const RULE_FILES: [&CStr; 4] = [c".retakeignore", c".ignore", c".gitignore", c".git/info/exclude"];
/// Larger files are not ignore files and are not read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(super) type Fingerprint = [u8; 16];
pub(super) type Texts = [Option<Vec<u8>>; 4];

/// Decision about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Capture it.
    Capture,
    /// Capture it with everything below it.
    CaptureAll,
    /// Capture only what the options include below it.
    Descend(ExclusionReason),
    /// Exclude it.
    Exclude(ExclusionReason),
}

/// Whether the rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchMode {
    Usual,
    Everything,
    OnlyIncluded(ExclusionReason),
}

/// Rules for the entries of one folder, on top of those of its parents.
pub(super) struct Rules {
    outer: Option<Arc<Rules>>,
    pub(super) fingerprint: Fingerprint,
    mode: MatchMode,
    /// Path of the folder from the top of the repository; begins with a slash.
    base: Vec<u8>,
    texts: OnceLock<Texts>,
    matchers: OnceLock<[Option<Gitignore>; 4]>,
}

impl Rules {
    /// Rules from the options and the parents of a root.
    pub(super) fn root_rules(globs: &Globs) -> Arc<Self> {
        Arc::new(Self {
            outer: None,
            fingerprint: globs.fingerprint,
            mode: MatchMode::Usual,
            base: Vec::new(),
            texts: OnceLock::from(Texts::default()),
            matchers: OnceLock::new(),
        })
    }

    /// Rules with the ignore files of a folder.
    pub(super) fn with_texts(outer: &Arc<Self>, base: Vec<u8>, texts: Texts) -> Arc<Self> {
        if texts.iter().all(Option::is_none) {
            return Arc::clone(outer);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&outer.fingerprint);
        hasher.update(&base);
        for text in &texts {
            hasher.update(&text.as_ref().map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            hasher.update(text.as_deref().unwrap_or_default());
        }
        let fingerprint = shortened(&hasher);
        Arc::new(Self { base, texts: OnceLock::from(texts), ..Self::below(outer, fingerprint) })
    }

    /// Rules with unchanged ignore files of a folder, which are read only when needed.
    pub(super) fn cached(outer: &Arc<Self>, base: Vec<u8>, fingerprint: Fingerprint) -> Arc<Self> {
        Arc::new(Self { base, ..Self::below(outer, fingerprint) })
    }

    /// Rules inside a folder that was decided as a whole.
    pub(super) fn inside(outer: &Arc<Self>, decision: Decision) -> Arc<Self> {
        let (mode, mark) = match decision {
            Decision::CaptureAll => (MatchMode::Everything, 255),
            Decision::Descend(reason) => (MatchMode::OnlyIncluded(reason), reason as u8),
            Decision::Capture | Decision::Exclude(_) => return Arc::clone(outer),
        };
        if outer.mode == mode {
            return Arc::clone(outer);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&outer.fingerprint);
        hasher.update(&[mark]);
        let texts = OnceLock::from(Texts::default());
        Arc::new(Self { mode, texts, ..Self::below(outer, shortened(&hasher)) })
    }

    fn below(outer: &Arc<Self>, fingerprint: Fingerprint) -> Self {
        Self {
            outer: Some(Arc::clone(outer)),
            fingerprint,
            mode: outer.mode,
            base: Vec::new(),
            texts: OnceLock::new(),
            matchers: OnceLock::new(),
        }
    }

    /// Why the folder is excluded if nothing in it is included.
    pub(super) fn default_reason(&self) -> Option<ExclusionReason> {
        match self.mode {
            MatchMode::OnlyIncluded(reason) => Some(reason),
            MatchMode::Usual | MatchMode::Everything => None,
        }
    }

    /// Decides about a name. `path` is relative to the root, `full` to the top of the repository.
    pub(super) fn decide(
        &self,
        context: &MatchContext<'_>,
        name: &[u8],
        path: &[u8],
        is_folder: bool,
    ) -> Decision {
        match check(name) {
            Ok(()) => {}
            Err(InvalidPathError::Repository | InvalidPathError::Reserved) => {
                return Decision::Exclude(ExclusionReason::Repository);
            }
            Err(InvalidPathError::NotInside | InvalidPathError::TooLong) => {
                return Decision::Exclude(ExclusionReason::InvalidName);
            }
        }
        if path.len() > retake_model::path::MAX_PATH {
            return Decision::Exclude(ExclusionReason::InvalidName);
        }
        if self.mode == MatchMode::Everything {
            return Decision::Capture;
        }
        let here = Path::new(OsStr::from_bytes(path));
        if context.globs.includes(here, is_folder) {
            return if is_folder { Decision::CaptureAll } else { Decision::Capture };
        }
        let Some(reason) = self.match_globs(context, here, path, is_folder) else { return Decision::Capture };
        if is_folder && context.globs.may_contain_included(here) {
            Decision::Descend(reason)
        } else {
            Decision::Exclude(reason)
        }
    }

    /// Like `decide`, for a folder that is known to be captured.
    pub(super) fn decide_folder(&self, context: &MatchContext<'_>, name: &[u8], path: &[u8]) -> Decision {
        if context.globs.has_included() { self.decide(context, name, path, true) } else { Decision::Capture }
    }

    fn match_globs(
        &self,
        context: &MatchContext<'_>,
        here: &Path,
        path: &[u8],
        is_folder: bool,
    ) -> Option<ExclusionReason> {
        if let MatchMode::OnlyIncluded(reason) = self.mode {
            return Some(reason);
        }
        if context.globs.is_secret(here, is_folder) {
            return Some(ExclusionReason::Secret);
        }
        let full = [context.prefix, path].concat();
        let full = Path::new(OsStr::from_bytes(&full));
        let ignored = context.globs.excludes(here, is_folder) || self.ignores(context, full, is_folder);
        ignored.then_some(ExclusionReason::Ignored)
    }

    fn ignores(&self, context: &MatchContext<'_>, full: &Path, is_folder: bool) -> bool {
        for kind in 0..RULE_FILES.len() {
            let mut level = Some(self);
            while let Some(rules) = level {
                if let Some(matcher) = &rules.matchers(context)[kind] {
                    match matcher.matched(full, is_folder) {
                        Match::Ignore(_) => return true,
                        Match::Whitelist(_) => return false,
                        Match::None => {}
                    }
                }
                level = rules.outer.as_deref();
            }
        }
        false
    }

    fn matchers(&self, context: &MatchContext<'_>) -> &[Option<Gitignore>; 4] {
        self.matchers.get_or_init(|| {
            let texts = self.texts.get_or_init(|| {
                let path = self.base.strip_prefix(context.prefix).unwrap_or_default();
                let folder = open_below(context.root, path);
                folder.map_or_else(Texts::default, |folder| read_texts(folder.as_fd(), path.is_empty()))
            });
            texts.each_ref().map(|text| text.as_ref().map(|text| compile(&self.base, text)))
        })
    }
}

/// Input of a decision besides the rules.
pub(super) struct MatchContext<'walk> {
    pub(super) globs: &'walk Globs,
    pub(super) root: BorrowedFd<'walk>,
    /// Path from the top of the repository to the root: empty, or names that each begin with a slash.
    pub(super) prefix: &'walk [u8],
}

/// Ignore files of a folder. The root's `info/exclude` is located separately.
pub(super) fn read_texts(folder: BorrowedFd<'_>, is_root: bool) -> Texts {
    let mut texts = Texts::default();
    for (text, name) in texts.iter_mut().zip(RULE_FILES).take(if is_root { 3 } else { 4 }) {
        *text = read_text(folder, name);
    }
    texts
}

pub(super) fn read_text(folder: BorrowedFd<'_>, name: &CStr) -> Option<Vec<u8>> {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_BYTES).then_some(bytes)
}

/// Opens a folder below another without following links.
pub(super) fn open_below(root: BorrowedFd<'_>, path: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(root, c".", flags, Mode::empty()).ok()?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        folder = rustix::fs::openat(&folder, OsStr::from_bytes(name), flags, Mode::empty()).ok()?;
    }
    Some(folder)
}

fn compile(base: &[u8], text: &[u8]) -> Gitignore {
    let base = if base.is_empty() { b"/" } else { base };
    let mut builder = GitignoreBuilder::new(Path::new(OsStr::from_bytes(base)));
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        // An invalid line ignores nothing, as in git.
        if let Ok(line) = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line))
            && pattern::check(line).is_ok()
        {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn shortened(hasher: &blake3::Hasher) -> Fingerprint {
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    fingerprint
}
