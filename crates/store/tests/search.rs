//! Search as a user meets it: what is found, what is not, and that the index always comes back.

#[path = "search/world.rs"]
mod world;

use retake_model::command::Command;
use retake_model::id::EntryId;
use retake_model::time::Timestamp;
use retake_store::{
    Deleted, Facet, Order, Rebuilt, Scope, SearchError, SearchIndex, SearchProblem, SearchQuery, Store,
    ThreadFilter,
};
use world::{BEGINNING, World};

/// Entries of many kinds, under short names.
const TEXTS: &[(&str, &str)] = &[
    (
        "parser",
        "Please fix the parser: parse_history panics in foo::bar() on empty input.",
    ),
    (
        "naive",
        "Die naïve Lösung wäre, den Zähler über crème brûlée zu stellen.",
    ),
    ("japanese", "構文解析器を修正してください。テストも追加して。"),
    ("thai", "กรุณาแก้ไขโปรแกรมแยกวิเคราะห์"),
    ("korean", "서버가 응답하지 않습니다"),
    ("hindi", "कृपया पार्सर ठीक करें"),
    ("emoji", "It works 🎉👩‍💻 and the tests pass ✅"),
    ("greek", "Ο ΑΝΑΛΥΤΉΣ χάλασε"),
    (
        "hostile",
        "\" OR NEAR( * AND NOT ^title : {x} - ' ; DROP TABLE doc; --",
    ),
    ("flags", "run cargo clippy --all-targets -- -D warnings"),
    ("thought", "<think>perhaps an iterator</think>I used a loop."),
];

