//! `retake thread pull`

use clap::Args;
use retake_model::id::{ProjectId, ThreadId};
use retake_sync::remote::RemoteThread;
use retake_sync::session::{Projects, RoundError};
use retake_timeline::Caller;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::remotes::OpenRemote;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Bring a thread from a remote to this machine, or up to date, and make it current.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread list --remote
  retake thread pull 7f3kq2p9
  retake thread pull 7f3kq2p9 && retake -c

The folder must be the thread's project: a clone of the same repository, a folder with the same .retake-project, or one that \
`retake project link` names. Files do not change.")]
pub(crate) struct Arguments {
    /// Thread: id prefix, or its title on the remote.
    thread: String,
    /// The remote [default: all].
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    title: String,
    new: bool,
    pulled: u64,
    pushed: u64,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let (open, found) = find(context, self.remote.as_deref(), &self.thread)?;
        let session = open.session(context)?;
        let project = project_of(context, &open, &found)?;
        let done = session.exchange(found.thread, project, context.timeline()?.now().millis())?;
        if let Some(reason) = done.paused {
            let reason = crate::commands::sync::pause_reason(reason);
            return Err(Failure::new(Code::Conflict, format!("the thread was not changed: {reason}")));
        }
        let timeline = context.timeline()?;
        context.switch_thread(found.thread, Caller::human())?;
        let answer = Answer {
            thread: found.thread,
            title: timeline.read()?.thread(found.thread)?.summary.title,
            new: done.is_new,
            pulled: done.pulled,
            pushed: done.pushed,
        };
        context.report(&answer, |out, _| {
            let title = sanitize(&answer.title, LineBreaks::Fold);
            let received = counted(answer.pulled, "operation", "operations");
            writeln!(out, "{title} is here and current; received {received}. Continue with `retake -c`.")
        })
    }
}

/// Finds a thread on the remotes.
pub(crate) fn find(
    context: &Context,
    remote: Option<&str>,
    named: &str,
) -> Result<(OpenRemote, RemoteThread), Failure> {
    let mut candidates = Vec::new();
    for config in context.chosen_remotes(remote)? {
        let open = context.open_remote(config)?;
        for thread in open.remote().threads().map_err(RoundError::from)? {
            let is_id = named.len() >= 4 && thread.thread.to_string().starts_with(&named.to_lowercase());
            if is_id || thread.head.summary.title == named {
                candidates.push((open.config.clone(), thread));
            }
        }
    }
    candidates.sort_by_key(|(_, thread)| (thread.thread, std::cmp::Reverse(thread.head.last)));
    candidates.dedup_by_key(|(_, thread)| thread.thread);
    match candidates.pop() {
        Some((config, thread)) if candidates.is_empty() => Ok((context.open_remote(config)?, thread)),
        None => {
            let message =
                format!("no thread {named:?} on a remote; `retake thread list --remote` lists them");
            Err(Failure::new(Code::NotFound, message))
        }
        Some(last) => {
            candidates.push(last);
            let ids: Vec<String> = candidates.iter().map(|(_, thread)| thread.thread.to_string()).collect();
            let message = format!("{named:?} is ambiguous: {}", ids.join(", "));
            Err(Failure::new(Code::Refused, message).with("candidates", ids))
        }
    }
}

/// The project of a remote thread on this machine.
fn project_of(context: &Context, open: &OpenRemote, found: &RemoteThread) -> Result<ProjectId, Failure> {
    let timeline = context.timeline()?;
    if let Ok(row) = timeline.read()?.thread(found.thread) {
        return Ok(row.home);
    }
    // The folder may not be a project yet, and may become one, such as a fresh clone.
    let here = context.project_or_create()?.id;
    let mut projects = Projects::of(timeline, &open.remotes)?;
    let matching = projects.matching(&found.head.summary.project);
    projects.save(&open.remotes).map_err(RoundError::from)?;
    match matching[..] {
        _ if matching.contains(&here) => Ok(here),
        [project] => Ok(project),
        _ => {
            let key = &found.head.summary.project;
            let whose = match (&key.git_remote, &key.id) {
                (Some(remote), _) => format!("the repository {remote}"),
                (None, Some(id)) => format!("the project {id}"),
                (None, None) => "an unnamed project".to_owned(),
            };
            let id = found.thread.short();
            let message = format!(
                "the thread belongs to {whose}, and this folder is not certainly the same project. \
                 If it is, run `retake project link {id}` here, and pull again"
            );
            Err(Failure::new(Code::Refused, message))
        }
    }
}
