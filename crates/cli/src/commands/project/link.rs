//! `retake project link`

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use clap::Args;
use retake_sync::projects::{ID_FILE, id_file, is_id};
use retake_sync::remote::ProjectKey;
use retake_sync::session::{Projects, RoundError};
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use crate::commands::thread::pull;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Say that this folder is the same project as one on another machine. Without an argument, show what identifies it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project link                   what identifies this project on other machines
  retake project link 7f3kq2p9          it is the project of that thread on a remote
  retake project link --file            write .retake-project, to be committed

Clones of one repository are recognized without a link: by the address of the remote and the first commit.")]
pub(crate) struct Arguments {
    /// A thread on a remote (id prefix or title), or the id of a project on another machine.
    project: Option<String>,
    /// Write the id to .retake-project in this folder.
    #[arg(long, conflicts_with = "project")]
    file: bool,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    key: ProjectKey,
    /// Keys of other machines' projects that are linked with this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    linked: Vec<ProjectKey>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project_or_create()?;
        let (timeline, remotes) = (context.timeline()?, context.remotes()?);
        if let Some(named) = &self.project {
            let mut table = remotes.projects()?;
            let link = table.link_mut(project.id);
            match pull::find(context, None, named) {
                Ok((_, found)) => {
                    let key = found.head.summary.project;
                    if !link.also.contains(&key) {
                        link.also.push(key);
                    }
                }
                // A remote that cannot be reached might have a thread with this title.
                Err(failure) if failure.code == Code::NotFound && is_id(named) => {
                    link.id = Some(named.clone());
                }
                Err(failure) => return Err(failure),
            }
            remotes.put_projects(&table)?;
        }
        if self.file {
            let id = remotes.projects()?.link(project.id).id.unwrap_or_else(|| project.id.to_string());
            write(&path_from_text(&project.path).join(ID_FILE), &id_file(&id))?;
        }
        let mut projects = Projects::of(timeline, &remotes)?;
        let key = projects.key_of(project.id);
        projects.save(&remotes).map_err(RoundError::from)?;
        let answer = Answer { key, linked: remotes.projects()?.link(project.id).also };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let mut row = |name: &str, value: &Option<String>| match value {
                Some(value) => {
                    writeln!(out, "{muted}{name:>12}{muted:#}  {}", sanitize(value, LineBreaks::Fold))
                }
                None => Ok(()),
            };
            row("id", &answer.key.id)?;
            row("repository", &answer.key.git_remote)?;
            row("first commit", &answer.key.root_commit)?;
            for key in &answer.linked {
                row("linked", &key.git_remote.clone().or_else(|| key.id.clone()))?;
            }
            Ok(())
        })
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Code::FilesFailed, format!("{}: {error}", path.display()));
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(failed),
        // It identifies the project already, perhaps on other machines too.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::new(
            Code::Refused,
            format!("{} exists already; nothing was written", path.display()),
        )),
        Err(error) => Err(failed(error)),
    }
}