fn texts() -> (World, Vec<(&'static str, EntryId)>) {
    let world = World::new();
    let thread = world.thread("Texts");
    let named = TEXTS
        .iter()
        .map(|&(name, text)| (name, world.say(thread, "AI", text)))
        .collect();
    (world, named)
}

#[test]
fn words_find_what_people_mean() {
    let (world, named) = texts();
    let check = |words: &str, expected: &[&str]| {
        let mut found: Vec<&str> = world
            .entries(words)
            .iter()
            .map(|entry| {
                named
                    .iter()
                    .find(|named| named.1 == *entry)
                    .expect("a known entry")
                    .0
            })
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
    let reading = world.store.read().expect("a reading");
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
    assert_eq!(world.index.rebuilt(), None);
}

#[test]
fn every_word_of_every_entry_finds_it() {
    let world = World::new();
    let thread = world.thread("Random");
    let mut dice = Dice(42);
    let mut texts: Vec<String> = TEXTS.iter().map(|text| text.1.replace("<think>", "")).collect();
    texts.extend((0..60).map(|_| {
        let words: Vec<String> = (0..12).map(|_| dice.word()).collect();
        words.join(" ")
    }));
    for text in texts {
        let entry = world.say(thread, "User", &text);
        for word in text
            .split_whitespace()
            .filter(|word| word.contains(char::is_alphanumeric))
        {
            let query = SearchQuery {
                limit: 1000,
                ..SearchQuery::words(word.trim_start_matches('-'))
            };
            let hits = world.find(&query);
            let hit = hits.iter().find(|hit| hit.entry == entry);
            let hit = hit.unwrap_or_else(|| panic!("{word:?} does not find {text:?}"));
            assert!(
                hit.snippet.pieces.iter().any(|piece| piece.matched),
                "{word:?} in {text:?}"
            );
        }
    }
    world.assert_sound();
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A word of characters from anywhere, with a letter in it.
    fn word(&mut self) -> String {
        const RANGES: &[(u32, u32)] = &[
            (0x61, 0x7a),
            (0x30, 0x39),
            (0xc0, 0x24f),
            (0x300, 0x36f),
            (0x370, 0x3ff),
            (0x400, 0x52f),
            (0x5d0, 0x5ea),
            (0x620, 0x6d3),
            (0x900, 0x97f),
            (0xe00, 0xe7f),
            (0x1000, 0x109f),
            (0x1e00, 0x1fff),
            (0x2100, 0x2bff),
            (0x3040, 0x30ff),
            (0x4e00, 0x9fff),
            (0xac00, 0xd7a3),
            (0xe000, 0xe0ff),
            (0xff01, 0xff9f),
            (0x1f300, 0x1faff),
            (0x20000, 0x2a6df),
            (0x2e, 0x2f),
            (0x5b, 0x60),
        ];
        let mut word: String = (0..=self.below(6))
            .filter_map(|_| {
                let (low, high) = RANGES[self.below(RANGES.len() as u64) as usize];
                char::from_u32(low + self.below(u64::from(high - low + 1)) as u32)
            })
            .filter(|character| !character.is_whitespace() && *character != '＊')
            .collect();
        word.push(char::from(b'a' + self.below(26) as u8));
        word
    }
}

#[test]
fn snippets_show_what_matched() {
    let world = World::new();
    let thread = world.thread("Long");
    let text = format!(
        "{}the Crème\nbrûlée is  burnt {}",
        "before ".repeat(200),
        "after ".repeat(200)
    );
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
    assert!(
        line.starts_with('…') && line.ends_with('…') && line.contains("brûlée is burnt"),
        "{line}"
    );
    assert!(line.chars().count() <= 162, "{line}");
}

#[test]
fn filters_narrow_a_search() {
    let mut world = World::new();
    world.around.git_branch = Some("main".to_owned());
    world.around.git_commit = Some("abcdef0123".to_owned());
    world.around.working_directory = Some("/home/me/work/api".to_owned());
    let first = world.thread("Fix the login page");
    let old = world.say(first, "User", "needle one");
    world.around = retake_model::surroundings::Surroundings::default();
    let second = world.thread("Other");
    let new = world.say(second, "AI", "needle two");
    world.command(
        first,
        Command::Tag {
            add: vec!["bug".to_owned()],
            remove: vec![],
        },
    );

    let check = |change: &dyn Fn(&mut SearchQuery), expected: &[EntryId]| {
        let mut query = SearchQuery {
            order: Order::Newest,
            ..SearchQuery::words("needle")
        };
        change(&mut query);
        let found: Vec<EntryId> = world.find(&query).iter().map(|hit| hit.entry).collect();
        assert_eq!(found, expected, "{query:?}");
        // The same filters without words list the same entries.
        query.words.clear();
        let found: Vec<EntryId> = world.find(&query).iter().map(|hit| hit.entry).collect();
        assert_eq!(found, expected, "{query:?}");
    };
    let facet = |facet: Facet, value: &str| {
        let facets = vec![(facet, value.to_owned())];
        move |query: &mut SearchQuery| query.threads.facets.clone_from(&facets)
    };
    check(&|_| (), &[new, old]);
    check(&|query| query.role = Some("user".to_owned()), &[old]);
    check(&|query| query.role = Some("ai".to_owned()), &[new]);
    check(&|query| query.role = Some("' OR 1=1 --".to_owned()), &[]);
    check(&facet(Facet::Tag, "bug"), &[old]);
    check(&facet(Facet::Branch, "main"), &[old]);
    check(&facet(Facet::Commit, "abcd"), &[old]);
    check(&facet(Facet::Commit, "abce"), &[]);
    check(&facet(Facet::Directory, "/home/me/work"), &[old]);
    check(&facet(Facet::Directory, "/home/you"), &[]);
    check(&|query| query.threads.title = Some("LOGIN".to_owned()), &[old]);
    check(&|query| query.threads.project = Some(world.project), &[new, old]);
    check(&|query| query.threads.deleted = Deleted::Only, &[]);
    check(
        &|query| query.since = Some(Timestamp::from_millis(BEGINNING)),
        &[new, old],
    );
    check(
        &|query| query.until = Some(Timestamp::from_millis(BEGINNING)),
        &[],
    );
    let time = world.find(&SearchQuery::words("two"))[0].time;
    check(&|query| query.since = Some(time), &[new]);
    check(
        &|query| query.until = Some(Timestamp::from_millis(time.millis() - 1)),
        &[old],
    );
    check(&|query| query.limit = 1, &[new]);
    check(&|query| query.offset = 1, &[old]);
    check(&|query| query.offset = 9, &[]);

    world.command(first, Command::Delete);
    check(&|_| (), &[new]);
    check(&|query| query.threads.deleted = Deleted::Shown, &[new, old]);
    check(&|query| query.threads.deleted = Deleted::Only, &[old]);
}

#[test]
fn only_exclusions_list_all_the_rest() {
    let world = World::new();
    let thread = world.thread("Some");
    let apple = world.say(thread, "User", "an apple");
    world.say(thread, "User", "a pear");
    assert_eq!(world.entries("-pear"), [apple]);
    assert_eq!(world.entries("-apple -pear"), []);
}

#[test]
fn what_is_there_now_and_what_ever_was() {
    let world = World::new();
    let thread = world.thread("Story");
    let entries = world.say_all(
        thread,
        &[("User", "alpha one"), ("AI", "beta two"), ("User", "gamma three")],
    );
    let main = world.active(thread);
    let now = |words: &str| world.find(&SearchQuery::words(words));
    let ever = |words: &str| {
        world.find(&SearchQuery {
            scope: Scope::History,
            ..SearchQuery::words(words)
        })
    };

    // Edited in one take, still as it was in another.
    world.branch(thread, entries[1], "other");
    let other = world.active(thread);
    world.edit(thread, entries[1], "beta rewritten");
    let hits = now("two");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].take, hits[0].position), (Some(main), Some(1)));
    let hits = now("rewritten");
    assert_eq!((hits[0].take, hits[0].position), (Some(other), Some(1)));
    // In both takes: the active one is named.
    assert_eq!(now("alpha")[0].take, Some(other));

    // Gone from everywhere.
    world.command(thread, Command::Switch { take: main });
    world.command(
        thread,
        Command::DeleteEntries {
            take: main,
            entries: vec![entries[1], entries[2]],
        },
    );
    assert_eq!(now("two"), []);
    assert_eq!(now("gamma"), []);
    let hits = ever("two");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].take, hits[0].position), (None, None));
    assert_eq!(ever("beta").len(), 2);

    // A take that goes takes its own with it.
    world.command(thread, Command::DeleteTake { take: other });
    assert_eq!(now("rewritten"), []);
    assert_eq!(ever("rewritten").len(), 1);
    assert_eq!(now("alpha")[0].take, Some(main));
    world.assert_sound();
}

