//! `retake run`

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use clap::Args;
use retake_agent::{Beginning, check_start_commit};
use retake_model::command::{Prompt, check_prompt};
use retake_model::entry::{EntryVersion, attachment_media_of, default_role, preview};
use retake_model::settings::Settings;
use retake_timeline::{ChangeError, Command, CreateError, Done, NewThread};

use super::entry::picture;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::desk::FileFlags;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;

/// Run a turn: send a prompt to the agent and show its work.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake run \"Why does the login test fail?\"
    retake run --approve edits \"Fix it\"           write files without asking; ask before commands
    cargo test 2>&1 | retake run \"What is wrong?\"  adds the piped text to the prompt
  retake run --model anthropic/claude-sonnet-4-5 \"Once more, with care\"
  retake run --attach spec.pdf \"Which of these are done?\"
  retake run --json \"…\"                         one event per line

If there is no thread, one is created. A turn is one undo step, including its file changes. Ctrl-C, or `retake stop` in
another terminal, stops the turn and saves the partial answer. Without any configuration, Retake's offline assistant
answers: it is not a model, but it uses real tools and lists what it can do.

The answer goes to standard output, everything else to standard error. If the session is not interactive, calls that
need approval are denied. Exit codes: 0 answered, 1 failed, 130 interrupted.")]
pub(crate) struct Arguments {
    /// Prompt [default: standard input, or the draft with --draft].
    prompt: Vec<String>,
    /// Send the take's draft.
    #[arg(long, conflicts_with = "prompt")]
    draft: bool,
    /// Create a new thread.
    #[arg(long, conflicts_with_all = ["thread", "take", "draft"])]
    new: bool,
    /// Refuse unless the thread's start commit is checked out, and print how to return to it.
    #[arg(long, conflicts_with = "new")]
    at_start_commit: bool,
    /// A picture (png, jpg, gif, webp) or a PDF document to attach; may be given several times.
    #[arg(short = 'i', long, visible_alias = "image", value_name = "FILE")]
    attach: Vec<std::path::PathBuf>,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let text = if self.draft { String::new() } else { prompt(&self.prompt)? };
        if !self.draft && text.trim().is_empty() && self.attach.is_empty() {
            return Err(Failure::new(
                Code::Usage,
                "no prompt: pass it as an argument, through a pipe, or with --draft",
            ));
        }
        // All refusals come before a thread is created or a take is switched.
        let target = TurnTarget::find(context, &self.target, self.new)?;
        if self.at_start_commit {
            target.check_start_commit(context)?;
        }
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        let role = target.role(context)?;
        let prompt = if self.draft {
            target.check_draft(&role)?;
            Prompt::Draft { role: Some(role) }
        } else {
            let version = EntryVersion::from_text(&role, &text, context.now());
            let pictures = self.attach.iter().map(|path| picture::read(path)).collect::<Result<_, _>>()?;
            let entry = picture::attach(version, pictures)?;
            check_prompt(&entry.version).map_err(ChangeError::from)?;
            for bytes in &entry.blobs {
                let media = attachment_media_of(bytes).unwrap_or_default();
                backend
                    .check_attachment(media, bytes.len())
                    .map_err(|error| Failure::new(Code::Refused, error))?;
            }
            Prompt::Entry(entry)
        };
        target.check_place(context)?;
        let (meant, expected) = target.prepare(context, &self.target, &text)?;
        let shop = context.workshop_with(backend, (meant.thread.summary.id, meant.take.id), &self.agent)?;
        let beginning =
            Beginning { prompt, settings: self.agent.settings(context, &settings), expected, request: None };
        let (thread, take) = (meant.thread.summary.id, meant.take.id);
        let outcome = context.watched((thread, Some(take)), |cancel, audience| {
            shop.run(thread, take, beginning, cancel, audience)
        })?;
        Ok(exit(&outcome))
    }
}

/// The prompt: the arguments, followed by piped input.
fn prompt(words: &[String]) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if words == ["-"] {
        text.clear();
    }
    // An idle pipe must not block if the prompt was given as an argument.
    let piped = !io::stdin().is_terminal() && (text.is_empty() || something_is_piped());
    if piped {
        let mut rest = String::new();
        io::stdin().take(crate::ui::input::LIMIT).read_to_string(&mut rest)?;
        if !rest.trim().is_empty() {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(rest.trim_end_matches('\n'));
        }
    }
    Ok(text)
}

/// Whether standard input is a pipe or a file, and not a null device or an inherited stream that never ends.
fn something_is_piped() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let Ok(copy) = io::stdin().as_fd().try_clone_to_owned() else { return false };
    let kind = std::fs::File::from(copy).metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// The thread and take of a turn.
pub(super) enum TurnTarget {
    /// Existing ones; the take may have to be switched to.
    There(Box<Meant>),
    /// A thread that is created for the turn.
    NewThread,
}

