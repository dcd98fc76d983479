//! `retake man`

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Print the manual page, or write the pages of all commands.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake man | man -l -
  retake man --output ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write a page for every command to this folder.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct PageAnswer {
    page: String,
}

#[derive(Serialize)]
struct DirectoryAnswer {
    directory: String,
    pages: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let command = crate::arguments::Arguments::command();
        let Some(directory) = self.output else {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            let answer = PageAnswer { page: String::from_utf8_lossy(&page).into_owned() };
            return context.answer_verbatim(&answer, &answer.page);
        };
        let directory = context.directory().join(directory);
        let fail = |error| Failure::new(Code::Failed, format!("{}: {error}", directory.display()));
        std::fs::create_dir_all(&directory).map_err(fail)?;
        let pages = pages(command);
        for (name, page) in &pages {
            std::fs::write(directory.join(name), page).map_err(fail)?;
        }
        let answer = DirectoryAnswer {
            directory: directory.to_string_lossy().into_owned(),
            pages: pages.into_iter().map(|(name, _)| name).collect(),
        };
        context.report(&answer, |out, _| {
            let pages = counted(answer.pages.len() as u64, "page", "pages");
            writeln!(out, "Wrote {pages} to {}.", sanitize(&answer.directory, LineBreaks::Fold))
        })
    }
}

/// The pages of a command and its subcommands: `retake-entry-add.1` and so on.
fn pages(mut command: clap::Command) -> Vec<(String, Vec<u8>)> {
    // Fills in inherited values: global options and full command names.
    command.build();
    let mut pages = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(
            command
                .get_subcommands()
                .filter(|below| !below.is_hide_set() && below.get_name() != "help")
                .cloned(),
        );
        let man = Man::new(command);
        let mut page = Vec::new();
        man.render(&mut page).expect("writing to memory cannot fail");
        pages.push((man.get_filename(), page));
    }
    pages.sort();
    pages
}