#[test]
fn many_takes_are_asked_at_once() {
    let world = World::new();
    let thread = world.thread("Forks");
    let first = world.say(thread, "User", "shared stem");
    let main = world.active(thread);
    for number in 0..40 {
        world.command(thread, Command::Switch { take: main });
        world.branch(thread, first, &format!("fork {number}"));
        world.say(thread, "User", &format!("leaf number{number}"));
    }
    world.edit(thread, first, "another stem");
    let hits = world.find(&SearchQuery::words("number7"));
    assert_eq!(hits[0].position, Some(1));
    let hits = world.find(&SearchQuery::words("shared"));
    assert_eq!(hits.len(), 1);
    assert_ne!(hits[0].take, Some(world.active(thread)));
    assert_eq!(
        world
            .find(&SearchQuery {
                limit: 100,
                ..SearchQuery::words("leaf")
            })
            .len(),
        40
    );
    world.assert_sound();
}

#[test]
fn the_newer_of_two_equals_comes_first_and_the_better_of_two_before_the_newer() {
    let world = World::new();
    let thread = world.thread("Ranks");
    let older = world.say(thread, "User", "lantern by the door");
    let newer = world.say(thread, "User", "lantern by the gate");
    let best = world.say(thread, "User", "lantern lantern lantern");
    for _ in 0..20 {
        world.say(
            thread,
            "User",
            &format!("lantern among {}", "many other words ".repeat(20)),
        );
    }
    let found = world.entries("lantern");
    assert_eq!(found[..3], [best, newer, older]);
    let newest = world.find(&SearchQuery {
        order: Order::Newest,
        ..SearchQuery::words("lantern")
    });
    assert!(newest.is_sorted_by(|left, right| left.time >= right.time));
}

#[test]
fn a_purged_thread_leaves_no_word() {
    let world = World::new();
    let (kept, purged) = (world.thread("Kept"), world.thread("Purged"));
    let stays = world.say(kept, "User", "xylophone in the open");
    world.say(purged, "User", "xylophone zanzibarsecret");
    assert_eq!(world.entries("xylophone").len(), 2);
    let number = {
        let reading = world.store.read().expect("a reading");
        reading
            .queries()
            .thread(purged)
            .expect("readable")
            .expect("there")
            .number
    };
    world.tamper(&format!(
        "INSERT INTO operation (thread, version, id, body) VALUES ({number}, 0, x'00', NULL);
         DELETE FROM operation WHERE thread = {number} AND version > 0;
         DELETE FROM thread WHERE number = {number};"
    ));
    let reading = world.store.read().expect("a reading");
    let done = world
        .index
        .catch_up(&reading.queries(), &mut |_| ())
        .expect("caught up");
    assert_eq!((done.added, done.removed, done.unreadable), (0, 1, 0));
    assert_eq!(world.entries("xylophone"), [stays]);
    world.assert_sound();
    assert!(!holds(&world, b"zanzibarsecret"));
    assert!(
        holds(&world, b"xylophone"),
        "the control: what is there can be seen in the file"
    );
}

