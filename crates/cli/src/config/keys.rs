//! All configuration keys, with type, default and purpose.

use crate::failure::{Code, Failure};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Section and name.
    pub(crate) name: &'static str,
    pub(crate) value_type: ValueType,
    /// The default as TOML; `None` if there is none.
    pub(crate) default: Option<&'static str>,
    pub(crate) purpose: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Path,
    Size,
    Number,
    Flag,
    Text,
    /// Comma-separated strings.
    List,
}

impl ValueType {
    /// The name of the type, for text and JSON output.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Size => "size",
            Self::Number => "number",
            Self::Flag => "true or false",
            Self::Text => "text",
            Self::List => "list",
        }
    }
}

/// All keys, in the order in which they are listed.
pub(crate) const KEYS: [Key; 25] = [
    Key {
        name: "storage.folder",
        value_type: ValueType::Path,
        default: None,
        purpose: "folder of the store; RETAKE_HOME overrides it",
    },
    Key {
        name: "storage.budget",
        value_type: ValueType::Size,
        default: None,
        purpose: "warn when the store approaches this size, such as \"5 GB\"; nothing is deleted",
    },
    Key {
        name: "storage.gc_grace_days",
        value_type: ValueType::Number,
        default: Some("14"),
        purpose: "how many days gc keeps unreferenced content",
    },
    Key {
        name: "history.depth",
        value_type: ValueType::Number,
        default: Some("0"),
        purpose: "how many turns undo can reach; 0 for all",
    },
    Key {
        name: "history.typing_pause_ms",
        value_type: ValueType::Number,
        default: Some("2000"),
        purpose: "typing with shorter pauses is one undo step",
    },
    Key {
        name: "output.pager",
        value_type: ValueType::Flag,
        default: Some("true"),
        purpose: "page long output",
    },
    Key {
        name: "output.entries",
        value_type: ValueType::Number,
        default: Some("50"),
        purpose: "how many entries `thread show` shows",
    },
    Key {
        name: "files.enabled",
        value_type: ValueType::Flag,
        default: Some("true"),
        purpose: "whether making another take active moves files; undo and redo always do",
    },
    Key {
        name: "files.confirm",
        value_type: ValueType::Flag,
        default: Some("true"),
        purpose: "in a terminal, preview file changes and ask first",
    },
    Key {
        name: "files.budget",
        value_type: ValueType::Size,
        default: None,
        purpose: "maximum size of one project; see `usage --projects` and `purge --to-fit`",
    },
    Key {
        name: "files.largest",
        value_type: ValueType::Size,
        default: Some("104857600"),
        purpose: "larger files are excluded",
    },
    Key {
        name: "files.include",
        value_type: ValueType::List,
        default: Some("[]"),
        purpose: "patterns, as in .gitignore, of files to capture even if ignored or likely secret",
    },
    Key {
        name: "files.exclude",
        value_type: ValueType::List,
        default: Some("[]"),
        purpose: "patterns of files to exclude, in addition to .gitignore, .ignore and .retakeignore",
    },
    Key {
        name: "files.secrets",
        value_type: ValueType::List,
        default: Some("[]"),
        purpose: "patterns of likely secrets, in addition to the built-in ones",
    },
    Key {
        name: "agent.provider",
        value_type: ValueType::Text,
        default: None,
        purpose: "default provider; `retake models` lists them",
    },
    Key { name: "agent.model", value_type: ValueType::Text, default: None, purpose: "default model" },
    Key {
        name: "agent.approval",
        value_type: ValueType::Text,
        default: Some("\"ask\""),
        purpose: "what tools may do without approval: ask, edits, all or none",
    },
    Key {
        name: "agent.effort",
        value_type: ValueType::Text,
        default: None,
        purpose: "how hard a model thinks: off, low, medium, high or max",
    },
    Key {
        name: "agent.thinking",
        value_type: ValueType::Number,
        default: None,
        purpose: "thinking budget in tokens, used where no effort is set",
    },
    Key {
        name: "agent.attempts",
        value_type: ValueType::Number,
        default: Some("5"),
        purpose: "how many times a model call is tried",
    },
    Key {
        name: "agent.rounds",
        value_type: ValueType::Number,
        default: Some("200"),
        purpose: "maximum number of model calls in a turn",
    },
    Key {
        name: "agent.window",
        value_type: ValueType::Number,
        default: None,
        purpose: "context window in tokens, for unknown models",
    },
    Key {
        name: "sync.automatic",
        value_type: ValueType::Flag,
        default: Some("true"),
        purpose: "whether commands and `serve` synchronize with remotes in the background",
    },
    Key {
        name: "serve.listen",
        value_type: ValueType::Text,
        default: Some("\"127.0.0.1:7878\""),
        purpose: "address that `retake serve` listens on",
    },
    Key {
        name: "serve.hosts",
        value_type: ValueType::List,
        default: Some("[]"),
        purpose: "accepted host names, in addition to local ones",
    },
];

/// Finds a key by name; the error suggests similar keys.
pub(crate) fn key(name: &str) -> Result<&'static Key, Failure> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let similar_keys = similar_keys(name);
        let hint = match similar_keys.as_slice() {
            [] => "`retake config list` shows all keys".to_owned(),
            similar_keys => format!("did you mean {}?", similar_keys.join(" or ")),
        };
        Failure::new(Code::Usage, format!("unknown key {name:?}; {hint}")).with("suggestions", similar_keys)
    })
}

/// Keys similar to a name, the closest first.
fn similar_keys(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let mut found: Vec<(usize, usize, &'static str)> = KEYS
        .iter()
        .filter_map(|key| {
            let (_, last) = key.name.rsplit_once('.').expect("every key has a section");
            let typed = name.rsplit_once('.').map_or(name.as_str(), |(_, typed)| typed);
            let whole = distance(&name, key.name);
            let distance = distance(typed, last).min(whole);
            // If two sections have the same key, the typed section wins.
            (distance <= (last.len() / 3).max(1)).then_some((distance, whole, key.name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, name)| name).take(3).collect()
}

/// The edit distance of two words.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..to.len() {
            let replaced = diagonal + usize::from(letter != to[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn misspelt_keys_get_suggestions() {
        let check = |name: &str, expected: &[&str]| assert_eq!(similar_keys(name), expected, "{name}");
        check("storage.bugdet", &["storage.budget", "files.budget"]);
        check("budget", &["files.budget", "storage.budget"]);
        check("Output.Pager", &["output.pager"]);
        check("output.page", &["output.pager"]);
        check("storage.pager", &["output.pager"]);
        check("nothing.like.it", &[]);
        check("", &[]);
    }

    #[test]
    fn the_listed_defaults_are_the_real_ones() {
        let mut text = String::new();
        for key in &KEYS {
            if let Some(default) = key.default {
                text = crate::config::set(&text, key, default).expect("defaults are well formed");
            }
        }
        let listed = Config::parse(&text, std::path::Path::new("config.toml")).expect("defaults are valid");
        assert_eq!(format!("{listed:?}"), format!("{:?}", Config::default()));
    }
}
