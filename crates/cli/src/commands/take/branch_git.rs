//! `retake take branch-git`

use std::env;
use std::path::PathBuf;

use clap::Args;
use retake_model::take::Take;
use retake_timeline::{GitBranchBase, GitBranchRequest};
use retake_workspace::git::{BranchReport, GitIdentity};
use serde::Serialize;

use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{count, counted};
use crate::ui::progress::{Progress, ProgressMode};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Write the files of a take as a commit on a new git branch.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take branch-git retake/login            the active take
  retake take branch-git second-try -k second    another take
  retake take branch-git login -m \"Fix the login\" --author \"Ada <ada@example.org>\"
  retake take branch-git retake/login --dry-run  what the commit would change
  git merge retake/login                         then use it like any other branch

The only command that writes to a git repository: new objects, and one new branch. Nothing is checked out; the index, the \
stash, the files and the current branch stay as they are, and no hook or filter runs. The parent is the commit that is \
checked out, or for a take that is not active the one that was when the take last changed. The message lists the turns.

Files that Retake does not record (ignored ones, likely secrets, files above the size limit) are as in the parent, and \
absent if it does not have them. Submodules stay as they are. The author is git's user.name and user.email, but from no \
included file.")]
pub(crate) struct Arguments {
    /// Name of the new branch.
    branch: String,
    /// First lines of the commit message [default: the title of the thread and the name of the take].
    #[arg(short, long)]
    message: Option<String>,
    /// Author and committer: `Name <address>` [default: the user whom git knows].
    #[arg(long, value_name = "AUTHOR")]
    author: Option<String>,
    /// Only show what the commit would change.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    /// The name of the take.
    take: String,
    #[serde(flatten)]
    report: BranchReport,
    /// Added folders of the project, which are not in the commit.
    other_roots: Vec<String>,
    /// Whether the folder has edits that are not recorded yet and that this dry run ignores.
    unrecorded: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let reader = timeline.read()?;
        let resolved = context.resolve(&reader, &Target::from(&self.target))?;
        let (thread, take) = (resolved.thread.summary.id, resolved.take.clone());
        let active = reader.state(thread)?.active;
        drop(reader);
        let author = match &self.author {
            Some(text) => Some(GitIdentity::parse(text).ok_or_else(|| {
                Failure::new(Code::Usage, format!("`{text}` is not an author; write \"Name <address>\""))
            })?),
            None => identity_of_environment(),
        };
        let is_here = context.worktree_of(thread)?.unwrap_or(active) == take.id;
        let (mut unrecorded, mut files) = (false, None);
        if is_here {
            let working_copy = context.working_copy_of(thread)?;
            if self.dry_run {
                let status = working_copy.status(0)?;
                (unrecorded, files) = (status.changed_count > 0, status.last);
            } else {
                files = Some(working_copy.record_changes(thread, context.caller(thread, None)?)?.snapshot);
            }
        }
        let folder = timeline.folder_of_project(resolved.thread.home)?;
        let reader = timeline.read()?;
        let history = reader.files(thread);
        let files = match files {
            Some(files) => files,
            None => history.of_take(take.id)?.ok_or_else(|| no_files(&take))?,
        };
        let request = GitBranchRequest {
            take: &take,
            files,
            folder: &folder,
            branch: &self.branch,
            base: if take.id == active { GitBranchBase::CheckedOut } else { GitBranchBase::Recorded },
            author,
            user_configuration: &user_configuration(),
            message: self.message.as_deref(),
            time: timeline.now(),
        };
        let observer = if context.general.quiet || context.general.json {
            ProgressMode::Nobody
        } else {
            ProgressMode::detect()
        };
        let mut progress = Progress::begin("Reading files", observer);
        let plan = history.plan_git_branch(&request, &mut |done| progress.set_progress(done, done))?;
        let other_roots = plan.other_roots.clone();
        let report = if self.dry_run {
            plan.report().clone()
        } else {
            progress.set_stage("Writing objects");
            history.write_git_branch(plan, &mut |done| progress.set_progress(done, done))?
        };
        drop(progress);
        let name = take.name.clone();
        let answer = Answer { dry_run: self.dry_run, take: name, report, other_roots, unrecorded };
        context.report(&answer, |out, styles| write(out, styles, &answer))
    }
}

fn no_files(take: &Take) -> Failure {
    Failure::new(
        Code::Refused,
        format!("take {:?} has no recorded files; `retake snapshot take` records them", take.name),
    )
}

/// The author that git's environment variables name.
fn identity_of_environment() -> Option<GitIdentity> {
    GitIdentity::new(&env::var("GIT_AUTHOR_NAME").ok()?, &env::var("GIT_AUTHOR_EMAIL").ok()?)
}

/// The files in which git keeps the user's name, the most specific one first.
fn user_configuration() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let xdg = xdg.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let own = home.map(|home| home.join(".gitconfig"));
    own.into_iter().chain(xdg.map(|xdg| xdg.join("git/config"))).collect()
}

fn write(out: &mut dyn std::io::Write, styles: &Styles, answer: &Answer) -> std::io::Result<()> {
    let (muted, id, command) = (styles.muted, styles.id, styles.command);
    let report = &answer.report;
    let name = |text: &str| sanitize(text, LineBreaks::Fold).into_owned();
    let verb = if answer.dry_run { "Would write" } else { "Wrote" };
    let (branch, take) = (name(&report.branch), name(&answer.take));
    let short = report.commit.get(..12).unwrap_or(&report.commit);
    writeln!(out, "{verb} {take} to the new branch {branch} as commit {id}{short}{id:#}.")?;
    let parent = report.parent.as_deref().map_or("no parent", |parent| parent.get(..12).unwrap_or(parent));
    let added = counted(report.added, "file added", "files added");
    writeln!(
        out,
        "{added}, {} changed, {} removed since {id}{parent}{id:#}; the index and the files stay as they are",
        count(report.changed),
        count(report.removed)
    )?;
    let list = |out: &mut dyn std::io::Write, paths: &[String], count: u64| -> std::io::Result<()> {
        for path in paths.iter().take(10) {
            writeln!(out, "  {muted}{}{muted:#}", name(path))?;
        }
        let more = count.saturating_sub(paths.len().min(10) as u64);
        if more > 0 { writeln!(out, "  {muted}… and {more} more{muted:#}") } else { Ok(()) }
    };
    if report.kept_count > 0 {
        writeln!(out, "Not recorded, so as in the parent:")?;
        list(out, &report.kept, report.kept_count)?;
    }
    if report.omitted_count > 0 {
        writeln!(out, "Not in the commit:")?;
        let paths: Vec<String> =
            report.omitted.iter().map(|left| format!("{}: {}", left.path, left.reason)).collect();
        list(out, &paths, report.omitted_count)?;
    }
    if !answer.other_roots.is_empty() {
        writeln!(out, "Not in the commit: the added folders {}.", name(&answer.other_roots.join(", ")))?;
    }
    if report.unconverted {
        writeln!(
            out,
            "{muted}The repository converts line endings or filters files; the commit has the bytes of the folder.{muted:#}"
        )?;
    }
    if answer.unrecorded {
        writeln!(
            out,
            "{muted}Edits that are not recorded yet are not counted; the command records them first.{muted:#}"
        )?;
    }
    if !answer.dry_run {
        writeln!(out, "{muted}`{command}git diff HEAD...{branch}{command:#}{muted}` shows it.{muted:#}")?;
    }
    Ok(())
}