#[test]
fn a_redacted_entry_leaves_no_word() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "the password is quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    let hex: String = version.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    world.tamper(&format!(
        "INSERT INTO redaction (id, kind, time) VALUES (x'{hex}', 1, 0)"
    ));
    // Found by itself.
    assert_eq!(world.entries("quetzalcoatl"), []);
    assert!(!holds(&world, b"quetzalcoatl"));
    world.assert_sound();
    // Not brought back by a rebuild.
    let reading = world.store.read().expect("a reading");
    world
        .index
        .rebuild(&reading.queries(), &mut |_| ())
        .expect("rebuilt");
    assert_eq!(world.entries("password"), []);
    world.assert_sound();
}

#[test]
fn a_forgotten_entry_is_gone_at_once() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    assert_eq!(world.index.forget(&[version]).expect("forgotten"), 1);
    assert_eq!(world.index.forget(&[version]).expect("forgotten"), 0);
    assert!(!holds(&world, b"quetzalcoatl"));
    assert_eq!(world.entries("quetzalcoatl"), []);
}

/// Whether bytes are anywhere in the files of the index.
fn holds(world: &World, bytes: &[u8]) -> bool {
    ["search.db", "search.db-wal"].iter().any(|name| {
        let held = std::fs::read(world.folder.path().join(name)).unwrap_or_default();
        held.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn two_indexes_catch_up_at_once() {
    let world = World::new();
    let thread = world.thread("Busy");
    for number in 0..30 {
        let texts: Vec<String> = (0..40).map(|part| format!("common w{number} p{part}")).collect();
        let said: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
        world.say_all(thread, &said);
    }
    let folder = world.folder.path();
    let added: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let store = Store::open(folder).expect("a store");
                    let index = SearchIndex::open(folder).expect("an index");
                    let reading = store.read().expect("a reading");
                    let done = index
                        .catch_up(&reading.queries(), &mut |_| ())
                        .expect("caught up");
                    let query = SearchQuery {
                        limit: 2000,
                        ..SearchQuery::words("common")
                    };
                    assert_eq!(
                        index.search(&reading.queries(), &query).expect("found").len(),
                        1200
                    );
                    assert_eq!(index.rebuilt(), None);
                    done.added
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    });
    assert_eq!(added, 1200, "each doc was added once");
    world.assert_sound();
}

#[test]
fn one_operation_may_bring_more_than_a_batch() {
    let world = World::new();
    let thread = world.thread("Import");
    let texts: Vec<String> = (0..5000).map(|number| format!("imported n{number}")).collect();
    let said: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
    world.say_all(thread, &said);
    let reading = world.store.read().expect("a reading");
    let mut reached = Vec::new();
    let done = world
        .index
        .catch_up(&reading.queries(), &mut |progress| reached.push(progress.reached))
        .expect("caught up");
    assert_eq!(done.added, 5000);
    assert!(reached.is_sorted() && reached.last() == Some(&2), "{reached:?}");
    assert_eq!(world.entries("n4999").len(), 1);
    world.assert_sound();
}

#[test]
fn a_useless_file_is_made_anew() {
    let (world, _) = texts();
    assert_eq!(world.entries("parser").len(), 1);
    let World {
        store, index, folder, ..
    } = world;
    drop(index);
    let path = folder.path().join("search.db");
    let whole = std::fs::read(&path).expect("the index");
    let mut holed = whole.clone();
    holed[4096..].fill(0x5a);
    let mut beheaded = whole.clone();
    beheaded[..100].fill(0xff);
    let mut other_version = whole.clone();
    other_version[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let damages: [(&str, &[u8]); 6] = [
        ("garbage", &[0x5a; 10_000]),
        ("holes", &holed),
        ("no head", &beheaded),
        ("half", &whole[..whole.len() / 2]),
        ("other version", &other_version),
        ("text", b"not a database at all"),
    ];
    for (name, bytes) in damages {
        std::fs::write(&path, bytes).expect("written");
        let index = SearchIndex::open(folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reading = store.read().expect("a reading");
        let found = index
            .search(&reading.queries(), &SearchQuery::words("parser"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(index.check(&reading.queries()).expect("checked"), [], "{name}");
        let rebuilt = index.rebuilt();
        assert!(rebuilt.is_some(), "{name}");
        assert_eq!(
            rebuilt == Some(Rebuilt::OtherVersion),
            name == "other version",
            "{rebuilt:?}"
        );
    }
    std::fs::write(&path, b"").expect("written");
    let index = SearchIndex::open(folder.path()).expect("an empty file is a new index");
    assert_eq!(index.rebuilt(), None);
}

#[test]
fn any_flipped_byte_is_harmless() {
    let (world, _) = texts();
    world.entries("parser");
    let World {
        store, index, folder, ..
    } = world;
    drop(index);
    let path = folder.path().join("search.db");
    let whole = std::fs::read(&path).expect("the index");
    let reading = store.read().expect("a reading");
    for place in (0..whole.len()).step_by(611) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x41;
        std::fs::write(&path, flipped).expect("written");
        let index = SearchIndex::open(folder.path()).unwrap_or_else(|error| panic!("{place}: {error}"));
        let found = index
            .search(&reading.queries(), &SearchQuery::words("the"))
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        // Missing is possible until the index is checked; wrong is not.
        assert!(
            found.iter().all(|hit| hit.snippet.text().contains("the")),
            "{place}"
        );
        index.check(&reading.queries()).expect("checked");
        index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuilt");
        let found = index
            .search(&reading.queries(), &SearchQuery::words("the"))
            .expect("found");
        assert_eq!(found.len(), 2, "{place}");
        drop(index);
    }
}

#[test]
fn an_older_copy_of_the_store_gets_an_index_of_its_own() {
    let world = World::new();
    let thread = world.thread("Copies");
    world.say(thread, "User", "before the copy");
    world.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let copy = std::fs::read(world.folder.path().join("retake.db")).expect("the store");
    world.say(thread, "User", "after the copy");
    assert_eq!(world.entries("copy").len(), 2);
    let World {
        store, index, folder, ..
    } = world;
    drop((store, index));
    std::fs::write(folder.path().join("retake.db"), copy).expect("written");
    let store = Store::open(folder.path()).expect("a store");
    let index = SearchIndex::open(folder.path()).expect("an index");
    let reading = store.read().expect("a reading");
    let query = SearchQuery {
        scope: Scope::History,
        ..SearchQuery::words("copy")
    };
    assert_eq!(index.search(&reading.queries(), &query).expect("found").len(), 1);
    assert_eq!(index.rebuilt(), Some(Rebuilt::OtherStore));
}

#[test]
fn a_reading_that_began_earlier_does_no_harm() {
    let world = World::new();
    let thread = world.thread("Times");
    world.say(thread, "User", "early bird");
    let early = world.store.read().expect("a reading");
    world.say(thread, "User", "late bird");
    assert_eq!(world.entries("bird").len(), 2);
    let found = world
        .index
        .search(&early.queries(), &SearchQuery::words("bird"))
        .expect("found");
    assert_eq!(found.len(), 1, "what came later is not in its thread yet");
    assert_eq!(world.index.rebuilt(), None);
    assert_eq!(world.entries("bird").len(), 2);
}

#[test]
fn a_damaged_store_is_indexed_as_far_as_it_can_be_read() {
    let world = World::new();
    let thread = world.thread("Broken");
    world.say(thread, "User", "first stone");
    world.say(thread, "User", "second stone");
    world.say(thread, "User", "third stone");
    let World {
        store, index, folder, ..
    } = world;
    drop(store);
    // The second entry's own operation.
    let connection = rusqlite::Connection::open(folder.path().join("retake.db")).expect("the database");
    connection
        .execute_batch("UPDATE operation SET body = CAST(x'00' || body AS BLOB) WHERE version = 3;")
        .expect("valid SQL");
    drop(connection);
    let store = Store::open(folder.path()).expect("a store");
    let reading = store.read().expect("a reading");
    let done = index
        .catch_up(&reading.queries(), &mut |_| ())
        .expect("caught up");
    assert_eq!(done.unreadable, 1);
    // What the unreadable operation brought is found with the next one.
    let found = index
        .search(&reading.queries(), &SearchQuery::words("stone"))
        .expect("found");
    assert_eq!(found.len(), 3);
    assert_eq!(index.check(&reading.queries()).expect("checked"), []);
}

#[test]
fn a_check_finds_what_is_missing_and_what_is_too_much() {
    let (world, named) = texts();
    assert_eq!(world.entries("parser"), [named[0].1]);
    world.assert_sound();
    let connection = rusqlite::Connection::open(world.folder.path().join("search.db")).expect("the index");
    connection
        .execute_batch(
            "UPDATE doc SET entry = zeroblob(16) WHERE number = 1; DELETE FROM doc WHERE number = 2;",
        )
        .expect("valid SQL");
    let reading = world.store.read().expect("a reading");
    let problems = world.index.check(&reading.queries()).expect("checked");
    let count =
        |wanted: fn(&SearchProblem) -> bool| problems.iter().filter(|problem| wanted(problem)).count();
    assert_eq!(
        count(|problem| matches!(problem, SearchProblem::Missing { .. })),
        2
    );
    assert_eq!(count(|problem| matches!(problem, SearchProblem::Extra { .. })), 1);
    assert_eq!(
        count(|problem| matches!(problem, SearchProblem::Damaged(_))),
        1,
        "words without a doc"
    );
    world
        .index
        .rebuild(&reading.queries(), &mut |_| ())
        .expect("rebuilt");
    world.assert_sound();
    assert_eq!(world.index.rebuilt(), Some(Rebuilt::Asked));
}

#[test]
fn the_files_of_the_index_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (world, _) = texts();
    world.entries("parser");
    for name in ["search.db", "search.db-wal", "search.db-shm"] {
        let mode = std::fs::metadata(world.folder.path().join(name))
            .expect("the file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// Run with `cargo test --release -p retake-store --test search -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and takes a while"]
fn how_fast() {
    use std::time::Instant;
    let world = World::new();
    let mut dice = 42_u64;
    let mut word = || {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // A few words are everywhere, most are rare.
        let roll = (dice >> 33) as f64 / f64::from(1_u32 << 31);
        format!("w{}", (roll.powi(4) * 30_000.0) as u64)
    };
    for number in 0..100 {
        let thread = world.thread(&format!("Thread {number}"));
        for _ in 0..20 {
            let texts: Vec<String> = (0..10)
                .map(|_| {
                    let mut text = String::new();
                    while text.len() < 2000 {
                        text.push_str(&word());
                        text.push(' ');
                    }
                    text
                })
                .collect();
            let said: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
            world.say_all(thread, &said);
        }
    }
    let reading = world.store.read().expect("a reading");
    let queries = reading.queries();
    let start = Instant::now();
    let done = world.index.catch_up(&queries, &mut |_| ()).expect("caught up");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} entries indexed in {seconds:.2} s: {:.0}/s",
        done.added,
        done.added as f64 / seconds
    );
    let size = std::fs::metadata(world.folder.path().join("search.db"))
        .expect("the index")
        .len();
    println!("index {} MB", size / 1_000_000);
    let time = |name: &str, query: &SearchQuery| {
        let start = Instant::now();
        let found = world.index.search(&queries, query).expect("found").len();
        println!(
            "{name:40} {found:3} hits {:8.2} ms",
            start.elapsed().as_secs_f64() * 1000.0
        );
    };
    time("rare word", &SearchQuery::words("w29001"));
    time("rare word again", &SearchQuery::words("w29001"));
    time("word in most entries", &SearchQuery::words("w0"));
    time("two common words", &SearchQuery::words("w1 w2"));
    time("phrase", &SearchQuery::words("\"w0 w1\""));
    time("prefix", &SearchQuery::words("w29*"));
    time(
        "common word, newest first",
        &SearchQuery {
            order: Order::Newest,
            ..SearchQuery::words("w0")
        },
    );
    time(
        "common word, page 50",
        &SearchQuery {
            offset: 1000,
            ..SearchQuery::words("w0")
        },
    );
    time("no words, newest", &SearchQuery::default());
    let one = ThreadFilter {
        title: Some("Thread 42".to_owned()),
        ..ThreadFilter::default()
    };
    time(
        "common word, one thread",
        &SearchQuery {
            threads: one,
            ..SearchQuery::words("w0")
        },
    );
    let start = Instant::now();
    assert_eq!(world.index.check(&queries).expect("checked"), []);
    println!("check {:.2} s", start.elapsed().as_secs_f64());
    let version = world.find(&SearchQuery::words("w29001"))[0].version;
    let start = Instant::now();
    world.index.forget(&[version]).expect("forgotten");
    println!("forget {:.2} s", start.elapsed().as_secs_f64());
}
