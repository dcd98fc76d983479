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
    (
        "agent.sh",
        "# What an agent might do through the shell.\nrm theme.css\nsed -i 's/light/dark/' settings.js\nmkdir -p server && echo 'cookies' > server/cookies.js\n",
    ),
];

pub(super) const WELCOME: &str =
    "Every command below is real, in a project made for this tour. Nothing of yours is touched.";

pub(super) const TOUR: &[Scene] = &[
    scene("A conversation is a thread.", &["thread", "new", "Dark mode"]),
    scene(
        "You ask, the assistant answers. (Agents come later; here the answers are typed.)",
        &["entry", "add", "Give the settings page a dark mode."],
    ),
    scene(
        "",
        &["entry", "add", "--role", "AI", "I will keep the choice in a cookie and read it on the server."],
    ),
    scene("", &["entry", "add", "Good. Now write the toggle."]),
    look(
        "The agent works through the shell. Whatever it does to files is one change on the same timeline.",
        &["exec", "--", "sh", "agent.sh"],
    ),
    scene("", &["entry", "add", "--role", "AI", "Done. I also deleted theme.css, since nothing uses it."]),
    shell(
        "Meanwhile you change a line of the same file yourself.",
        "sed -i 's/font: 14/font: 16/' settings.js",
    ),
    look("It went wrong: the page has no server, and theme.css was in use.", &["thread", "show"]),
    look("So take back what it said and what it did. First only look:", &["undo", "2", "--dry-run"]),
    look("then do it. Your own line is merged, not lost.", &["undo", "2"]),
    shell("", "ls && cat settings.js"),
    look("Who wrote which line?", &["blame", "settings.js"]),
    look("It can all be made again, the files too.", &["redo", "2"]),
    scene(
        "Do not argue with it. Correct what it said, and from now on that is what it said.",
        &["entry", "edit", "2", "I will keep the choice in the browser and apply it before the first paint."],
    ),
    scene("Give this moment a name.", &["save", "before the retry"]),
    scene(
        "Then go back to your second message and try again. The first attempt stays, as another take, with its files.",
        &["take", "fork", "3", "--name", "retry"],
    ),
    scene("", &["entry", "add", "Now write the toggle, and touch nothing else."]),
    scene("", &["entry", "add", "--role", "AI", "Done. One toggle in settings.js; theme.css is as it was."]),
    look("Both takes share what came before the fork; nothing was copied.", &["tree"]),
    shell("The files are those from before the agent's work,", "ls"),
    scene("and the other take still has its own.", &["take", "switch", "main"]),
    shell("", "ls"),
    scene("", &["take", "switch", "retry"]),
    look("Compare them: this is how the first take ended,", &["entry", "show", "last", "--take", "main"]),
    look("and this is how the second did.", &["entry", "show", "last", "--take", "retry"]),
    scene("Everything can be taken back. A slip of the finger:", &["reset", "--yes"]),
    scene("One undo, and all takes are as they were.", &["undo"]),
    scene("Undo goes as far back as you like,", &["undo", "4"]),
    scene("redo comes forward again,", &["redo", "4"]),
    look("and the log only grows: what was undone is still there.", &["history", "--limit", "6"]),
    scene("So any moment can be gone back to, by number or by name,", &["jump", "before the retry"]),
    scene("and left again the same way.", &["jump", "16"]),
    look("Months later, find what was said about a file, in any take.", &["search", "theme.css"]),
    look(
        "Each change was on disk before its command came back, so pulling the plug loses none. Check every byte:",
        &["verify"],
    ),
];

pub(super) const NEXT: &[(&str, &str)] = &[
    ("thread new \"My first thread\"", "in a project of yours"),
    ("entry add", "write in your editor"),
    ("entry edit last", "change what was said"),
    ("take fork last", "try a message again"),
    ("tree", "see all takes"),
    ("run -- COMMAND", "let an agent work, so that it can be undone"),
    ("diff, log, blame, status", "see what changed, and who did it"),
    ("take open NAME --apart", "two takes alive at once"),
    ("undo, redo, history, jump", "move through time"),
    ("export", "take a thread elsewhere"),
    ("config", "what can be set"),
    ("--help", "all commands"),
];
