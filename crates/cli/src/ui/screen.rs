//! The size of what we write to.

use std::io::{self, IsTerminal};

/// Where standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A terminal of this size.
    Terminal { columns: usize, rows: usize },
    /// A pipe or a file: nothing is cut, nothing is paged.
    None,
}

impl Screen {
    /// The screen behind standard output, now. Terminals that do not tell their size get the classic one.
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

    /// The columns that lines must fit into, if there is a limit.
    pub(crate) fn columns(self) -> Option<usize> {
        match self {
            Self::Terminal { columns, .. } => Some(columns),
            Self::None => None,
        }
    }

    /// The columns to lay running text out for: no wider than reads well, also into a pipe.
    pub(crate) fn text_columns(self) -> usize {
        const READABLE: usize = 100;
        self.columns().unwrap_or(READABLE).min(READABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_laid_out_wider_than_reads_well() {
        for (columns, wanted) in [(40, 40), (100, 100), (300, 100)] {
            assert_eq!(Screen::Terminal { columns, rows: 24 }.text_columns(), wanted);
        }
        assert_eq!(Screen::None.text_columns(), 100);
        assert_eq!(Screen::None.columns(), None);
    }
}
