//! Completions and manual pages.

use crate::support::User;

#[test]
fn every_shell_has_completions_for_every_command() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = user.run(&["completions", shell]);
        for word in ["thread", "entry", "search", "export", "verify", "older-than", "json"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert_eq!(user.json(&["completions", shell])["script"], script);
    }
}

#[test]
fn every_command_has_a_page() {
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
