//! The files of a take as a commit on a new git branch, with its turns in the message.
//!
//! `retake_workspace::git` writes the branch; this decides what is in it: the recorded files of the project's main folder,
//! the commit that they are based on, and the message.

use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::object::load;
use retake_model::take::Take;
use retake_model::time::Timestamp;
use retake_model::tree::Snapshot;
use retake_workspace::git::{BranchError, BranchPlan, BranchReport, BranchRequest, GitIdentity, plan_branch};

use super::anchor::recorded_commit;
use super::file_history::FileHistoryReader;
use crate::ReadError;

/// Turns that a message lists.
const MAX_TURNS: u64 = 50;
/// Longer subjects are cut.
const SUBJECT_CHARS: usize = 72;

/// The branch to write.
pub struct GitBranchRequest<'a> {
    /// The take.
    pub take: &'a Take,
    /// Its files.
    pub files: ContentId,
    /// The project's folder, in the repository.
    pub folder: &'a Path,
    /// The name of the branch.
    pub branch: &'a str,
    /// What the commit is based on.
    pub base: GitBranchBase,
    /// The author; otherwise the user whom git knows.
    pub author: Option<GitIdentity>,
    /// Configuration files of the user.
    pub user_configuration: &'a [PathBuf],
    /// The first lines of the message; otherwise the titles of thread and take.
    pub message: Option<&'a str>,
    /// The time of the commit.
    pub time: Timestamp,
}

/// The parent of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitBranchBase {
    /// The commit that is checked out: the files are in the folder now.
    CheckedOut,
    /// The commit that was checked out when the take was last changed, if it is recorded.
    Recorded,
}

/// A branch that can be written.
pub struct GitBranchPlan {
    plan: BranchPlan,
    /// Added folders of the project, which are not in the repository's folder and not in the commit.
    pub other_roots: Vec<String>,
}

/// Why no branch was planned or written.
#[derive(Debug, thiserror::Error)]
pub enum GitBranchError {
    /// The timeline cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Git's side.
    #[error(transparent)]
    Branch(#[from] BranchError),
}

impl FileHistoryReader<'_> {
    /// Works out a branch with the files of a take, without writing anything.
    pub fn plan_git_branch(
        &self,
        request: &GitBranchRequest<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<GitBranchPlan, GitBranchError> {
        let queries = self.reader.queries();
        let snapshot: Snapshot = load(&queries, request.files).map_err(ReadError::from)?;
        let [root, others @ ..] = snapshot.roots.as_slice() else {
            return Err(BranchError::NoRepository(request.folder.display().to_string()).into());
        };
        let parent = match request.base {
            GitBranchBase::CheckedOut => None,
            GitBranchBase::Recorded => {
                let row = self.reader.thread(self.thread)?;
                recorded_commit(&queries, row.number, row.summary.version, request.take.id)
                    .map_err(ReadError::from)?
                    .or_else(|| request.take.git_commit.clone())
            }
        };
        let message = self.message(request)?;
        let branch = BranchRequest {
            folder: request.folder,
            branch: request.branch,
            root,
            parent: parent.as_deref(),
            author: request.author.clone(),
            user_configuration: request.user_configuration,
            message: &message,
            time: request.time,
        };
        let plan = plan_branch(&branch, &queries, progress)?;
        Ok(GitBranchPlan { plan, other_roots: others.iter().map(|root| root.name.clone()).collect() })
    }

    /// Writes a planned branch.
    pub fn write_git_branch(
        &self,
        plan: GitBranchPlan,
        progress: &mut dyn FnMut(u64),
    ) -> Result<BranchReport, GitBranchError> {
        Ok(plan.plan.execute(&self.reader.queries(), progress)?)
    }

    /// The message of the commit: a subject, the prompts of the turns, and where they come from.
    fn message(&self, request: &GitBranchRequest<'_>) -> Result<String, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let take = &request.take.name;
        let given = request.message.map(str::trim).filter(|message| !message.is_empty()).map(str::to_owned);
        let subject = given.unwrap_or_else(|| {
            let title = format!("{} ({take})", row.summary.title);
            title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SUBJECT_CHARS).collect()
        });
        let turns = self.reader.history(self.thread).in_take(Some(request.take.id)).turns()?;
        let first = turns.count().saturating_sub(MAX_TURNS) + 1;
        let mut lines = vec![subject, String::new()];
        if first > 1 {
            lines.push(format!("Turns 1 to {} are not listed.", first - 1));
        }
        for number in first..=turns.count() {
            let name = turns.name(number)?;
            lines.push(format!("Turn {number}: {}", name.prompt));
        }
        if turns.count() > 0 {
            lines.push(String::new());
        }
        lines.push(format!("Retake-Thread: {}", self.thread));
        lines.push(format!("Retake-Take: {take}"));
        lines.push(format!("Retake-Version: {}", row.summary.version));
        Ok(lines.join("\n"))
    }
}

impl GitBranchPlan {
    /// What the branch will contain.
    pub fn report(&self) -> &BranchReport {
        self.plan.report()
    }
}
