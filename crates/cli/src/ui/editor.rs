//! Edits text in the user's editor.
//!
//! The text is in a file that only its owner can read, in a separate folder, because editors put backups and swap files
//! next to it. User input is never lost: if the editor fails after saving, or saves invalid UTF-8, the file remains and
//! the error names it.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tempfile::TempDir;

use super::command::{CommandSyntaxError, Environment, Program, ProgramChoice};
use super::signals::Foreground;

/// Markdown, so that the editor highlights it.
const FILE: &str = "RETAKE_EDIT.md";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditOutcome {
    Changed(String),
    /// The user did not change the text.
    Unchanged,
}

/// The editor returned no new text; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error(transparent)]
    CommandSyntaxError(#[from] CommandSyntaxError),
    #[error("editor {editor:?} not found; set RETAKE_EDITOR, VISUAL or EDITOR to an installed one")]
    Missing { editor: String },
    #[error("editor {editor:?} cannot be started")]
    Start { editor: String, source: io::Error },
    #[error("the editor failed ({status}); nothing was changed{}", saved_location(.kept.as_deref()))]
    Failed { status: ExitStatus, kept: Option<PathBuf> },
    #[error("the edited text is not valid UTF-8 (byte {offset}); nothing was changed{}", saved_location(Some(.kept)))]
    NotText { offset: usize, kept: PathBuf },
    #[error("cannot access the editor's file")]
    File(#[from] io::Error),
}

fn saved_location(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!("; your text is in {}", path.display()))
}

/// Opens the text in the editor that the environment names.
pub(crate) fn edit(text: &str, environment: &impl Environment) -> Result<EditOutcome, EditError> {
    let editor = choose(environment)?;
    let folder =
        tempfile::Builder::new().prefix("retake-").permissions(Permissions::from_mode(0o700)).tempdir()?;
    let path = folder.path().join(FILE);
    write_private(&path, text)?;

    let foreground = Foreground::begin()?;
    let mut child = editor.command().arg(&path).spawn().map_err(|source| {
        let editor = editor.name().to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => EditError::Missing { editor },
            _ => EditError::Start { editor, source },
        }
    })?;
    let (initial, place) = (text.to_owned(), folder.path().to_owned());
    foreground.on_termination(move || keep_on_signal(&initial, &place));
    foreground.started(child.id());
    let status = child.wait()?;
    foreground.end();
    if !status.success() {
        let saved = fs::read(&path).is_ok_and(|saved| saved != text.as_bytes());
        let kept = saved.then(|| keep(folder, &path));
        return Err(EditError::Failed { status, kept });
    }
    let saved = match String::from_utf8(fs::read(&path)?) {
        Ok(saved) => saved,
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            return Err(EditError::NotText { offset, kept: keep(folder, &path) });
        }
    };
    let saved = without_added_newline(text, saved);
    Ok(if saved == text { EditOutcome::Unchanged } else { EditOutcome::Changed(saved) })
}

