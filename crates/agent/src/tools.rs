//! What a model can do in a folder.
//!
//! ```text
//!   read · list · glob · search      look            nothing changes
//!   write · edit                     write a file    one path, which the call names
//!   shell                            runs            anything may change
//! ```
//!
//! A call is data from a model, and a model repeats what it has read: a path may lead out of the folder, a link may
//! have been planted by the call before. Paths become [`TreePath`]s first, which cannot lead out, and are then
//! walked by descriptor (`beneath.rs`), so that what is swapped meanwhile leads nowhere else.
//!
//! A tool that fails is no error of the program: it is an output that tells the model what to do instead.

mod beneath;
mod closed;
mod edit;
mod glob;
mod input;
mod interruptible;
mod list;
mod read;
mod room;
mod rules;
mod search;
mod shell;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod write;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use retake_model::path::TreePath;
use serde_json::Value;

use crate::cancel::Cancel;

pub use closed::Closed;
pub(crate) use closed::{Case, PathPattern};
pub use retake_model::approval::TOOLS_VERSION as VERSION;
pub(crate) use room::spot;
pub use room::{Limits, PathRefused, Room, Spot};

/// Something that a model can ask for.
#[derive(Debug)]
pub struct Tool {
    /// What it is called.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// What it can touch at most.
    pub reach: Reach,
    schema: fn() -> Value,
    run: Run,
}

type Run = fn(&Value, &mut Bench<'_>) -> Result<Output, Failure>;

/// What a tool can touch at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It only looks.
    Reads,
    /// It writes the file that its call names.
    Writes,
    /// It runs a command, which may do anything.
    Runs,
}

/// What one call can touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touches {
    /// Nothing is changed.
    Nothing,
    /// These files, and folders that have to be made for them.
    Paths(Vec<TreePath>),
    /// There is no telling.
    Anything,
}

/// One call, as a model made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What the provider calls it.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With what.
    pub input: Value,
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What the model sees; capped.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
    /// All of it, where the text had to be cut.
    pub whole: Option<Vec<u8>>,
    /// Images, which go beside the text.
    pub images: Vec<Image>,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its kind, such as `image/png`.
    pub media: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What can be told while a call runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How far it is, between 0 and 1, where that is known.
    pub fraction: Option<f64>,
    /// What it is doing; may be empty.
    pub message: String,
    /// How much it has processed, where it counts.
    pub units: Option<Units>,
    /// What a command wrote since the last time; may be empty, and may hold any character.
    pub chunk: String,
}

/// How much a call has processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// How many.
    pub processed: u64,
    /// Of what, in the plural, such as `files`.
    pub name: &'static str,
}

/// All tools, in the order in which a model is told about them.
pub fn all() -> &'static [Tool] {
    &[read::TOOL, write::TOOL, edit::TOOL, list::TOOL, glob::TOOL, search::TOOL, shell::TOOL]
}

/// The tool of that name.
pub fn find(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

/// The JSON schema of a tool's input.
pub fn schema(tool: &Tool) -> Value {
    (tool.schema)()
}

/// What a call can touch, in the folder at that path. A path that will be refused touches nothing.
pub fn touches(call: &Call, directory: &Path) -> Touches {
    match find(&call.name).map(|tool| tool.reach) {
        None | Some(Reach::Reads) => Touches::Nothing,
        Some(Reach::Runs) => Touches::Anything,
        Some(Reach::Writes) => match named_path(call).map(|path| room::spot(path, directory)) {
            Some(Ok(Spot::Below(path))) => Touches::Paths(vec![path]),
            _ => Touches::Nothing,
        },
    }
}

/// Removes what a call left that a process of that number did not live to end.
pub(crate) fn sweep(call: &Call, room: &Room, process: u32) {
    if let Touches::Paths(paths) = touches(call, &room.directory) {
        for path in &paths {
            write::sweep(room, path, process);
        }
    }
}

/// Carries a call out. It neither panics nor fails: whatever goes wrong is in the output.
pub fn run(call: &Call, room: &Room, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Output {
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
    let mut bench = Bench { tool: tool.name, room, cancel, progress: RefCell::new(progress) };
    // A defect in a tool must not take the turn with it, nor what the turn has not yet published.
    match catch_unwind(AssertUnwindSafe(|| (tool.run)(&call.input, &mut bench))) {
        Ok(Ok(output)) => output,
        Ok(Err(Failure(text))) => Output::failure(text),
        Err(_) => Output::failure(format!("The tool {} broke down. Try another way.", tool.name)),
    }
}

const INTERRUPTED: &str = "Interrupted before it was done.";

/// The path that a call names, if it names one.
pub(crate) fn named_path(call: &Call) -> Option<&str> {
    call.input.get("path").and_then(Value::as_str)
}

/// What a tool works with.
struct Bench<'a> {
    tool: &'static str,
    room: &'a Room,
    cancel: &'a Cancel,
    progress: RefCell<&'a mut dyn FnMut(Progress)>,
}

/// Why a tool did not do it, in words for the model.
#[derive(Debug)]
struct Failure(String);

impl<Error: std::error::Error> From<Error> for Failure {
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

impl Bench<'_> {
    /// What a text means as a path, unless that is closed.
    fn spot(&self, text: &str) -> Result<Spot, PathRefused> {
        let spot = self.room.spot(text)?;
        match &spot {
            Spot::Below(path) if self.is_closed(&path.bytes()) => {
                Err(PathRefused::Closed(room::shortened(text)))
            }
            _ => Ok(spot),
        }
    }

    /// The same, where only something below the folder will do.
    fn path(&self, text: &str) -> Result<TreePath, PathRefused> {
        match self.spot(text)? {
            Spot::Root => Err(PathRefused::Root),
            Spot::Below(path) => Ok(path),
        }
    }

    /// Whether a path is closed to this tool.
    fn is_closed(&self, path: &[u8]) -> bool {
        self.room.closed.holds(self.tool, path)
    }

    /// Whether links may be followed.
    fn links(&self) -> beneath::Links {
        let any = self.room.closed.concerns(self.tool);
        if any { beneath::Links::Refuse } else { beneath::Links::Follow }
    }

    /// Reports progress to the caller of the tool.
    fn report(&self, progress: Progress) {
        (self.progress.borrow_mut())(progress);
    }

    /// Between two steps of something long.
    fn check_cancel(&self) -> Result<(), Failure> {
        if self.cancel.is_set() { Err(Failure(INTERRUPTED.to_owned())) } else { Ok(()) }
    }
}

impl Output {
    /// Something that went as it should.
    fn success(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// Something that did not.
    fn failure(text: String) -> Self {
        Self { text, failed: true, ..Self::default() }
    }
}
