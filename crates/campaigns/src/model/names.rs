//! Names and settings of the campaign, with their stored form or refusal.
//!
//! The model has no rules for names: these tables contain the answer for every one.

use crate::rng::Rng;

/// Names that are always refused.
const BAD_NAMES: &[&str] = &["", "   ", "two\nlines", "\u{1b}[2J", "\u{202e}reversed", "nul\0"];
/// Valid names for all purposes (tags and takes allow less than titles).
const GOOD_NAMES: &[&str] =
    &["alpha", " alpha", "beta", "gamma\t", "delta", "修正", "👩‍💻", "Ünïcode", "x", "main", "main_take_1"];

/// A setting, a value, and its stored form; `None` if it is refused.
const SETTINGS: &[(&str, &str, Option<&str>)] = &[
    ("project_system_prompt", "Be brief.", Some("Be brief.")),
    ("project_system_prompt", "", Some("")),
    ("global_system_prompt", " spaces stay ", Some(" spaces stay ")),
    ("base_system_prompt", "line\nline", Some("line\nline")),
    ("use_default_base_prompt", "off", Some("false")),
    ("use_default_base_prompt", "yes", Some("true")),
    ("use_default_base_prompt", "maybe", None),
    ("temperature", "0.70", Some("0.7")),
    ("temperature", "-0", Some("0")),
    ("temperature", "2", Some("2")),
    ("temperature", "2.1", None),
    ("temperature", "NaN", None),
    ("top_p", "0.5", Some("0.5")),
    ("top_p", "1", Some("1")),
    ("top_p", "-1", None),
    ("max_tokens", " 100 ", Some("100")),
    ("max_tokens", "0", None),
    ("max_tokens", "4294967296", None),
    ("auto_add_history", "1", Some("true")),
    ("auto_add_history", "no", Some("false")),
    ("provider", "anthropic", Some("anthropic")),
    ("provider", "", Some("")),
    ("model", " opus ", Some("opus")),
    ("model", "two\nlines", None),
    ("max_tokens", "8192", Some("8192")),
    ("temperature", "", Some("")),
    ("effort", "max", Some("max")),
    ("effort", "default", Some("")),
    ("effort", "much", None),
    ("nonsense", "1", None),
];

/// The settings of a new thread.
const DEFAULTS: &[(&str, &str)] = &[
    ("project_system_prompt", ""),
    ("global_system_prompt", ""),
    ("base_system_prompt", ""),
    ("use_default_base_prompt", "true"),
    ("temperature", ""),
    ("top_p", ""),
    ("max_tokens", ""),
    ("auto_add_history", "false"),
    ("provider", ""),
    ("model", ""),
    ("effort", ""),
];

/// The roles of a new thread.
pub const ROLES: &[&str] = &["User", "AI", "Vendor API", "System"];

/// A random name, sometimes an invalid one.
pub fn name(rng: &mut Rng) -> String {
    if rng.once_in(12) {
        return if rng.once_in(4) { "long ".repeat(60) } else { pick(rng, BAD_NAMES).to_owned() };
    }
    let name = pick(rng, GOOD_NAMES);
    if rng.once_in(3) { name.to_owned() } else { format!("{}{}", name.trim(), rng.below(40)) }
}

/// The stored form of a name; `None` if it is refused.
pub fn meaning(name: &str) -> Option<String> {
    let refused = BAD_NAMES.contains(&name) || name.starts_with("long ");
    (!refused).then(|| name.trim().to_owned())
}

/// A random setting and value, sometimes an invalid one.
pub fn setting(rng: &mut Rng) -> (String, String) {
    loop {
        let (name, value, means) = SETTINGS[rng.index(SETTINGS.len())];
        if means.is_some() || rng.once_in(4) {
            return (name.to_owned(), value.to_owned());
        }
    }
}

/// The stored form of a setting; `None` if it is refused.
pub fn setting_meaning(name: &str, value: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(known, given, _)| *known == name && *given == value)?.2
}

/// The settings of a new thread.
pub fn default_settings() -> Vec<(String, String)> {
    DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Random words that rarely repeat.
pub fn sentence(rng: &mut Rng) -> String {
    const WORDS: &[&str] =
        &["fix", "the", "login", "über", "修正", "test", "\n\n", "```rust", "<think>", "ok"];
    let mut text = String::new();
    for _ in 0..rng.below(8) {
        text.push_str(pick(rng, WORDS));
        text.push(' ');
    }
    if !rng.once_in(20) {
        text.push_str(&rng.below(100_000).to_string());
    }
    if rng.once_in(50) {
        text = text.repeat(100);
    }
    text
}

fn pick(rng: &mut Rng, words: &'static [&'static str]) -> &'static str {
    words[rng.index(words.len())]
}
