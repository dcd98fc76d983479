//! Edits the configuration as text, preserving comments, order and formatting.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::keys::{Key, ValueType};
use super::{Config, Size};
use crate::failure::{Code, Failure};

/// The value of a key in the text, if it is set.
pub(crate) fn get(text: &str, name: &str) -> Result<Option<Value>, Failure> {
    let document = parse(text)?;
    let (sections, name) = parts(name)?;
    let found = sections.iter().try_fold(document.as_table() as &dyn TableLike, |table, section| {
        table.get(section).and_then(Item::as_table_like)
    });
    Ok(found.and_then(|table| table.get(&name)).and_then(Item::as_value).map(|value| {
        let mut value = value.clone();
        value.decor_mut().clear();
        value
    }))
}

/// The text with a key set to a typed value.
pub(crate) fn set(text: &str, key: &Key, typed: &str) -> Result<String, Failure> {
    put(text, key.name, value(key, typed)?)
}

/// The text with a key of a provider or a price set. The value is TOML if that is valid there, and text otherwise.
pub(crate) fn set_free(text: &str, name: &str, typed: &str, path: &Path) -> Result<String, Failure> {
    if let Ok(value) = typed.parse::<Value>()
        && let Ok(valid) = checked(put(text, name, value)?, path)
    {
        return Ok(valid);
    }
    checked(put(text, name, typed.into())?, path)
}

/// Whether a name is that of a key below a name of the user's, such as `providers.local.base_url`.
pub(crate) fn is_free(name: &str) -> bool {
    parts(name).is_ok_and(|(sections, _)| {
        sections.len() > 1 && matches!(sections[0].as_str(), "providers" | "prices")
    })
}

/// Whether the value of a key must not be printed.
pub(crate) fn is_secret(name: &str) -> bool {
    parts(name).is_ok_and(|(sections, name)| {
        sections.first().is_some_and(|section| section == "providers")
            && (name == "key" || sections.get(2).is_some_and(|section| section == "headers"))
    })
}

fn put(text: &str, name: &str, value: Value) -> Result<String, Failure> {
    let mut document = parse(text)?;
    let (sections, name) = parts(name)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for section in &sections {
        let new = || {
            let mut table = Table::new();
            // A header only for the table that has keys of its own.
            table.set_implicit(true);
            Item::Table(table)
        };
        table =
            table.entry(section).or_insert_with(new).as_table_like_mut().ok_or_else(|| {
                Failure::new(Code::Usage, format!("`{section}` is not a section in the file"))
            })?;
    }
    match table.get_mut(&name).and_then(Item::as_value_mut) {
        Some(before) => {
            // Keeps the formatting around the value, such as a trailing comment.
            let decor = before.decor().clone();
            *before = value;
            *before.decor_mut() = decor;
        }
        None => {
            table.insert(&name, Item::Value(value));
        }
    }
    Ok(document.to_string())
}

/// The text without a key; `None` if the key was not set.
pub(crate) fn unset(text: &str, name: &str) -> Result<Option<String>, Failure> {
    let mut document = parse(text)?;
    let (sections, name) = parts(name)?;
    let mut table: Option<&mut dyn TableLike> = Some(document.as_table_mut());
    for section in &sections {
        table = table.and_then(|table| table.get_mut(section)).and_then(Item::as_table_like_mut);
    }
    let removed = table.and_then(|table| table.remove(&name));
    Ok(removed.map(|_| document.to_string()))
}

/// Parses a typed value according to the key's type.
fn value(key: &Key, typed: &str) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::new(Code::Usage, format!("{}: {why}", key.name));
    match key.value_type {
        ValueType::Flag => match typed {
            "true" | "yes" | "on" => Ok(true.into()),
            "false" | "no" | "off" => Ok(false.into()),
            _ => Err(wrong(format!("{typed:?} is neither true nor false"))),
        },
        ValueType::Number => match typed.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(number.into()),
            _ => Err(wrong(format!("{typed:?} is not a whole number from 0 on"))),
        },
        ValueType::Size => {
            typed.parse::<Size>().map_err(wrong)?;
            Ok(typed.parse::<i64>().map_or_else(|_| typed.into(), Value::from))
        }
        ValueType::Text => Ok(typed.trim_matches('"').into()),
        ValueType::List => {
            let typed = typed.strip_prefix('[').and_then(|typed| typed.strip_suffix(']')).unwrap_or(typed);
            let texts =
                typed.split(',').map(|text| text.trim().trim_matches('"')).filter(|text| !text.is_empty());
            Ok(texts.collect())
        }
        ValueType::Path => {
            let path = std::path::absolute(typed).map_err(|error| wrong(format!("{typed:?}: {error}")))?;
            let text = path.to_str().ok_or_else(|| wrong(format!("{typed:?} is not UTF-8")))?;
            Ok(text.into())
        }
    }
}