impl TurnTarget {
    /// Resolves the target without changing anything.
    pub(super) fn find(context: &Context, target: &Target, new: bool) -> Result<Self, Failure> {
        let looking = context.timeline()?.look()?;
        let in_use = |thread| looking.thread(thread).is_ok_and(|row| row.summary.deleted.is_none());
        let chosen = environment("RETAKE_THREAD").is_some_and(|text| !text.trim().is_empty());
        let current = chosen || context.project()?.current.is_some_and(in_use);
        if new || (target.thread.is_none() && !current) {
            if target.take.is_some() || target.expect.is_some() {
                // These options refer to an existing thread.
                context.meant(&looking, target)?;
            }
            return Ok(Self::NewThread);
        }
        Ok(Self::There(Box::new(context.meant(&looking, target)?)))
    }

    /// The settings of the turn.
    pub(super) fn settings(&self, context: &Context) -> Result<Settings, Failure> {
        match self {
            Self::There(meant) => {
                Ok(context.timeline()?.look()?.effective_settings(meant.thread.summary.id)?)
            }
            Self::NewThread => Ok(Settings::default()),
        }
    }

    /// The role of the user's messages.
    pub(super) fn role(&self, context: &Context) -> Result<String, Failure> {
        let roles = match self {
            Self::There(meant) => meant.roles.clone(),
            Self::NewThread => context.timeline()?.look()?.project_roles(context.project()?.id)?,
        };
        Ok(default_role(&roles).to_owned())
    }

    /// Refuses unless the thread's start commit is checked out.
    pub(super) fn check_start_commit(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::There(meant) => {
                Ok(check_start_commit(context.timeline()?, meant.thread.summary.id, meant.take.id)?)
            }
            Self::NewThread => Err(Failure::new(
                Code::Refused,
                "there is no thread yet, so it has no start commit; omit --at-start-commit",
            )),
        }
    }

    /// Opens the folder of the turn without changing anything.
    pub(super) fn check_place(&self, context: &Context) -> Result<(), Failure> {
        context.check_place(match self {
            Self::There(meant) => Some((meant.thread.summary.id, meant.take.id)),
            Self::NewThread => None,
        })
    }

    /// Refuses to send an empty draft, or one whose role is not a prompt role.
    fn check_draft(&self, role: &str) -> Result<(), Failure> {
        match self {
            Self::There(meant) if !meant.take.draft.trim().is_empty() || !meant.take.attached.is_empty() => {
                let entry = meant.take.clone().take_draft(role, meant.take.created);
                Ok(check_prompt(&entry).map_err(ChangeError::from)?)
            }
            _ => Err(Failure::new(Code::Refused, "the draft is empty; `retake draft set` writes one")),
        }
    }

    /// Creates the thread, or switches to the take whose files are not in the folder. Also returns the version that the
    /// turn expects, which follows the switch if there was one.
    pub(super) fn prepare(
        self,
        context: &Context,
        target: &Target,
        text: &str,
    ) -> Result<(Meant, Option<u64>), Failure> {
        let meant = match self {
            Self::There(meant) => *meant,
            Self::NewThread => {
                // The title is taken from the first line of the prompt.
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let done = new_thread(context, &preview(first))?;
                context.remark(&format!("Created thread “{}”.", done.summary.title))?;
                let target = Target { thread: Some(done.thread.to_string()), ..Target::default() };
                return Ok((context.meant(&context.timeline()?.look()?, &target)?, None));
            }
        };
        let open = context.timeline()?.look()?.apart_folder_of(meant.thread.summary.id, meant.take.id)?;
        if meant.take.id == meant.state.active || open.is_some() {
            return Ok((meant, target.expect));
        }
        let switch = Command::Switch { take: meant.take.id };
        context.change_takes(meant.thread.summary.id, switch, target.expect, FileFlags::default())?;
        context.remark(&format!("Switched to take {}.", meant.take.name))?;
        let meant = context.meant(&context.timeline()?.look()?, target)?;
        let expected = target.expect.map(|_| meant.thread.summary.version);
        Ok((meant, expected))
    }
}

/// Creates a thread titled after the prompt and makes it current.
fn new_thread(context: &Context, title: &str) -> Result<Done, Failure> {
    // Characters that are not allowed in a title are dropped; the prompt is unchanged.
    let title = retake_model::name::for_title(title);
    let project = context.project()?;
    let mut number = 1;
    loop {
        let title = match number {
            _ if title.trim().is_empty() => None,
            1 => Some(title.clone()),
            number => Some(format!("{title} ({number})")),
        };
        let new = NewThread { title, current: true, ..NewThread::in_project(project.id) };
        match context.timeline()?.create_thread_in(project, new, context.caller_here(None)?) {
            // Another thread already has this title.
            Err(CreateError::Change(ChangeError::TitleTaken(_))) => number += 1,
            other => {
                let done = other?;
                // A new folder becomes a project.
                context.own_project()?;
                return Ok(done);
            }
        }
    }
}
