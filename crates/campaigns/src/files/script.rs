//! The script of commands that move files, with hand edits in between.

/// One command of the script.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// A shell script with hand edits that runs before the command.
    pub by_hand: Option<&'static str>,
    /// Arguments of `retake`.
    pub arguments: &'static [&'static str],
    /// The current folder, relative to the world.
    pub place: &'static str,
    /// How faults may affect it.
    pub nature: CommandKind,
}

/// How faults may affect a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Conversation and files move together, or not at all.
    Whole,
    /// It runs a program that changes files. If they are not recorded, the next snapshot finds them.
    Runs,
    /// It fills a new folder, which belongs to no take until the end.
    Opens,
    /// It removes a folder completely or not at all, after the next command at the latest.
    Closes,
}

/// The folder of the project.
pub const PROJECT: &str = "project";

/// The folder of the worktree.
pub const WORKTREE_FOLDER: &str = "worktree";

pub(super) const fn step(arguments: &'static [&'static str]) -> Step {
    Step { by_hand: None, arguments, place: PROJECT, nature: CommandKind::Whole }
}

pub(super) const fn hand(by_hand: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { by_hand: Some(by_hand), ..step(arguments) }
}

const fn run(line: &'static [&'static str]) -> Step {
    Step { nature: CommandKind::Runs, ..step(line) }
}

/// The initial files, as a shell script.
pub const INITIAL_FILES: &str = "\
printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > code.rs
mkdir -p src/deep empty && printf 'deep\\n' > src/deep/file.txt && printf 'lib\\n' > src/lib.rs
printf '#!/bin/sh\\necho hello\\n' > tool.sh && chmod 755 tool.sh
ln -s src/lib.rs link
printf 'big' > big && head -c 150000 /dev/zero | tr '\\0' 'x' >> big
";

/// More files than are synced individually.
const MANY_FILES: &str = "mkdir many; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $n > many/$n; echo $n > m$n; done; mv src moved; echo x >> code.rs; sync -f .";

/// The script. Programs end with a sync, because unsynced files may be lost in a power cut before their end is
/// recorded. The power cuts also run it without that sync and cut after the record. It starts with a conversation
/// without files.
pub const SCRIPT: &[Step] = &[
    step(&["snapshot", "take"]),
    step(&["entry", "add", "Tidy up, please."]),
    run(&[
        "exec",
        "--",
        "sh",
        "-c",
        "sed -i s/two/TWO/ code.rs; rm -r empty; echo new > new.txt; chmod 700 tool.sh; sync -f .",
    ]),
    step(&["undo"]),
    step(&["redo"]),
    // The user edits the same file elsewhere, and another file.
    hand("echo six >> code.rs; echo mine > mine.txt", &["undo"]),
    step(&["redo"]),
    run(&["exec", "--", "sh", "-c", MANY_FILES]),
    step(&["undo"]),
    step(&["redo"]),
    hand("echo late > many/late; ln -sf tool.sh link", &["undo"]),
    step(&["entry", "add", "Once more."]),
    run(&[
        "exec",
        "--by",
        "agent",
        "--",
        "sh",
        "-c",
        "rm -r src; echo flat > src; rm link; mkdir link; echo in > link/in; sync -f .",
    ]),
    step(&["undo"]),
    step(&["jump", "2"]),
    hand("chmod 600 big; echo more >> mine.txt", &["restore", "5"]),
    step(&["restore", "11", "code.rs", "many"]),
    step(&["take", "branch", "1"]),
    run(&[
        "exec",
        "--",
        "sh",
        "-c",
        "echo branch > branch.txt; sed -i s/three/THREE/ code.rs; rm -f big; sync -f .",
    ]),
    step(&["take", "switch", "main"]),
    step(&["take", "switch", "main_take_1"]),
    hand("echo hand >> code.rs", &["take", "fork", "1"]),
    step(&["take", "switch", "main"]),
    Step { nature: CommandKind::Opens, ..step(&["worktree", "add", "main_take_1", "../worktree"]) },
    Step {
        place: WORKTREE_FOLDER,
        ..run(&["exec", "--", "sh", "-c", "echo apart > apart.txt; rm branch.txt; sync -f ."])
    },
    Step { place: WORKTREE_FOLDER, ..step(&["undo"]) },
    Step { place: WORKTREE_FOLDER, ..step(&["redo"]) },
    Step { nature: CommandKind::Closes, ..step(&["worktree", "remove", "main_take_1", "--delete-files"]) },
    step(&["take", "switch", "main_take_1"]),
    step(&["take", "delete", "main_take_1"]),
    step(&["undo"]),
    step(&["gc", "--yes", "--grace", "0"]),
    step(&["undo", "3"]),
    step(&["redo", "3"]),
];