fn parse(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::new(Code::Usage, format!("the configuration file: {}", error.to_string().trim_end()))
    })
}

/// Splits a key into its sections and its name. A part with a dot is quoted: `prices."gpt-5.1".input`.
fn parts(name: &str) -> Result<(Vec<String>, String), Failure> {
    let wrong = || Failure::new(Code::Usage, format!("{name:?} is not a key, such as `storage.budget`"));
    let keys = toml_edit::Key::parse(name).map_err(|_| wrong())?;
    let mut sections: Vec<String> = keys.iter().map(|key| key.get().to_owned()).collect();
    let name = sections.pop().ok_or_else(wrong)?;
    Ok((sections, name))
}

/// Returns the text if it is a valid configuration.
pub(crate) fn checked(text: String, path: &Path) -> Result<String, Failure> {
    Config::parse(&text, path)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::*;

    const WRITTEN: &str = "\
# Mine.
[output]
pager = true # too long otherwise

# Room.
[storage]
budget = \"5 GB\"
";

    fn set_key(text: &str, name: &str, typed: &str) -> Result<String, Failure> {
        set(text, key(name).expect("a key"), typed)
    }

    #[test]
    fn comments_and_order_are_preserved() {
        let changed = set_key(WRITTEN, "output.pager", "no").expect("a flag");
        assert_eq!(changed, WRITTEN.replace("pager = true", "pager = false"));
        let changed = set_key(WRITTEN, "output.entries", "7").expect("a number");
        assert_eq!(changed, WRITTEN.replace("otherwise\n", "otherwise\nentries = 7\n"));
        let back = unset(&changed, "output.entries").expect("a document");
        assert_eq!(back.as_deref(), Some(WRITTEN));
        assert_eq!(unset(WRITTEN, "output.entries").expect("a document"), None);
    }

    #[test]
    fn sections_are_created_and_all_notations_are_accepted() {
        assert_eq!(set_key("", "history.depth", "3").expect("a number"), "[history]\ndepth = 3\n");
        for text in ["history.depth = 1\n", "history = { depth = 1 }\n", "[history]\ndepth = 1\n"] {
            let changed = set_key(text, "history.depth", "3").expect("a number");
            assert_eq!(changed, text.replace('1', "3"));
            assert_eq!(
                get(&changed, "history.depth").expect("a document").and_then(|v| v.as_integer()),
                Some(3)
            );
        }
    }

    #[test]
    fn keys_of_providers_and_prices_are_set_and_validated() {
        let path = Path::new("config.toml");
        for (name, typed, expected) in [
            ("providers.local.base_url", "http://x", Some("[providers.local]\nbase_url = \"http://x\"\n")),
            ("providers.local.images", "true", Some("[providers.local]\nimages = true\n")),
            ("providers.local.stall_seconds", "5", Some("[providers.local]\nstall_seconds = 5\n")),
            ("providers.azure.api_version", "2026", Some("[providers.azure]\napi_version = \"2026\"\n")),
            (
                "providers.local.models",
                "[\"a\", \"b\"]",
                Some("[providers.local]\nmodels = [\"a\", \"b\"]\n"),
            ),
            ("providers.local.headers.X-Team", "7", Some("[providers.local.headers]\nX-Team = \"7\"\n")),
            ("providers.\"a.b\".wire", "chat", Some("[providers.\"a.b\"]\nwire = \"chat\"\n")),
            ("providers.local.base-url", "x", None),
            ("providers.local.images", "perhaps", None),
        ] {
            assert!(is_free(name), "{name}");
            let set = set_free("", name, typed, path).ok();
            assert_eq!(set.as_deref(), expected, "{name}");
            if let Some(set) = set {
                assert!(unset(&set, name).expect("a document").is_some(), "{name}");
            }
        }
        for (name, free, secret) in [
            ("storage.budget", false, false),
            ("providers.local", false, false),
            ("providers.local.key", true, true),
            ("providers.local.headers.Authorization", true, true),
            ("providers.local.key_env", true, false),
        ] {
            assert_eq!((is_free(name), is_secret(name)), (free, secret), "{name}");
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        for (name, typed) in [
            ("output.pager", "maybe"),
            ("output.entries", "-1"),
            ("output.entries", "many"),
            ("history.depth", "99999999999999999999"),
            ("storage.budget", "5 parsecs"),
        ] {
            assert!(set_key("", name, typed).is_err(), "{name} {typed}");
        }
        for name in ["", "a..b", "providers..key"] {
            assert!(get("", name).is_err() && unset("", name).is_err(), "{name:?}");
        }
        assert!(set_key("history = 1\n", "history.depth", "3").is_err());
        assert!(set_key("not toml", "history.depth", "3").is_err());
    }
}
