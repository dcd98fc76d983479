//! Which entries a query matches, and their snippets.

use retake_store::{SearchError, SearchQuery};

use super::texts::{Rng, TEXTS, texts};
use super::world::World;

#[test]
fn queries_find_the_expected_entries() {
    let (world, named) = texts();
    let check = |words: &str, expected: &[&str]| {
        let mut found: Vec<&str> = world
            .entries(words)
            .iter()
            .map(|entry| named.iter().find(|named| named.1 == *entry).expect("a known entry").0)
            .collect();
        found.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{words:?}");
    };
    check("parser", &["parser"]);
    check("PARSER fix", &["parser"]);
    check("parser loop", &[]);
    check("\"fix the parser\"", &["parser"]);
    check("\"parser the fix\"", &[]);
    check("pars*", &["parser"]);
    check("pars", &[]);
    check("the", &["parser", "emoji"]);
    check("the -parser", &["emoji"]);
    check("the -\"fix the\"", &["emoji"]);
    check("parse_history", &["parser"]);
    check("history_parse", &[]);
    check("foo::bar", &["parser"]);
    check("foo::bar()", &["parser"]);
    check("naive losung", &["naive"]);
    check("NAÏVE Crème", &["naive"]);
    check("cre\u{300}me", &["naive"]);
    check("修正", &["japanese"]);
    check("解析器", &["japanese"]);
    check("正修", &[]);
    check("テスト 追加", &["japanese"]);
    check("แก้ไข", &["thai"]);
    check("โปรแกรม", &["thai"]);
    check("서버", &["korean"]);
    check("पार्सर", &["hindi"]);
    check("पर्सर", &[]);
    check("🎉", &["emoji"]);
    check("👩", &["emoji"]);
    check("👩‍💻", &["emoji"]);
    check("💥", &[]);
    check("αναλυτής", &["greek"]);
    check("iterator", &["thought"]);
    check("--all-targets", &["flags"]);
    check("drop table", &["hostile"]);
    check("a && parser", &[]);
    check("fix && parser", &["parser"]);
    check("ｐａｒｓｅｒ", &["parser"]);
    check("!?", &[]);
}

#[test]
fn no_input_is_a_syntax_error() {
    let (world, _) = texts();
    let reading = world.store.read().expect("a read transaction");
    let long = "a ".repeat(50_000);
    let nested = "(".repeat(5000);
    for words in [
        "\" OR NEAR( *",
        "\"",
        "\"\"",
        "\"\"\"",
        "*",
        "**",
        "-",
        "--",
        "-\"",
        "-*",
        "^",
        "^parser",
        "text:parser",
        "{text}:x",
        "NEAR(a b, 3)",
        "AND",
        "a AND",
        "NOT a",
        "a NOT",
        "(a",
        "a)",
        "'; DROP TABLE doc; --",
        "\0",
        "a\0b",
        "\u{1}\u{2}",
        "+",
        "a + b",
        ":",
        "%",
        "_",
        "\\",
        "\u{301}",
        "\u{feff}",
        "\u{10ffff}",
        "🎉*",
        "修*",
        "-修",
        &nested,
        &long,
    ] {
        match world.index.search(&reading.queries(), &SearchQuery::words(words)) {
            Ok(_) | Err(SearchError::TooManyWords { .. }) => {}
            Err(other) => panic!("{:?}: {other}", &words[..words.len().min(20)]),
        }
    }
    assert_eq!(world.entries("parser").len(), 1);
    assert_eq!(world.index.rebuild_reason(), None);
}

#[test]
fn every_word_of_every_entry_finds_it() {
    let world = World::new();
    let thread = world.thread("Random");
    let mut rng = Rng(42);
    let mut texts: Vec<String> = TEXTS.iter().map(|text| text.1.replace("<think>", "")).collect();
    texts.extend((0..60).map(|_| {
        let words: Vec<String> = (0..12).map(|_| rng.word()).collect();
        words.join(" ")
    }));
    for text in texts {
        let entry = world.say(thread, "User", &text);
        for word in text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)) {
            let query = SearchQuery { limit: 1000, ..SearchQuery::words(word.trim_start_matches('-')) };
            let hits = world.find(&query);
            let hit = hits.iter().find(|hit| hit.entry == entry);
            let hit = hit.unwrap_or_else(|| panic!("{word:?} does not find {text:?}"));
            assert!(hit.snippet.pieces.iter().any(|piece| piece.matched), "{word:?} in {text:?}");
        }
    }
    world.assert_sound();
}

