//! The tools of the agent.
//!
//! ```text
//!   read · list · glob · search      read            change nothing
//!   write · edit                     write           change the file that the call names
//!   shell                            run             may change anything
//! ```
//!
//! Calls are untrusted: a path may lead out of the folder, and an earlier call may have planted a symlink.
//! Paths are first parsed into [`TreePath`]s, which cannot lead out, and then opened by descriptor
//! (`openat.rs`), which is safe against concurrent renames.
//!
//! A failed tool is not an error of the program, but an output that tells the model what to do instead.

mod denied_paths;
mod edit;
mod glob;
mod ignore_rules;
mod input;
mod interruptible;
mod list;
mod openat;
mod read;
mod search;
mod shell;
#[cfg(test)]
mod tests;
mod text;
mod tool_context;
mod walk;
mod write;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use retake_model::path::TreePath;
use serde_json::Value;

use crate::cancel::Cancel;

pub use denied_paths::DeniedPaths;
pub(crate) use denied_paths::{CaseSensitivity, PathPattern};
pub use retake_model::approval::TOOLS_VERSION as VERSION;
pub(crate) use tool_context::tool_path;
pub use tool_context::{Limits, PathError, ToolContext, ToolPath};

/// A tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Description for the model.
    pub description: &'static str,
    /// Its maximum access.
    pub access: ToolAccess,
    schema: fn() -> Value,
    run: ToolFn,
}

type ToolFn = fn(&Value, &mut ToolRun<'_>) -> Result<Output, ToolError>;

/// The maximum access of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// Reads only.
    Reads,
    /// Writes the file that its call names.
    Writes,
    /// Runs a command, which may change anything.
    Runs,
}

/// The paths that a call may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TouchedPaths {
    /// None.
    Nothing,
    /// These files, and new folders for them.
    Paths(Vec<TreePath>),
    /// Unknown.
    Anything,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id from the provider.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
}

/// The output of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The text for the model, limited in length.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
    /// The full text, if `text` was cut.
    pub whole: Option<Vec<u8>>,
    /// Images for the model.
    pub images: Vec<Image>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its media type, such as `image/png`.
    pub media: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Progress of a running call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Completed fraction between 0 and 1, if known.
    pub fraction: Option<f64>,
    /// Current activity; may be empty.
    pub message: String,
    /// Processed units, if counted.
    pub units: Option<Units>,
    /// Output since the last report; may contain any character.
    pub chunk: String,
}

/// Processed units of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Number of units.
    pub processed: u64,
    /// Name of the unit in plural, such as `files`.
    pub name: &'static str,
}

/// All tools, in the order sent to models.
pub fn all() -> &'static [Tool] {
    &[read::TOOL, write::TOOL, edit::TOOL, list::TOOL, glob::TOOL, search::TOOL, shell::TOOL]
}

/// Finds a tool by name.
pub fn find(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

/// Whether a tool can change files.
pub(crate) fn may_write(name: &str) -> bool {
    find(name).is_some_and(|tool| tool.access != ToolAccess::Reads)
}

/// The JSON schema of a tool's input.
pub fn schema(tool: &Tool) -> Value {
    (tool.schema)()
}

/// The paths that a call may change in a folder. A path that will be refused changes nothing.
pub fn touched_paths(call: &Call, directory: &Path) -> TouchedPaths {
    match find(&call.name).map(|tool| tool.access) {
        None | Some(ToolAccess::Reads) => TouchedPaths::Nothing,
        Some(ToolAccess::Runs) => TouchedPaths::Anything,
        Some(ToolAccess::Writes) => {
            match named_path(call).map(|path| tool_context::tool_path(path, directory)) {
                Some(Ok(ToolPath::Below(path))) => TouchedPaths::Paths(vec![path]),
                _ => TouchedPaths::Nothing,
            }
        }
    }
}

/// Removes temporary files of a call whose process was killed.
pub(crate) fn sweep(call: &Call, context: &ToolContext, process: u32) {
    if let TouchedPaths::Paths(paths) = touched_paths(call, &context.directory) {
        for path in &paths {
            write::sweep(context, path, process);
        }
    }
}

/// Runs a call. Never panics or fails: errors are in the output.
pub fn run(
    call: &Call,
    context: &ToolContext,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Output {
    let Some(tool) = find(&call.name) else {
        let names: Vec<_> = all().iter().map(|tool| tool.name).collect();
        return Output::failure(format!(
            "There is no tool {:?}. There are: {}.",
            call.name,
            names.join(", ")
        ));
    };
    if cancel.is_set() {
        return Output::failure(INTERRUPTED.to_owned());
    }
    let mut run = ToolRun { tool: tool.name, context, cancel, progress: RefCell::new(progress) };
    // A bug in a tool must not abort the turn and lose unpublished results.
    match catch_unwind(AssertUnwindSafe(|| (tool.run)(&call.input, &mut run))) {
        Ok(Ok(output)) => output,
        Ok(Err(ToolError(text))) => Output::failure(text),
        Err(_) => Output::failure(format!("The tool {} failed unexpectedly. Try another way.", tool.name)),
    }
}

const INTERRUPTED: &str = "Interrupted before it was done.";

/// The path argument of a call, if any.
pub(crate) fn named_path(call: &Call) -> Option<&str> {
    call.input.get("path").and_then(Value::as_str)
}

/// The execution of a call.
struct ToolRun<'a> {
    tool: &'static str,
    context: &'a ToolContext,
    cancel: &'a Cancel,
    progress: RefCell<&'a mut dyn FnMut(Progress)>,
}

/// Why a tool failed, as text for the model.
#[derive(Debug)]
struct ToolError(String);

impl<Error: std::error::Error> From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            source = inner.source();
        }
        Self(text)
    }
}

impl ToolRun<'_> {
    /// Parses a path and checks that it is not denied.
    fn tool_path(&self, text: &str) -> Result<ToolPath, PathError> {
        let tool_path = self.context.tool_path(text)?;
        match &tool_path {
            ToolPath::Below(path) if self.is_denied(&path.bytes()) => {
                Err(PathError::Closed(tool_context::shorten(text)))
            }
            _ => Ok(tool_path),
        }
    }

    /// The same for a path below the folder.
    fn path(&self, text: &str) -> Result<TreePath, PathError> {
        match self.tool_path(text)? {
            ToolPath::Root => Err(PathError::Root),
            ToolPath::Below(path) => Ok(path),
        }
    }

    /// Whether a path is denied to this tool.
    fn is_denied(&self, path: &[u8]) -> bool {
        self.context.denied_paths.holds(self.tool, path)
    }

    /// The symlink policy.
    fn links(&self) -> openat::SymlinkPolicy {
        let any = self.context.denied_paths.concerns(self.tool);
        if any { openat::SymlinkPolicy::Refuse } else { openat::SymlinkPolicy::Follow }
    }

    fn report(&self, progress: Progress) {
        (self.progress.borrow_mut())(progress);
    }

    /// Fails if the call was cancelled.
    fn check_cancel(&self) -> Result<(), ToolError> {
        if self.cancel.is_set() { Err(ToolError(INTERRUPTED.to_owned())) } else { Ok(()) }
    }
}

impl Output {
    fn success(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    fn failure(text: String) -> Self {
        Self { text, failed: true, ..Self::default() }
    }
}
