//! Every key of the configuration: what it takes, what it is without being set, and what it is for.

use crate::failure::{Code, Failure};

/// One key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The section and the name in it.
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// What it is unless it is set, as TOML; `None` if that is nothing fixed.
    pub(crate) default: Option<&'static str>,
    pub(crate) purpose: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Path,
    Size,
    Number,
    Flag,
    Text,
    /// Texts, with commas between them.
    List,
}

impl Takes {
    /// In words, for people and programs alike.
    pub(crate) fn words(self) -> &'static str {
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
pub(crate) const KEYS: [Key; 24] = [
    Key {
        name: "storage.folder",
        takes: Takes::Path,
        default: None,
        purpose: "where the store lives; RETAKE_HOME goes before it",
    },
    Key {
        name: "storage.budget",
        takes: Takes::Size,
        default: None,
        purpose: "warn before the store grows beyond this, such as \"5 GB\"; nothing is ever deleted for it",
    },
    Key {
        name: "storage.gc_grace_days",
        takes: Takes::Number,
        default: Some("14"),
        purpose: "how many days gc leaves garbage alone",
    },
    Key {
        name: "history.depth",
        takes: Takes::Number,
        default: Some("0"),
        purpose: "how many changes undo reaches back; 0 for all of them",
    },
    Key {
        name: "history.typing_pause_ms",
        takes: Takes::Number,
        default: Some("2000"),
        purpose: "typing that pauses for less than this is one undo step",
    },
    Key { name: "output.pager", takes: Takes::Flag, default: Some("true"), purpose: "page long output" },
    Key {
        name: "output.entries",
        takes: Takes::Number,
        default: Some("50"),
        purpose: "how many entries `thread show` shows",
    },
    Key {
        name: "files.enabled",
        takes: Takes::Flag,
        default: Some("true"),
        purpose: "whether takes bring their files along; undo and redo do in any case",
    },
    Key {
        name: "files.confirm",
        takes: Takes::Flag,
        default: Some("true"),
        purpose: "on a terminal, show what files would do and ask before they do it",
    },
    Key {
        name: "files.budget",
        takes: Takes::Size,
        default: None,
        purpose: "how much of the store one project may take; `usage --projects` compares, `purge --to-fit` plans",
    },
    Key {
        name: "files.largest",
        takes: Takes::Size,
        default: Some("104857600"),
        purpose: "files that are larger are not held",
    },
    Key {
        name: "files.include",
        takes: Takes::List,
        default: Some("[]"),
        purpose: "patterns, as in .gitignore, of what is held even if it is ignored or likely a secret",
    },
    Key {
        name: "files.exclude",
        takes: Takes::List,
        default: Some("[]"),
        purpose: "patterns of what is not held, beside .gitignore, .ignore and .retakeignore",
    },
    Key {
        name: "files.secrets",
        takes: Takes::List,
        default: Some("[]"),
        purpose: "patterns of what is likely a secret, beyond the usual",
    },
    Key {
        name: "agent.provider",
        takes: Takes::Text,
        default: None,
        purpose: "who serves the model; one of `retake models`",
    },
    Key {
        name: "agent.model",
        takes: Takes::Text,
        default: None,
        purpose: "which model answers, where a thread does not say",
    },
    Key {
        name: "agent.approval",
        takes: Takes::Text,
        default: Some("\"ask\""),
        purpose: "what tools may do without being asked about: ask, edits, all or none",
    },
    Key {
        name: "agent.effort",
        takes: Takes::Text,
        default: None,
        purpose: "how hard a model thinks: off, low, medium, high or max",
    },
    Key {
        name: "agent.thinking",
        takes: Takes::Number,
        default: None,
        purpose: "how many tokens a model may think for, where no effort is set",
    },
    Key {
        name: "agent.attempts",
        takes: Takes::Number,
        default: Some("5"),
        purpose: "how often a call that failed is tried",
    },
    Key {
        name: "agent.rounds",
        takes: Takes::Number,
        default: Some("200"),
        purpose: "how often a model is called in one turn before a person has to look",
    },
    Key {
        name: "agent.window",
        takes: Takes::Number,
        default: None,
        purpose: "how many tokens the model takes, where Retake does not know",
    },
    Key {
        name: "serve.listen",
        takes: Takes::Text,
        default: Some("\"127.0.0.1:7878\""),
        purpose: "the address that `retake serve` listens on",
    },
    Key {
        name: "serve.hosts",
        takes: Takes::List,
        default: Some("[]"),
        purpose: "names that the server may be called by, beside those of this machine",
    },
];

/// The key of that name; otherwise a failure that names those it may have been meant for.
pub(crate) fn key(name: &str) -> Result<&'static Key, Failure> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let near = near(name);
        let hint = match near.as_slice() {
            [] => "`retake config list` shows all keys".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Failure::new(Code::Usage, format!("there is no key {name:?}; {hint}")).with("near", near)
    })
}

/// Keys that a name may have been meant for, the nearest first.
fn near(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let mut found: Vec<(usize, usize, &'static str)> = KEYS
        .iter()
        .filter_map(|key| {
            let (_, last) = key.name.rsplit_once('.').expect("every key has a section");
            let typed = name.rsplit_once('.').map_or(name.as_str(), |(_, typed)| typed);
            let whole = distance(&name, key.name);
            let distance = distance(typed, last).min(whole);
            // Two sections may have a key of one name: the section that was typed goes before the other.
            (distance <= (last.len() / 3).max(1)).then_some((distance, whole, key.name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, name)| name).take(3).collect()
}

/// How many letters must be added, dropped or replaced to make one word the other.
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
    fn misspelt_keys_find_their_neighbours() {
        let check = |name: &str, expected: &[&str]| assert_eq!(near(name), expected, "{name}");
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
