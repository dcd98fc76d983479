//! A line that is typed without being shown.

use std::io::{self, BufRead, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::signals::Foreground;

/// Maximum number of bytes to read.
const MOST: usize = 16 * 1024;

/// Restores the settings of the terminal when dropped.
struct RestoreOnDrop(Termios);

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Asks on the terminal; `None` if the user cancelled with Ctrl-C or Ctrl-D.
pub(crate) fn read_hidden(question: &str) -> io::Result<Option<String>> {
    // A signal that ends the program restores the terminal first.
    let foreground = Foreground::begin()?;
    foreground.started(0);
    let before = tcgetattr(io::stdin())?;
    let mut hidden = before.clone();
    // Ctrl-C comes as a character: the terminal is never left without echo.
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    let terminal = RestoreOnDrop(before);
    tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
    write!(io::stderr(), "{question}")?;
    io::stderr().flush()?;
    let line = read_line(io::stdin().lock());
    drop(terminal);
    writeln!(io::stderr())?;
    foreground.end();
    line
}

/// Reads the input up to the end of the line.
fn read_line(input: impl BufRead) -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    for byte in input.bytes() {
        match byte? {
            b'\r' | b'\n' => return Ok(Some(String::from_utf8_lossy(&typed).into_owned())),
            // Ctrl-C, Ctrl-D.
            0x03 | 0x04 => return Ok(None),
            // Backspace, Ctrl-U.
            0x7f | 0x08 => _ = typed.pop(),
            0x15 => typed.clear(),
            byte if typed.len() < MOST => typed.push(byte),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_enter_and_can_be_given_up() {
        let check = |typed: &[u8], expected: Option<&str>| {
            assert_eq!(read_line(typed).expect("no error"), expected.map(str::to_owned), "{typed:?}");
        };
        check(b"sk-1\r", Some("sk-1"));
        check(b"sx\x7fk-1\nrest", Some("sk-1"));
        check(b"wrong\x15sk-1\n", Some("sk-1"));
        check(b"sk-1\x03\n", None);
        check(b"\x04", None);
        check(b"sk-1", None);
    }
}
