//! `backup`, also killed at any moment while other processes write.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tools::support::User;

#[test]
fn a_backup_is_made_checked_and_opened() {
    let user = User::new();
    let error = user.refused(3, &["backup", "../none"]);
    assert!(error.contains("there is no store"), "{error}");
    assert!(!user.path("store").exists());
    user.talk("Fix the login");
    user.write("project/notes.md", b"first");
    user.run(&["snapshot", "take"]);
    let made = user.json(&["backup", "../backup"]);
    assert_eq!((&made["threads"], &made["missing"]), (&Value::from(1), &serde_json::json!([])));
    assert_eq!(
        made["path"],
        Value::from(user.path("backup").canonicalize().expect("a folder").to_string_lossy())
    );
    let checked = user.json(&["backup", "--verify", "../backup"]);
    assert_eq!(
        (&checked["clean"], &checked["file_problems"], &checked["store"]["threads"]),
        (&Value::from(true), &serde_json::json!([]), &Value::from(1))
    );
    assert!(user.run(&["backup", "--verify", "../backup"]).contains("clean"));
    assert!(user.refused(5, &["backup", "../backup"]).contains("already exists"));
    assert!(user.refused(5, &["backup", "../store/backup"]).contains("inside the store"));
    assert!(user.refused(6, &["backup", "--verify", "../store"]).contains("not a whole backup"));
    let shown = user.run(&["thread", "show"]);
    let restored = user.command().env("RETAKE_HOME", user.path("backup")).args(["thread", "show"]).output();
    assert_eq!(String::from_utf8_lossy(&restored.expect("the program starts").stdout), shown);
    let added =
        user.command().env("RETAKE_HOME", user.path("backup")).args(["entry", "add", "more"]).output();
    assert!(added.expect("the program starts").status.success());
    // It is a store now, and no longer the backup that was written.
    let output = user.try_run(&["backup", "--verify", "../backup"]);
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.out.contains("✗"), "{output:?}");
}

/// Whether `backup --verify` accepts this folder.
fn is_whole(user: &User, folder: &Path) -> bool {
    let output = user.command().args(["backup", "--verify", "--json"]).arg(folder).output();
    output.expect("the program starts").status.success()
}

struct EndsWriting<'flag>(&'flag AtomicBool);

impl Drop for EndsWriting<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Kills backups at moments spread over their whole duration while another process writes. The folder either does not
/// exist or is whole. The control takes what killed backups left for backups: the check must refuse those.
#[test]
fn a_killed_backup_leaves_nothing_that_looks_whole() {
    const KILLS: u32 = 24;
    let user = User::new();
    user.talk("Fix the login");
    for number in 0..400_u32 {
        let bytes = blake3::hash(&number.to_le_bytes()).as_bytes().repeat(400);
        user.write(&format!("project/file-{number}"), &bytes);
    }
    user.run(&["snapshot", "take"]);
    let begun = Instant::now();
    user.run(&["backup", "../first"]);
    let duration = begun.elapsed();
    assert!(is_whole(&user, &user.path("first")));
    let (mut killed, mut refused, mut finished) = (0, 0, 0);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while writing.load(Ordering::SeqCst) {
                user.run(&["entry", "add", "meanwhile"]);
            }
        });
        // Also ends the writer if an assertion fails.
        let _ends = EndsWriting(&writing);
        for kill in 0..KILLS {
            let to = user.path(&format!("backup-{kill}"));
            let mut child = user
                .command()
                .arg("backup")
                .arg(&to)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            std::thread::sleep(duration * kill / (KILLS - 4) + Duration::from_micros(500));
            let _ = child.kill();
            killed += u32::from(!child.wait().expect("it ends").success());
            let partial = user.path(&format!("backup-{kill}.retake-partial"));
            if to.exists() {
                assert!(is_whole(&user, &to), "kill {kill} left a half backup");
                finished += 1;
                continue;
            }
            if partial.exists() {
                let copy = user.path("looks-like-one");
                fs::rename(&partial, &copy).expect("a folder");
                // Just before it gets its name, it is whole.
                refused += u32::from(!is_whole(&user, &copy));
                fs::rename(&copy, &partial).expect("a folder");
            }
            user.run(&["backup", to.to_str().expect("text")]);
            assert!(is_whole(&user, &to) && !partial.exists(), "kill {kill}");
            fs::remove_dir_all(&to).expect("removable");
        }
    });
    assert!(
        killed >= 4 && refused >= 2,
        "of {KILLS} kills, {killed} hit, {refused} left half a backup, {finished} finished"
    );
}
