//! Lists that are empty: standard output has no line, and a note names the next command.

use crate::support::Sandbox;

#[test]
fn an_empty_list_names_the_next_command() {
    let sandbox = Sandbox::new();
    let check = |arguments: &[&str], next: &str| {
        let output = sandbox.run(arguments);
        let (text, notes) = (&output.stdout, &output.stderr);
        assert_eq!(output.code, 0, "{arguments:?}: {notes}");
        assert_eq!(text, "", "{arguments:?}");
        assert!(notes.contains(next) && notes.contains('`'), "{arguments:?}: {notes}");
        // A program gets an empty list and no note.
        let json = [arguments, &["--json"]].concat();
        assert_eq!(sandbox.run(&json).stderr, "", "{arguments:?}");
    };
    check(&["project", "list"], "retake project init");
    check(&["thread", "list"], "retake thread new");
    check(&["thread", "list", "--deleted"], "retake thread list");
    check(&["tree"], "retake thread new");
    check(&["search", "nothing"], "--all");
    // Other commands need a thread, and say so.
    for arguments in [
        &["history"][..],
        &["turns"],
        &["take", "list"],
        &["worktree", "list"],
        &["snapshot", "list"],
        &["show"],
    ] {
        let (code, error) = sandbox.refused(arguments);
        assert_eq!(code, 3, "{arguments:?}");
        assert!(error.to_string().contains("retake thread new"), "{arguments:?}: {error}");
    }
    sandbox.done(&["thread", "new", "Empty"]);
    check(&["turns"], "retake run");
    check(&["worktree", "list"], "retake worktree add");
    check(&["snapshot", "list"], "retake snapshot take");
    check(&["save", "--list"], "retake save NAME");
    check(&["context", "list"], "retake context add");
    check(&["context", "preset", "list"], "retake context preset save");
    check(&["draft", "show"], "retake draft set");
    check(&["trace"], "retake run");
    check(&["search", "nothing", "--all"], "--history");
}
