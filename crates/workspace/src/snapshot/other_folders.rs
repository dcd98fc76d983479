//! Folders of other projects and worktrees, which a root that contains them excludes.
//!
//! Such a folder has its own timeline. If it were captured twice, moves of the outer project would remove or rewrite
//! its files. It is identified by device, inode and birth time and not by its path: it may have been moved into the
//! root, and an ordinary folder may have taken its old path.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

use retake_store::{Queries, StoreError};
use rustix::fs::{AtFlags, StatxFlags, statx};

use super::stat::Stat;
use crate::folder::Identity;

/// The folders of all known projects and worktrees, by inode.
#[derive(Default)]
pub(super) struct OtherFolders(HashMap<u64, Vec<Identity>>);

impl OtherFolders {
    pub(super) fn read(queries: &Queries<'_>) -> Result<Self, StoreError> {
        let projects = queries.projects()?.into_iter();
        // A forgotten project has no inode.
        let projects = projects.filter(|project| project.inode != 0).map(|project| {
            let (device, inode, born) = (project.device, project.inode, project.born);
            Identity { device, inode, born }
        });
        let worktrees = queries.folders()?.into_iter().filter_map(|folder| {
            let known = folder.identity?;
            Some(Identity { device: known.device, inode: known.inode, born: known.born })
        });
        let mut others: HashMap<u64, Vec<Identity>> = HashMap::new();
        for identity in projects.chain(worktrees) {
            others.entry(identity.inode).or_default().push(identity);
        }
        Ok(Self(others))
    }

    /// Returns whether an open folder is one of them.
    pub(super) fn contains(&self, folder: BorrowedFd<'_>, stat: &Stat) -> bool {
        let Some(known) = self.0.get(&stat.inode) else { return false };
        let born = born(folder);
        known.iter().any(|known| match (known.born, born) {
            // Device numbers may change at a restart.
            (Some(then), Some(now)) => then == now,
            _ => known.device == stat.device,
        })
    }
}

/// Birth time of a folder in nanoseconds since 1970, if the file system records it.
fn born(folder: BorrowedFd<'_>) -> Option<i64> {
    let found = statx(folder.as_fd(), c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let nanos = found.stx_btime.tv_sec.checked_mul(1_000_000_000)?;
    nanos.checked_add(i64::from(found.stx_btime.tv_nsec)).filter(|nanos| known && *nanos > 0)
}
