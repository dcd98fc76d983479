//! What the tour shows, as data: why, and which command.

use std::time::Duration;

/// One command of the tour.
pub(super) struct Scene {
    /// Why it matters, in one sentence. Empty where the command goes with the one before it.
    pub(super) why: &'static str,
    /// What is typed.
    pub(super) typed: Typed,
    /// How long its output stays alone on the screen.
    pub(super) shown: Duration,
}

const GLANCE: Duration = Duration::from_millis(600);
const LOOK: Duration = Duration::from_millis(2500);

/// What is typed in a scene.
pub(super) enum Typed {
    /// After `retake`.
    Retake(&'static [&'static str]),
    /// A line for the shell.
    Shell(&'static str),
}

const fn scene(why: &'static str, arguments: &'static [&'static str]) -> Scene {
    Scene { why, typed: Typed::Retake(arguments), shown: GLANCE }
}

const fn look(why: &'static str, arguments: &'static [&'static str]) -> Scene {
    Scene { why, typed: Typed::Retake(arguments), shown: LOOK }
}

const fn shell(why: &'static str, line: &'static str) -> Scene {
    Scene { why, typed: Typed::Shell(line), shown: GLANCE }
}

/// The files of the project when the tour begins.
pub(super) const FILES: &[(&str, &str)] = &[
    ("theme.css", "body {\n  color: black;\n  background: white;\n}\n"),
    ("settings.js", "export const settings = {\n  theme: \"light\",\n  language: \"en\",\n  font: 14,\n};\n"),
];

pub(super) const WELCOME: &str =
    "Every command below is real, in a project made for this tour. Nothing of yours is touched.";

/// What the agent is asked first, and what it does wrong.
const FIRST: &str = "\
edit settings.js: replace \"light\" with \"dark\"
run rm theme.css
create server/cookies.js with cookies
say Dark mode is done. I also deleted theme.css, since nothing uses it.";

/// What it is asked the second time.
const SECOND: &str = "\
edit settings.js: replace \"light\" with \"dark\"
say Dark mode is done: one line in settings.js, and theme.css is as it was.";

pub(super) const TOUR: &[Scene] = &[
    look(
        "You ask, the agent works with real tools. (No key is needed here: Retake's own assistant answers. It is no \
         model, and does just what it is told, wrong things too.)",
        &["run", "--approve", "all", FIRST],
    ),
    shell(
        "Meanwhile you change a line of the same file yourself.",
        "sed -i 's/font: 14/font: 16/' settings.js",
    ),
    look("It went wrong: theme.css was in use, and nobody wanted a server.", &["thread", "show"]),
    look("So take back what it said and what it did. First only look:", &["undo", "--dry-run"]),
    look("then do it. Your own line is merged, not lost.", &["undo"]),
    shell("", "ls && cat settings.js"),
    look("It can all be made again, the files too.", &["redo"]),
    look("Who wrote which line?", &["blame", "settings.js"]),
    scene(
        "Do not argue with it. Correct what it said, and from now on that is what it said.",
        &["entry", "edit", "last", "Dark mode is done, but I should not have deleted theme.css."],
    ),
    scene("Give this moment a name.", &["save", "before the retry"]),
    look(
        "Then try the message again, said better. The first attempt stays, as another take, with its files.",
        &["retry", "1", SECOND, "--name", "careful", "--approve", "all"],
    ),
    shell("The files are those from before the agent's first work, with its second.", "ls"),
    look("Put the two side by side,", &["compare", "main", "careful"]),
    scene("go back to the first with all its files,", &["take", "switch", "main"]),
    shell("", "ls"),
    scene("and keep the better one.", &["take", "switch", "careful"]),
    look("Both takes share what came before they parted; nothing was copied.", &["tree"]),
    scene("Everything can be taken back. A slip of the finger:", &["reset", "--yes"]),
    scene("One undo, and all takes are as they were.", &["undo"]),
    look("The log only grows: what was undone is still there,", &["history", "--limit", "8"]),
    scene("so any moment can be gone back to, by number or by name.", &["jump", "before the retry"]),
    scene("And left again.", &["redo", "3"]),
    look("What was said to the model is written down too.", &["comms", "--last", "4"]),
    look("Months later, find what was said about a file, in any take.", &["search", "theme.css"]),
    look(
        "Each change was on disk before its command came back, so pulling the plug loses none. Check every byte:",
        &["verify"],
    ),
];

pub(super) const NEXT: &[(&str, &str)] = &[
    ("run \"What does this project do?\"", "in a project of yours"),
    ("models", "who can answer, and what is missing for the others"),
    ("chat", "a conversation, line by line"),
    ("undo, redo, history, jump", "move through time"),
    ("entry edit last", "change what was said"),
    ("retry, compare", "try a message again, and see which is better"),
    ("take open NAME --apart", "two takes alive at once"),
    ("diff, log, blame, status", "see what changed, and who did it"),
    ("exec -- COMMAND", "let another agent work, so that it can be undone"),
    ("export", "take a thread elsewhere"),
    ("config", "what can be set"),
    ("--help", "all commands"),
];
