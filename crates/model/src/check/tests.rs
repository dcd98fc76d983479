//! Content that commands create passes; other content is rejected.

use super::*;
use crate::content::encode;

#[test]
fn generated_take_names_pass_even_with_a_long_base() {
    let long = "x".repeat(NAME_CHARS);
    for good in ["main", "main_take_2", &long, &format!("{long}_take_12"), "a_take_b"] {
        assert!(take_name(good).is_ok(), "{good}");
    }
    for bad in ["", " main", "a/b", &format!("{long}x_take_1"), &format!("{long}_take_x"), "a\u{1b}_take_1"] {
        assert!(take_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn impossible_values_are_rejected() {
    let good = EntryVersion::from_text("User", "hello", Timestamp::from_millis(-1));
    assert!(content(Kind::Entry, &encode(&good)).is_ok());
    let late = EntryVersion { created: Timestamp::from_millis(i64::MAX), ..good.clone() };
    assert!(content(Kind::Entry, &encode(&late)).is_err());
    let role = EntryVersion { role: "\u{202e}".to_owned(), ..good };
    assert!(content(Kind::Entry, &encode(&role)).is_err());
    for temperature in [-0.0, 3.0, f64::NAN] {
        let settings = Settings { temperature: Some(temperature), ..Settings::default() };
        assert!(content(Kind::Settings, &encode(&settings)).is_err(), "{temperature}");
    }
    assert!(content(Kind::Settings, &encode(&Settings::default())).is_ok());
}

#[test]
fn known_fields_are_rejected_as_unknown_ones() {
    let extra = |name: &str| -> Fields { [(name.to_owned(), Json::string("x"))].into_iter().collect() };
    let version = EntryVersion::from_text("User", "hello", Timestamp::from_millis(1));
    let with = |block: Block| EntryVersion { blocks: vec![block], ..version.clone() };
    let text = |name: &str| with(Block::Text { text: String::new(), extra: extra(name) });
    let unknown = |kind: &str, name: &str| with(Block::Unknown { kind: kind.to_owned(), extra: extra(name) });
    let usage = |name: &str| {
        let usage = crate::entry::Usage { extra: extra(name), ..Default::default() };
        EntryVersion { usage: Some(usage), ..version.clone() }
    };
    let beside = |name: &str| EntryVersion {
        extra: [(name.to_owned(), Json::string("x"))].into_iter().collect(),
        ..version.clone()
    };
    for good in [text("name"), unknown("x", "text"), usage("tier"), usage("input"), beside("id")] {
        assert!(content(Kind::Entry, &encode(&good)).is_ok(), "{good:?}");
    }
    for bad in [
        text("text"),
        text("type"),
        unknown("x", "type"),
        unknown("image", "x"),
        usage("input_tokens"),
        beside("role"),
    ] {
        assert!(content(Kind::Entry, &encode(&bad)).is_err(), "{bad:?}");
    }
}
