//! `retake search`.

use serde_json::Value;

use crate::tools::support::User;

fn talked() -> User {
    let user = User::new();
    user.talk("Fix the login");
    user.run(&["thread", "tag", "bug"]);
    user.run(&["take", "fork", "1", "--name", "retry"]);
    user.run(&["entry", "add", "Why does the session end at noon?"]);
    user
}

fn hits(user: &User, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["search"];
    all.extend(arguments);
    user.json(&all)["hits"].as_array().expect("hits").clone()
}

#[test]
fn hits_show_the_match_and_its_location() {
    let user = talked();
    let found = hits(&user, &["cookie"]);
    assert_eq!(found.len(), 1);
    let hit = &found[0];
    assert_eq!((&hit["role"], &hit["number"], &hit["take_name"]), (&"AI".into(), &2.into(), &"main".into()));
    let matched: Vec<&Value> = hit["snippet"]["pieces"]
        .as_array()
        .expect("pieces")
        .iter()
        .filter(|piece| piece["matched"] == true)
        .collect();
    assert_eq!(matched.len(), 1);
    assert_eq!(matched[0]["text"], "cookie");
    let command = hit["command"].as_str().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(user.run(&words).contains("The cookie has expired."), "{command}");
}

#[test]
fn history_is_searched_on_request_and_can_be_jumped_to() {
    let user = talked();
    assert_eq!(hits(&user, &["early"]).len(), 0);
    let found = hits(&user, &["early", "--history"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["at"], 3);
    let words: Vec<&str> = found[0]["command"].as_str().expect("a command").split(' ').skip(1).collect();
    assert!(user.run(&words).contains("expires too early"));
}

#[test]
fn filters_narrow_the_hits() {
    let user = talked();
    assert_eq!(hits(&user, &["why"]).len(), 2);
    assert_eq!(hits(&user, &["why", "--role", "ai"]).len(), 0);
    assert_eq!(hits(&user, &["cookie", "--role", "ai"]).len(), 1);
    assert_eq!(hits(&user, &["why", "--tag", "bug"]).len(), 2);
    assert_eq!(hits(&user, &["why", "--tag", "feature"]).len(), 0);
    assert_eq!(hits(&user, &["why", "--title", "login"]).len(), 2);
    assert_eq!(hits(&user, &["why", "--since", "1h"]).len(), 2);
    assert_eq!(hits(&user, &["why", "--until", "1h"]).len(), 0);
    assert_eq!(hits(&user, &["why", "--since", "today", "--until", "today"]).len(), 2);
    assert_eq!(hits(&user, &["why", "--limit", "1"]).len(), 1);
    assert_eq!(hits(&user, &["why", "--", "-session"]).len(), 1);
    assert_eq!(hits(&user, &["\"does the session\""]).len(), 1);
    assert_eq!(hits(&user, &["--newest"])[0]["number"], 1);
    user.refused(2, &["search", "why", "--since", "whenever"]);
    user.run(&["thread", "new", "Another"]);
    user.run(&["thread", "delete", "Fix the login"]);
    assert_eq!(hits(&user, &["why"]).len(), 0);
    assert_eq!(hits(&user, &["why", "--deleted"]).len(), 2);
}

#[test]
fn other_projects_are_searched_on_request() {
    let user = talked();
    let elsewhere = user.path("elsewhere");
    let elsewhere = elsewhere.to_str().expect("text");
    assert_eq!(hits(&user, &["why", "-C", elsewhere]).len(), 0);
    assert_eq!(hits(&user, &["why", "-C", elsewhere, "--all"]).len(), 2);
}

#[test]
fn matches_are_highlighted_and_stored_escapes_are_neutralised() {
    let user = User::new();
    user.run(&["thread", "new", "Hostile"]);
    user.run(&["entry", "add", "a needle \u{1b}]0;owned\u{7} in \u{1b}[31mred\u{1b}[0m \u{202e}hay"]);
    let shown = user.run(&["search", "needle", "--color", "always"]);
    assert!(shown.contains("\u{1b}[1m\u{1b}[31mneedle\u{1b}[0m") || shown.contains("31mneedle"), "{shown:?}");
    for bad in ["\u{1b}]0;", "\u{7}", "\u{202e}", "\u{1b}[31mred"] {
        assert!(!shown.contains(bad), "{shown:?}");
    }
    assert!(shown.contains('␛'), "{shown:?}");
}
