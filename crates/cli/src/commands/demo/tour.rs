//! The steps of the tour: an explanation and a command each.

use std::time::Duration;

/// One step of the tour.
pub(super) struct Scene {
    /// One sentence of explanation; empty if the previous one covers this command.
    pub(super) why: &'static str,
    pub(super) typed: Input,
    /// How long to pause after the output.
    pub(super) shown: Duration,
}

const SHORT_PAUSE: Duration = Duration::from_millis(600);
const LONG_PAUSE: Duration = Duration::from_millis(2500);

pub(super) enum Input {
    /// Arguments of `retake`.
    Retake(&'static [&'static str]),
    /// A shell command.
    Shell(&'static str),
}

const fn scene(why: &'static str, arguments: &'static [&'static str]) -> Scene {
    Scene { why, typed: Input::Retake(arguments), shown: SHORT_PAUSE }
}

const fn look(why: &'static str, arguments: &'static [&'static str]) -> Scene {
    Scene { why, typed: Input::Retake(arguments), shown: LONG_PAUSE }
}

const fn shell(why: &'static str, line: &'static str) -> Scene {
    Scene { why, typed: Input::Shell(line), shown: SHORT_PAUSE }
}

/// The files of the project at the start.
pub(super) const FILES: &[(&str, &str)] = &[
    ("theme.css", "body {\n  color: black;\n  background: white;\n}\n"),
    ("settings.js", "export const settings = {\n  theme: \"light\",\n  language: \"en\",\n  font: 14,\n};\n"),
];

pub(super) const WELCOME: &str =
    "Every command below is real and runs in a project made for this tour. Your files are not touched.";

/// The first prompt, which asks for two mistakes.
const FIRST: &str = "\
edit settings.js: replace \"light\" with \"dark\"
run rm theme.css
create server/cookies.js with cookies
say Dark mode is done. I also deleted theme.css, since nothing uses it.";

/// The second prompt.
const SECOND: &str = "\
edit settings.js: replace \"light\" with \"dark\"
say Dark mode is done: one line in settings.js, and theme.css is as it was.";

pub(super) const TOUR: &[Scene] = &[
    look(
        "You ask, the agent works with real tools. (No key is needed: Retake's offline assistant answers. It is not a \
         model, and follows instructions literally, including wrong ones.)",
        &["run", "--approve", "all", FIRST],
    ),
    shell("Meanwhile, you edit the same file.", "sed -i 's/font: 14/font: 16/' settings.js"),
    look("The agent made mistakes: theme.css was in use, and no server was needed.", &["thread", "show"]),
    look("Undo the turn: its messages and its file changes. First, a preview:", &["undo", "--dry-run"]),
    look("Then the undo itself. Your own edit is kept, merged into the file.", &["undo"]),
    shell("", "ls && cat settings.js"),
    look("Redo brings it all back, including the files.", &["redo"]),
    look("Which turn wrote which line?", &["blame", "settings.js"]),
    scene(
        "Correct the answer instead of arguing: from now on, this is what the model said.",
        &["entry", "edit", "last", "Dark mode is done, but I should not have deleted theme.css."],
    ),
    scene("Name this version.", &["save", "before the retry"]),
    look(
        "Then retry the message with a better prompt. The first attempt stays, as another take with its own files.",
        &["retry", "1", SECOND, "--name", "careful", "--approve", "all"],
    ),
    shell("The files are those from before the first attempt, plus the changes of the second.", "ls"),
    look("Compare the two takes,", &["compare", "main", "careful"]),
    scene("switch to the first, with all its files,", &["take", "switch", "main"]),
    shell("", "ls"),
    scene("and back to the better one.", &["take", "switch", "careful"]),
    look("Both takes share their common entries; nothing was copied.", &["tree"]),
    scene("Everything can be undone, even an accidental reset:", &["reset", "--yes"]),
    scene("one undo restores all takes.", &["undo"]),
    look("The log only grows; undone operations are still listed,", &["history", "--limit", "8"]),
    scene("so you can jump to any version, by number or by name,", &["jump", "before the retry"]),
    scene("and back again.", &["redo", "3"]),
    look("The trace records every model request and tool call.", &["trace", "--last", "4"]),
    look("Months later, search all takes for what was said about a file.", &["search", "theme.css"]),
    look(
        "Every change was on disk before its command returned, so a power cut loses nothing. Check every byte:",
        &["verify"],
    ),
];

pub(super) const NEXT: &[(&str, &str)] = &[
    ("run \"What does this project do?\"", "in one of your projects"),
    ("models", "which models are ready, and what the others need"),
    ("chat", "an interactive conversation"),
    ("undo, redo, history, jump", "move through the history"),
    ("entry edit last", "edit a message"),
    ("retry, compare", "retry a message, and compare the results"),
    ("worktree add TAKE FOLDER", "work on two takes at once"),
    ("diff, log, blame, status", "see what changed, and who changed it"),
    ("exec -- COMMAND", "run another agent, undoably"),
    ("export", "move a thread to another machine"),
    ("config", "show all configuration keys"),
    ("--help", "all commands"),
];
