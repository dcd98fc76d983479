//! `retake completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

/// Print shell completions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake completions bash > ~/.local/share/bash-completion/completions/retake
  retake completions zsh > ~/.zfunc/_retake
  retake completions fish > ~/.config/fish/completions/retake.fish

bash, zsh and fish also complete threads, takes, turns, entries, models and settings. Their scripts ask the program, so they \
stay valid when it is updated.")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

#[derive(Serialize)]
struct Answer {
    shell: String,
    script: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let script = match self.shell {
            Shell::Bash => BASH.to_owned(),
            Shell::Zsh => ZSH.to_owned(),
            Shell::Fish => FISH.to_owned(),
            other => generated(other),
        };
        let answer = Answer { shell: self.shell.to_string(), script };
        context.answer_verbatim(&answer, &answer.script)
    }
}

/// A script with the commands and options, and without names of the store.
fn generated(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::arguments::Arguments::command(), "retake", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

const BASH: &str = r#"# Completion of retake for bash. The program itself knows its commands and the names in the store.
_retake() {
    local typed="${COMP_LINE:0:COMP_POINT}" word="$2" line value last before
    last="${typed##*[[:space:]]}"
    # Bash replaces only the part of the word behind the last of its word breaks.
    case "$word" in
        = | :) word="" ;;
    esac
    before="${last%"$word"}"
    COMPREPLY=()
    while IFS= read -r line; do
        value="${line%%$'\t'*}"
        COMPREPLY+=("${value#"$before"}")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete --line "$typed" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _retake retake
"#;

const ZSH: &str = r#"#compdef retake
# Completion of retake for zsh. The program itself knows its commands and the names in the store.
_retake() {
    local line value
    local -a typed whole partial whole_help partial_help
    typed=("${(@Q)words[2,CURRENT]}")
    for line in "${(@f)$("${(Q)words[1]}" __complete -- "${typed[@]}" 2>/dev/null)}"; do
        [[ -z "$line" ]] && continue
        value="${line%%$'\t'*}"
        if [[ "$value" == *[/=] ]]; then
            partial+=("$value")
            partial_help+=("${line/$'\t'/  -- }")
        else
            whole+=("$value")
            whole_help+=("${line/$'\t'/  -- }")
        fi
    done
    (( ${#whole} )) && compadd -l -d whole_help -a whole
    (( ${#partial} )) && compadd -l -S '' -d partial_help -a partial
    (( ${#whole} + ${#partial} ))
}
if [[ "${funcstack[1]}" == _retake ]]; then
    _retake "$@"
else
    compdef _retake retake
fi
"#;

const FISH: &str = r"# Completion of retake for fish. The program itself knows its commands and the names in the store.
function __retake_complete
    set -l words (commandline -opc)
    $words[1] __complete -- $words[2..-1] (commandline -ct | string unescape) 2>/dev/null
end
complete -c retake -f -k -a '(__retake_complete)'
";
