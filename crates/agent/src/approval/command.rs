//! Patterns for commands.
//!
//! Allowing and denying are not symmetric. A pattern allows only commands that are plain words for a shell, without
//! operators or substitutions. A pattern denies a command also after `;`, `sudo` or with a path. Denials protect against
//! accidents only, because a command can be obfuscated; protection against malice comes from asking about everything
//! that is not allowed.
//!
//! ```text
//!   cargo *      allows   cargo   cargo test           not   cargo test; rm -rf ~     cargo test $(id)
//!   rm *         denies   rm x    cd /; sudo /bin/rm x       "rm" -r x                not   git rm x
//! ```

/// A command with `*` for any characters; a final ` *` also matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern(String);

/// Characters that make a shell do more than start one program.
const SHELL_METACHARACTERS: [char; 9] = [';', '&', '|', '`', '$', '(', ')', '<', '>'];

/// Wrappers and keywords that precede the actual command.
const WRAPPER_COMMANDS: [&str; 16] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "time", "nice", "xargs", "setsid", "then",
    "do", "else", "!", "{",
];

impl CommandPattern {
    pub(super) fn new(text: &str) -> Self {
        Self(collapse_whitespace(text))
    }

    pub(super) fn allows(&self, command: &str) -> bool {
        is_plain(command) && matches_pattern(&self.0, &collapse_whitespace(command))
    }

    /// Whether it matches a command or a part of it.
    pub(super) fn denies(&self, command: &str) -> bool {
        let unquoted = command.replace(['"', '\'', '\\'], "");
        let parts = |text: &str| {
            text.split(|character: char| SHELL_METACHARACTERS.contains(&character) || character.is_control())
                .any(|part| self.denies_part(part))
        };
        matches_pattern(&self.0, &collapse_whitespace(command)) || parts(command) || parts(&unquoted)
    }

    fn denies_part(&self, part: &str) -> bool {
        let mut words: Vec<&str> = part.split_whitespace().collect();
        loop {
            if matches_pattern(&self.0, &words.join(" ")) {
                return true;
            }
            let Some(first) = words.first().copied() else { return false };
            let program = first.rsplit('/').next().unwrap_or(first);
            if program != first {
                words[0] = program;
            } else if WRAPPER_COMMANDS.contains(&first) || is_assignment(first) || first.starts_with('-') {
                // Skip the options of the wrapper: `sudo -n rm`.
                words.remove(0);
            } else {
                return false;
            }
        }
    }
}

/// Whether a shell sees only plain words.
pub(super) fn is_plain(command: &str) -> bool {
    !command.contains(SHELL_METACHARACTERS)
        && !command.chars().any(|character| character.is_control() && character != '\t')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    })
}

fn collapse_whitespace(text: &str) -> String {
    text.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Matches a pattern with stars, in time proportional to both lengths.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    if pattern.strip_suffix(" *") == Some(text) {
        return true;
    }
    let mut pieces = pattern.split('*');
    let Some(rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let Some(mut middle) = rest.strip_suffix(last) else { return false };
    for piece in pieces {
        let Some(at) = middle.find(piece) else { return false };
        middle = &middle[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_commands_are_allowed() {
        let check = |pattern: &str, command: &str, expected: bool| {
            assert_eq!(CommandPattern::new(pattern).allows(command), expected, "{pattern} {command:?}");
        };
        for good in [
            "cargo",
            "cargo test",
            " cargo   test -p a --lib",
            "cargo\ttest",
            "cargo test 'a b' \"c\" {x,y} *.rs ~",
        ] {
            check("cargo *", good, true);
        }
        for bad in [
            "cargo test; rm -rf ~",
            "cargo test;rm",
            "cargo test && rm x",
            "cargo test & rm x",
            "cargo test || rm x",
            "cargo test | sh",
            "cargo test `id`",
            "cargo test $(id)",
            "cargo test $HOME",
            "cargo test \"$(id)\"",
            "cargo test > ~/.profile",
            "cargo test < /etc/passwd",
            "cargo test <(id)",
            "cargo test\nrm x",
            "cargo test\rrm x",
            "cargo test \\\nrm",
            "cargo test\0",
            "cargo test\u{1b}[2K",
            "cargo test\u{85}rm",
            "cargo-evil test",
            "xcargo test",
            "A=b cargo test",
            "./cargo test",
            "sudo cargo test",
            "CARGO test",
            "",
        ] {
            check("cargo *", bad, false);
        }
        check("cargo test", "cargo test", true);
        check("cargo test", "cargo test --all", false);
        check("cargo * --locked", "cargo test --locked", true);
        check("cargo * --locked", "cargo --locked", false);
        check("cargo*", "cargo", true);
        check("*", "anything at all", true);
        check("*", "anything; at all", false);
        check("a*b*c", "aXbYc", true);
        check("a*b*c", "acb", false);
        check("ab*ba", "aba", false);
    }

    #[test]
    fn denied_commands_are_found_behind_wrappers() {
        let check = |command: &str, expected: bool| {
            assert_eq!(CommandPattern::new("rm *").denies(command), expected, "{command:?}");
        };
        for caught in [
            "rm",
            "rm -rf x",
            "  rm   x",
            "cd x; rm y",
            "cd x&&rm y",
            "true || /bin/rm y",
            "echo a\nrm b",
            "(rm x)",
            "echo $(rm x)",
            "echo `rm x`",
            "sudo rm x",
            "sudo -n /usr/bin/rm x",
            "A=b C=d rm x",
            "env A=b rm x",
            "\\rm x",
            "'rm' x",
            "r\"m\" x",
            "find . | xargs rm -f",
            "if true; then rm x; fi",
        ] {
            check(caught, true);
        }
        for other in ["rmdir x", "git rm x", "echo rm x", "cargo test", "", "farm x"] {
            check(other, false);
        }
    }

    #[test]
    fn matching_many_stars_takes_linear_time() {
        let pattern = "*a".repeat(2_000) + "b";
        assert!(!matches_pattern(&pattern, &"a".repeat(100_000)));
    }
}
