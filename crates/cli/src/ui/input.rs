//! Reads entry content from an argument, a file, a pipe or the editor.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::command::Environment;
use super::editor::{EditError, EditOutcome, edit};
use crate::files::open_regular;

/// The maximum size of an entry. Larger content belongs in files.
pub(crate) const MAX_CONTENT_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Argument(String),
    /// `--file PATH`.
    File(PathBuf),
    /// `--file -`: standard input, even if empty.
    Stdin,
    /// Piped input of a command without content arguments.
    Pipe,
    /// The editor, starting with this text.
    Editor {
        initial: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    Terminal,
    Piped,
}

impl Stdin {
    pub(crate) fn detect() -> Self {
        if io::stdin().is_terminal() { Self::Terminal } else { Self::Piped }
    }
}

/// No content; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("content given twice: as an argument and with --file")]
    Twice,
    #[error("no content: pass it as an argument, with --file, or through a pipe")]
    Nothing,
    #[error("{from} exceeds 64 MiB, the maximum size of an entry")]
    TooLarge { from: String },
    #[error("{from} is not valid UTF-8 (byte {offset})")]
    NotText { from: String, offset: usize },
    #[error("{from} cannot be read")]
    Unreadable { from: String, source: io::Error },
    #[error(transparent)]
    Editor(#[from] EditError),
}

impl Source {
    /// Selects the source from the command line. `initial` is the editor's initial text.
    pub(crate) fn choose(
        argument: Option<String>,
        file: Option<PathBuf>,
        stdin: Stdin,
        initial: &str,
    ) -> Result<Self, InputError> {
        match (argument, file, stdin) {
            (Some(_), Some(_), _) => Err(InputError::Twice),
            (Some(text), None, _) => Ok(Self::Argument(text)),
            (None, Some(path), _) if path == Path::new("-") => Ok(Self::Stdin),
            (None, Some(path), _) => Ok(Self::File(path)),
            (None, None, Stdin::Piped) => Ok(Self::Pipe),
            (None, None, Stdin::Terminal) => Ok(Self::Editor { initial: initial.to_owned() }),
        }
    }

    /// Reads the content; `UnchangedFn` if the user left the editor without changes.
    pub(crate) fn read(
        self,
        stdin: impl Read,
        environment: &impl Environment,
    ) -> Result<EditOutcome, InputError> {
        match self {
            Self::Argument(text) => limited(text.into_bytes().as_slice(), MAX_CONTENT_BYTES, "the argument"),
            Self::File(path) => {
                let name = path.display().to_string();
                match open_regular(&path) {
                    Ok(file) => limited(file, MAX_CONTENT_BYTES, &name),
                    Err(source) => Err(InputError::Unreadable { from: name, source }),
                }
            }
            Self::Stdin => limited(stdin, MAX_CONTENT_BYTES, "standard input"),
            Self::Pipe => match limited(stdin, MAX_CONTENT_BYTES, "standard input")? {
                // For a script, missing input is more likely a mistake than an empty entry.
                text if text.is_empty() => Err(InputError::Nothing),
                text => Ok(text),
            },
            Self::Editor { initial } => {
                return match edit(&initial, environment)? {
                    EditOutcome::Changed(text) if text.len() as u64 > MAX_CONTENT_BYTES => {
                        Err(InputError::TooLarge { from: "the text".to_owned() })
                    }
                    edited => Ok(edited),
                };
            }
        }
        .map(EditOutcome::Changed)
    }
}

fn limited(from: impl Read, limit: u64, name: &str) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    // Reading one byte more distinguishes "too large" from "just fits" without reading everything.
    from.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| InputError::Unreadable { from: name.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge { from: name.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| InputError::NotText {
        from: name.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn no_environment(_: &str) -> Option<String> {
        None
    }

    fn text(edited: Result<EditOutcome, InputError>) -> String {
        match edited.expect("there is content") {
            EditOutcome::Changed(text) => text,
            EditOutcome::Unchanged => panic!("no editor was asked"),
        }
    }

    #[test]
    fn the_source_is_chosen_by_the_command_line() {
        let path = || Some(PathBuf::from("notes.md"));
        let text_argument = || Some("hi".to_owned());
        for (argument, file, stdin, wanted) in [
            (text_argument(), None, Stdin::Piped, Source::Argument("hi".to_owned())),
            (None, path(), Stdin::Piped, Source::File("notes.md".into())),
            (None, Some("-".into()), Stdin::Terminal, Source::Stdin),
            (None, None, Stdin::Piped, Source::Pipe),
            (None, None, Stdin::Terminal, Source::Editor { initial: "old".to_owned() }),
        ] {
            assert_eq!(Source::choose(argument, file, stdin, "old").expect("one source"), wanted);
        }
        assert!(matches!(
            Source::choose(text_argument(), path(), Stdin::Terminal, ""),
            Err(InputError::Twice)
        ));
    }

    #[test]
    fn content_is_read_from_its_source() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("notes.md");
        fs::write(&path, "from a file\n").expect("writing");
        assert_eq!(text(Source::File(path).read(io::empty(), &no_environment)), "from a file\n");
        assert_eq!(text(Source::Stdin.read(&b"piped"[..], &no_environment)), "piped");
        assert_eq!(text(Source::Stdin.read(io::empty(), &no_environment)), "");
        assert_eq!(text(Source::Argument("said".to_owned()).read(io::empty(), &no_environment)), "said");
        let editor = |_: &str| Some("sh -c 'printf edited > \"$1\"' sh".to_owned());
        assert_eq!(text(Source::Editor { initial: String::new() }.read(io::empty(), &editor)), "edited");
    }

    #[test]
    fn invalid_content_is_reported() {
        let error = Source::Pipe.read(io::empty(), &no_environment).expect_err("nothing is piped");
        assert!(matches!(error, InputError::Nothing));

        let error =
            Source::File("no/such/file".into()).read(io::empty(), &no_environment).expect_err("missing");
        assert_eq!(error.to_string(), "no/such/file cannot be read");

        let error = Source::Stdin.read(&b"ab\xff"[..], &no_environment).expect_err("not text");
        assert_eq!(error.to_string(), "standard input is not valid UTF-8 (byte 2)");
    }

    #[test]
    fn reading_stops_exactly_at_the_limit() {
        assert_eq!(limited(&b"1234"[..], 4, "it").expect("it just fits"), "1234");
        assert!(matches!(limited(&b"12345"[..], 4, "it"), Err(InputError::TooLarge { .. })));
        assert!(matches!(limited(io::repeat(b'x'), 4, "it"), Err(InputError::TooLarge { .. })));
    }
}
