//! Confirmation before irreversible actions.

use std::io::{self, BufRead, IsTerminal, Write};

use super::sanitize::{LineBreaks, sanitize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// `--yes`.
    Given,
    Ask,
}

impl Consent {
    pub(crate) fn from_flag(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Ask }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// The question could not be asked; nothing was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfirmError {
    #[error("confirmation required, but there is no terminal; pass --yes to confirm")]
    NoTerminal,
    #[error("could not ask for confirmation")]
    Io(#[from] io::Error),
}

/// Asks on standard error, so that output can still be piped.
pub(crate) fn confirm(question: &str, consent: Consent) -> Result<Answer, ConfirmError> {
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    confirm_on(question, consent, terminal.then(|| (io::stdin().lock(), io::stderr().lock())))
}

fn confirm_on(
    question: &str,
    consent: Consent,
    terminal: Option<(impl BufRead, impl Write)>,
) -> Result<Answer, ConfirmError> {
    match (consent, terminal) {
        (Consent::Given, _) => Ok(Answer::Yes),
        (Consent::Ask, None) => Err(ConfirmError::NoTerminal),
        (Consent::Ask, Some((mut input, mut output))) => Ok(ask(question, &mut input, &mut output)?),
    }
}

/// Asks until the answer is valid. An empty answer or the end of input means no.
fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Answer> {
    let question = sanitize(question, LineBreaks::Keep);
    loop {
        write!(output, "{question} [y/N] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            return Ok(Answer::No);
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Yes),
            "" | "n" | "no" => return Ok(Answer::No),
            _ => writeln!(output, "Please answer y or n.")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        for (typed, wanted, asked) in [
            ("y\n", Answer::Yes, 1),
            (" YES \n", Answer::Yes, 1),
            ("n\n", Answer::No, 1),
            ("\n", Answer::No, 1),
            ("", Answer::No, 1),
            ("maybe\ny\n", Answer::Yes, 2),
            ("maybe", Answer::No, 2),
        ] {
            let mut output = Vec::new();
            let answer =
                ask("Purge \u{1b}[2Jall?", &mut typed.as_bytes(), &mut output).expect("memory does not fail");
            assert_eq!(answer, wanted, "{typed:?}");
            let output = String::from_utf8(output).expect("we write text");
            assert_eq!(output.matches("Purge ␛[2Jall? [y/N]").count(), asked, "{typed:?}");
        }
    }

    #[test]
    fn yes_suppresses_the_prompt() {
        let nobody = None::<(&[u8], Vec<u8>)>;
        let answer = confirm_on("Sure?", Consent::from_flag(true), nobody).expect("nothing is asked");
        assert_eq!(answer, Answer::Yes);
    }

    #[test]
    fn without_a_terminal_the_error_suggests_yes() {
        let nobody = None::<(&[u8], Vec<u8>)>;
        let error =
            confirm_on("Sure?", Consent::from_flag(false), nobody).expect_err("there is nobody to ask");
        assert!(error.to_string().contains("--yes"), "{error}");
    }
}