#[test]
fn snippets_show_the_match() {
    let world = World::new();
    let thread = world.thread("Long");
    let text = format!("{}the Crème\nbrûlée is  burnt {}", "before ".repeat(200), "after ".repeat(200));
    world.say(thread, "User", &text);
    let hits = world.find(&SearchQuery::words("\"creme brulee\""));
    let matched: Vec<&str> = hits[0]
        .snippet
        .pieces
        .iter()
        .filter(|piece| piece.matched)
        .map(|piece| piece.text.as_str())
        .collect();
    assert_eq!(matched, ["Crème brûlée"]);
    let line = hits[0].snippet.text();
    assert!(line.starts_with('…') && line.ends_with('…') && line.contains("brûlée is burnt"), "{line}");
    assert!(line.chars().count() <= 162, "{line}");
}

#[test]
fn exclusions_alone_list_all_other_entries() {
    let world = World::new();
    let thread = world.thread("Some");
    let apple = world.say(thread, "User", "an apple");
    world.say(thread, "User", "a pear");
    assert_eq!(world.entries("-pear"), [apple]);
    assert_eq!(world.entries("-apple -pear"), []);
}

/// Names are found as a whole, by their parts, and in the other spelling.
#[test]
fn names_in_code_are_found_by_their_parts() {
    let world = World::new();
    let thread = world.thread("Names");
    let texts = [
        ("camel", "It calls parseHistory on GitHub."),
        ("snake", "It calls parse_history in src/search/history_page.rs."),
        ("path", "See std::collections::HashMap."),
        ("lower", "github has parsehistory."),
    ];
    let messages: Vec<(&str, &str)> = texts.iter().map(|&(_, text)| ("User", text)).collect();
    let ids = world.say_all(thread, &messages);
    let check = |words: &str, expected: &[&str]| {
        let found = world.entries(words);
        let names = texts.iter().zip(&ids).filter(|(_, id)| found.contains(id)).map(|((name, _), _)| *name);
        assert_eq!(names.collect::<Vec<_>>(), expected, "{words:?}");
        assert!(found.len() <= expected.len(), "{words:?}");
    };
    check("history", &["camel", "snake"]);
    check("hist*", &["camel", "snake"]);
    check("parseHistory", &["camel", "snake", "lower"]);
    check("parsehistory", &["camel", "lower"]);
    check("parse_history", &["camel", "snake"]);
    check("parseHi*", &["camel", "snake", "lower"]);
    check("github", &["camel", "lower"]);
    check("GitHub", &["camel", "lower"]);
    check("\"on github\"", &["camel"]);
    check("hub", &["camel"]);
    check("search/history", &["snake"]);
    check("map", &["path"]);
    check("HashMap", &["path"]);
    check("collections::hash", &[]);
    check("calls -history", &[]);
    check("calls -GitHub", &["snake"]);
    let hits = world.find(&SearchQuery::words("history -page"));
    let pieces: Vec<_> = hits[0]
        .snippet
        .pieces
        .iter()
        .filter(|piece| piece.matched)
        .map(|piece| piece.text.as_str())
        .collect();
    assert_eq!(pieces, ["History"]);
}

/// Words that match very many entries show the newest first; all hits are still reachable.
#[test]
fn very_common_words_show_the_newest_entries_first() {
    const ENTRIES: usize = 10_050;
    let world = World::new();
    let thread = world.thread("Echo");
    let texts: Vec<String> = (0..ENTRIES).map(|number| format!("echo {number}")).collect();
    let messages: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
    let ids = world.say_all(thread, &messages);
    let page = |offset: usize| -> Vec<_> {
        let query = SearchQuery { offset, ..SearchQuery::words("echo") };
        world.find(&query).iter().map(|hit| hit.entry).collect()
    };
    let newest: Vec<_> = ids.iter().rev().copied().collect();
    assert_eq!(page(0), newest[..20]);
    assert_eq!(page(1000), newest[1000..1020]);
    assert_eq!(page(ENTRIES - 5), newest[ENTRIES - 5..]);
    let roles = SearchQuery { roles: vec!["AI".to_owned()], ..SearchQuery::words("echo") };
    assert_eq!(world.find(&roles), []);
    assert_eq!(world.entries("echo 7"), [ids[7]], "a search with few matches is ranked");
}
