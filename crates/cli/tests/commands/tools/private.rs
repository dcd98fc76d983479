//! Only the owner can read the store, whatever the umask.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::tools::support::{User, command_output, everything_below};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Runs the program in a shell with this umask.
fn run(user: &User, umask: &str, arguments: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_retake")]);
    user.surround(command.args(arguments));
    let output = command_output(command.output().expect("a shell"));
    assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
}

#[test]
fn files_are_readable_only_by_their_owner() {
    for umask in ["000", "022", "077"] {
        let user = User::new();
        run(&user, umask, &["thread", "new", "Secret"]);
        run(&user, umask, &["entry", "add", "a secret"]);
        run(&user, umask, &["search", "secret"]);
        run(&user, umask, &["config", "set", "output.entries", "9"]);
        run(&user, umask, &["export", "-o", "secret.retake"]);
        run(&user, umask, &["verify"]);
        for root in ["store", "configuration"] {
            let below = everything_below(&user.path(root));
            assert!(below.len() > 1, "{root} has files");
            for path in below {
                let expected = if path.is_dir() { 0o700 } else { 0o600 };
                assert_eq!(mode(&path), expected, "umask {umask}: {}", path.display());
            }
        }
        assert_eq!(mode(&user.project().join("secret.retake")), 0o600);
    }
}
