//! The environment of commands, without keys.
//!
//! A command may print its environment, and its output is sent to the provider.

use std::ffi::OsString;

use crate::tools::ToolContext;

/// The variables of a command.
pub(super) fn visible(context: &ToolContext) -> Vec<(OsString, OsString)> {
    let mut visible: Vec<(OsString, OsString)> = context
        .environment
        .iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            // The folder is set by descriptor; an inherited path would contradict it.
            !is_key(&name) && !context.hidden.contains(&name.to_string()) && name != "PWD" && name != "OLDPWD"
        })
        .cloned()
        .collect();
    visible.retain(|(name, _)| !FIXED_VARIABLES.iter().any(|(set, _)| name == set));
    visible.extend(FIXED_VARIABLES.iter().map(|(name, value)| (name.into(), value.into())));
    without_file_watcher(&mut visible);
    visible
}

/// For non-interactive use: no pager, prompts or colours.
const FIXED_VARIABLES: [(&str, &str); 4] =
    [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Whether a variable name looks like a key.
fn is_key(name: &str) -> bool {
    let name = name.to_uppercase();
    let ends = ["API_KEY", "APIKEY", "_KEY", "TOKEN", "_PAT"];
    let parts = ["SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
    ends.iter().any(|end| name.ends_with(end)) || parts.iter().any(|part| name.contains(part))
}

/// A repository can configure a program that git runs on every status. Tools cannot write such a
/// configuration, but a cloned or unpacked repository may contain one.
fn without_file_watcher(variables: &mut Vec<(OsString, OsString)>) {
    const COUNT: &str = "GIT_CONFIG_COUNT";
    let given = variables.iter().find(|(name, _)| name == COUNT);
    let number = given.and_then(|(_, value)| value.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    variables.retain(|(name, _)| name != COUNT);
    variables.push((COUNT.into(), (number + 1).to_string().into()));
    variables.push((format!("GIT_CONFIG_KEY_{number}").into(), "core.fsmonitor".into()));
    variables.push((format!("GIT_CONFIG_VALUE_{number}").into(), "false".into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognised_by_their_names() {
        for key in [
            "ANTHROPIC_API_KEY",
            "OPENAI_APIKEY",
            "GH_TOKEN",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "CLIENT_SECRETS",
            "PGPASSWORD",
            "GITHUB_PAT",
            "TOKEN",
        ] {
            assert!(is_key(key), "{key}");
        }
        for other in
            ["PATH", "HOME", "LANG", "KEYBOARD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "CARGO_HOME"]
        {
            assert!(!is_key(other), "{other}");
        }
    }
}
