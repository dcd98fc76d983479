//! Completions and manual pages.

use crate::tools::support::User;

#[test]
fn every_shell_has_completions_for_every_command() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = user.run(&["completions", shell]);
        // The first three ask the program; `completions.rs` tests them in the real shells.
        let words = match shell {
            "bash" | "zsh" | "fish" => &["__complete"][..],
            _ => &["thread", "entry", "search", "export", "verify", "older-than", "json"],
        };
        for word in words {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert_eq!(user.json(&["completions", shell])["script"], script);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let user = User::new();
    let page = user.run(&["man"]);
    assert!(page.contains(".TH retake 1"), "{}", &page[..200]);
    let answer = user.json(&["man", "--output", "pages"]);
    let pages = answer["pages"].as_array().expect("pages");
    for name in ["retake.1", "retake-entry-edit.1", "retake-config-set.1", "retake-demo.1"] {
        assert!(pages.iter().any(|page| page == name), "{name}: {pages:?}");
    }
    for page in pages {
        let path = user.project().join("pages").join(page.as_str().expect("a name"));
        let text = std::fs::read_to_string(&path).expect("a page");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{}", path.display());
    }
}

#[test]
fn the_version_names_the_commit() {
    let shown = User::new().run(&["--version"]);
    let version = concat!("retake ", env!("CARGO_PKG_VERSION"));
    let git = |arguments: &[&str]| {
        let run = std::process::Command::new("git")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .output();
        run.ok().filter(|output| output.status.success())
    };
    // A source archive is not a checkout, even inside one; git may not be installed.
    let is_checkout = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = git(&["rev-parse", "--short=12", "HEAD"])
        .filter(|_| is_checkout && option_env!("RETAKE_COMMIT").is_none());
    match commit {
        Some(output) => {
            let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            assert_eq!(shown.trim(), format!("{version} ({commit})"));
        }
        None => assert!(shown.starts_with(version), "{shown}"),
    }
}