fn choose(environment: &impl Environment) -> Result<Program, CommandSyntaxError> {
    for name in ["RETAKE_EDITOR", "VISUAL", "EDITOR"] {
        // Some systems set blank variables; treat them as unset.
        if let Some(ProgramChoice::Program(program)) = Program::from_variables(&[name], environment)? {
            return Ok(program);
        }
    }
    Ok(Program::named("vi"))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn keep(folder: TempDir, path: &Path) -> PathBuf {
    // The file must survive, because the error message names it.
    let _ = folder.keep();
    path.to_owned()
}

/// Runs when a signal ends the program while the editor is open: keeps only files with user input.
fn keep_on_signal(initial: &str, folder: &Path) {
    let path = folder.join(FILE);
    let saved = fs::read(&path).is_ok_and(|saved| saved != initial.as_bytes());
    let others = fs::read_dir(folder).is_ok_and(|names| names.count() > 1);
    if saved || others {
        let shown = if saved { path.as_path() } else { folder };
        // The terminal may already be closed.
        let _ = writeln!(io::stderr(), "Ended by a signal; your text is in {}", shown.display());
    } else {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Editors append a final newline; one that the text did not have is not an edit.
fn without_added_newline(before: &str, mut saved: String) -> String {
    if !before.ends_with('\n') && saved.ends_with('\n') {
        saved.pop();
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_script(text: &str, script: &str) -> Result<EditOutcome, EditError> {
        // `sh -c SCRIPT sh PATH`: the script sees the file as $1.
        let command = format!("sh -c '{script}' sh");
        edit(text, &|name: &str| (name == "EDITOR").then(|| command.clone()))
    }

    #[test]
    fn edited_text_is_returned() {
        for (before, script, wanted) in [
            ("old", r#"printf "new" > "$1""#, EditOutcome::Changed("new".to_owned())),
            ("old", r#"printf "new\n" > "$1""#, EditOutcome::Changed("new".to_owned())),
            ("old\n", r#"printf "new\n" > "$1""#, EditOutcome::Changed("new\n".to_owned())),
            ("old", "true", EditOutcome::Unchanged),
            ("old", r#"echo >> "$1""#, EditOutcome::Unchanged),
            ("old", r#": > "$1""#, EditOutcome::Changed(String::new())),
            ("a\n", r#"test "$(cat "$1")" = a && printf b > "$1""#, EditOutcome::Changed("b".to_owned())),
        ] {
            assert_eq!(with_script(before, script).expect("the editor succeeds"), wanted, "{script}");
        }
    }

    #[test]
    fn the_file_is_private() {
        let script =
            r#"stat -c "%a %n" "$1" "$(dirname "$1")" | cut -d" " -f1 > "$1.modes"; cp "$1.modes" "$1""#;
        let edited = with_script("secret", script).expect("the editor succeeds");
        assert_eq!(edited, EditOutcome::Changed("600\n700".to_owned()));
    }

    #[test]
    fn a_failing_editor_changes_nothing_and_loses_nothing() {
        let error = with_script("old", "exit 3").expect_err("the editor failed");
        assert!(matches!(error, EditError::Failed { kept: None, .. }), "{error}");

        let error = with_script("old", r#"printf mine > "$1"; exit 3"#).expect_err("the editor failed");
        let EditError::Failed { kept: Some(path), .. } = &error else { panic!("{error}") };
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(path).expect("the text was kept"), "mine");
        fs::remove_dir_all(path.parent().expect("a folder of its own")).expect("cleaning up");
    }

    #[test]
    fn invalid_utf8_is_kept_in_a_file() {
        let error = with_script("old", r#"printf "ab\377" > "$1""#).expect_err("this is not UTF-8");
        let EditError::NotText { offset: 2, kept } = &error else { panic!("{error}") };
        fs::remove_dir_all(kept.parent().expect("a folder of its own")).expect("cleaning up");
    }

    #[test]
    fn a_missing_editor_is_named() {
        let error =
            edit("x", &|_: &str| Some("retake-no-such-editor --wait".to_owned())).expect_err("it is missing");
        assert!(
            matches!(&error, EditError::Missing { editor } if editor == "retake-no-such-editor"),
            "{error}"
        );
    }

    #[test]
    fn the_program_is_chosen_by_the_environment() {
        for (variables, wanted) in [
            (&[][..], "vi"),
            (&[("EDITOR", "nano")], "nano"),
            (&[("EDITOR", "nano"), ("VISUAL", "code --wait")], "code"),
            (&[("EDITOR", "nano"), ("VISUAL", " ")], "nano"),
            (&[("EDITOR", "nano"), ("RETAKE_EDITOR", "hx")], "hx"),
        ] {
            let environment = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            };
            assert_eq!(choose(&environment).expect("all are well formed").name(), wanted, "{variables:?}");
        }
    }
}
