//! `retake run`

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use clap::Args;
use retake_agent::{TurnRequest, check_start_commit};
use retake_model::agent::TurnEnd;
use retake_model::command::{Prompt, check_prompt};
use retake_model::entry::{EntryVersion, attachment_media_of, default_role, preview};
use retake_model::settings::Settings;
use retake_timeline::{ChangeError, ChangeOutcome, Command, CreateError, NewThread};

use super::entry::picture;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::{Context, ResolvedTarget};
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::working_copy::FileFlags;

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

If there is no thread, one is created. A turn is one undo step, including its file changes. Ctrl-C, or `retake stop` in \
another terminal, stops the turn and saves the partial answer. Without any configuration, Retake's offline assistant \
answers: it is not a model, but it uses real tools and lists what it can do.

The answer goes to standard output, everything else to standard error. If the session is not interactive, calls that \
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
    /// A picture (png, jpg, gif, webp) or a PDF document to attach; can be repeated.
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
        target.check_folder(context)?;
        let (resolved, expected) = target.prepare(context, &self.target, &text)?;
        let runtime =
            context.runtime_with(backend, (resolved.thread.summary.id, resolved.take.id), &self.agent)?;
        let beginning = TurnRequest {
            prompt,
            settings: self.agent.settings(context, &settings),
            expected,
            request: None,
        };
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        let outcome = context.run_watched((thread, Some(take)), |cancel, observer| {
            runtime.run(thread, take, beginning, cancel, observer)
        })?;
        // A stopped turn ends at once, even if nobody reads what it writes.
        if !matches!(outcome.how, TurnEnd::Interrupted | TurnEnd::ShutDown) {
            context.report_place(thread, outcome.take)?;
        }
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
    let piped = !io::stdin().is_terminal() && (text.is_empty() || has_piped_input());
    if piped {
        let mut rest = String::new();
        io::stdin().take(crate::ui::input::MAX_CONTENT_BYTES).read_to_string(&mut rest)?;
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
fn has_piped_input() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let Ok(copy) = io::stdin().as_fd().try_clone_to_owned() else { return false };
    let kind = std::fs::File::from(copy).metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// The thread and take of a turn.
pub(super) enum TurnTarget {
    /// Existing ones; the take may have to be switched to.
    Existing(Box<ResolvedTarget>),
    /// A thread that is created for the turn.
    NewThread,
}

impl TurnTarget {
    /// Resolves the target without changing anything.
    pub(super) fn find(context: &Context, target: &Target, new: bool) -> Result<Self, Failure> {
        let reader = context.timeline()?.read()?;
        let in_use = |thread| reader.thread(thread).is_ok_and(|row| row.summary.deleted.is_none());
        let chosen = environment("RETAKE_THREAD").is_some_and(|text| !text.trim().is_empty());
        let current = chosen || context.project()?.current.is_some_and(in_use);
        if new || (target.thread.is_none() && !current) {
            if target.take.is_some() || target.expect.is_some() {
                // These options refer to an existing thread.
                context.resolve(&reader, target)?;
            }
            return Ok(Self::NewThread);
        }
        Ok(Self::Existing(Box::new(context.resolve(&reader, target)?)))
    }

    /// The settings of the turn.
    pub(super) fn settings(&self, context: &Context) -> Result<Settings, Failure> {
        match self {
            Self::Existing(resolved) => {
                Ok(context.timeline()?.read()?.settings(resolved.thread.summary.id).effective()?)
            }
            Self::NewThread => Ok(Settings::default()),
        }
    }

    /// The role of the user's messages.
    pub(super) fn role(&self, context: &Context) -> Result<String, Failure> {
        let roles = match self {
            Self::Existing(resolved) => resolved.roles.clone(),
            Self::NewThread => context.timeline()?.read()?.project(context.project()?.id).roles()?,
        };
        Ok(default_role(&roles).to_owned())
    }

    /// Refuses unless the thread's start commit is checked out.
    pub(super) fn check_start_commit(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Existing(resolved) => {
                Ok(check_start_commit(context.timeline()?, resolved.thread.summary.id, resolved.take.id)?)
            }
            Self::NewThread => Err(Failure::new(
                Code::Refused,
                "there is no thread yet, so it has no start commit; omit --at-start-commit",
            )),
        }
    }

    /// Opens the folder of the turn without changing anything.
    pub(super) fn check_folder(&self, context: &Context) -> Result<(), Failure> {
        context.check_folder(match self {
            Self::Existing(resolved) => Some((resolved.thread.summary.id, resolved.take.id)),
            Self::NewThread => None,
        })
    }

    /// Refuses to send an empty draft, or one whose role is not a prompt role.
    fn check_draft(&self, role: &str) -> Result<(), Failure> {
        match self {
            Self::Existing(resolved)
                if !resolved.take.draft.trim().is_empty() || !resolved.take.attached.is_empty() =>
            {
                let entry = resolved.take.clone().take_draft(role, resolved.take.created);
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
    ) -> Result<(ResolvedTarget, Option<u64>), Failure> {
        let resolved = match self {
            Self::Existing(resolved) => *resolved,
            Self::NewThread => {
                // The title is taken from the first line of the prompt.
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let done = new_thread(context, &preview(first))?;
                context.note(&format!("Created thread “{}”.", done.summary.title))?;
                let target = Target { thread: Some(done.thread.to_string()), ..Target::default() };
                return Ok((context.resolve(&context.timeline()?.read()?, &target)?, None));
            }
        };
        let open =
            context.timeline()?.read()?.worktrees().of(resolved.thread.summary.id, resolved.take.id)?;
        if resolved.take.id == resolved.state.active || open.is_some() {
            return Ok((resolved, target.expect));
        }
        let switch = Command::Switch { take: resolved.take.id };
        context.change_takes(resolved.thread.summary.id, switch, target.expect, FileFlags::default())?;
        context.note(&format!("Switched to take {}.", resolved.take.name))?;
        let resolved = context.resolve(&context.timeline()?.read()?, target)?;
        let expected = target.expect.map(|_| resolved.thread.summary.version);
        Ok((resolved, expected))
    }
}

/// Creates a thread titled after the prompt and makes it current.
pub(super) fn new_thread(context: &Context, title: &str) -> Result<ChangeOutcome, Failure> {
    // Characters that are not allowed in a title are dropped; the prompt is unchanged.
    let title = retake_model::name::strip_for_title(title);
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
                context.use_in_terminal(done.thread)?;
                // A new folder becomes a project.
                context.project_or_create()?;
                return Ok(done);
            }
        }
    }
}
