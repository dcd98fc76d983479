//! The size of the output.

use std::io::{self, IsTerminal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    Terminal {
        columns: usize,
        rows: usize,
    },
    /// A pipe or a file: nothing is cut or paged.
    None,
}

impl Screen {
    /// The current terminal, or 80×24 if it does not report its size.
    pub(crate) fn detect() -> Self {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Self::None;
        }
        match terminal_size::terminal_size_of(stdout) {
            Some((terminal_size::Width(columns), terminal_size::Height(rows))) if columns > 0 && rows > 0 => {
                Self::Terminal { columns: columns.into(), rows: rows.into() }
            }
            _ => Self::Terminal { columns: 80, rows: 24 },
        }
    }

    /// The width limit for lines, if any.
    pub(crate) fn columns(self) -> Option<usize> {
        match self {
            Self::Terminal { columns, .. } => Some(columns),
            Self::None => None,
        }
    }

    /// The width for running text, capped for readability.
    pub(crate) fn text_columns(self) -> usize {
        const COMFORTABLE_WIDTH: usize = 100;
        self.columns().unwrap_or(COMFORTABLE_WIDTH).min(COMFORTABLE_WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_width_is_capped_for_readability() {
        for (columns, wanted) in [(40, 40), (100, 100), (300, 100)] {
            assert_eq!(Screen::Terminal { columns, rows: 24 }.text_columns(), wanted);
        }
        assert_eq!(Screen::None.text_columns(), 100);
        assert_eq!(Screen::None.columns(), None);
    }
}
