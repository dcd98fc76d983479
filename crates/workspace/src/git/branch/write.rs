//! Writes objects and a branch into a repository.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use retake_model::object::Objects;
use retake_model::tree::Node;

use super::super::config::Variable;
use super::super::objects::{ObjectId, digits_of};
use super::super::pack::PackWriter;
use super::super::refs;
use super::merge::pieces;
use super::{BranchError, NewContent, NewObject};

/// Refuses repositories that Retake cannot write, or should not.
pub(super) fn check_repository(common: &Path, configuration: &[Variable]) -> Result<(), BranchError> {
    for Variable { section, key, value, .. } in configuration {
        let reason = match (section.as_str(), key.as_str()) {
            ("extensions", "objectformat") if !value.eq_ignore_ascii_case("sha1") => "uses SHA-256",
            ("extensions", "refstorage") if !value.eq_ignore_ascii_case("files") => {
                "stores its branches as reftables"
            }
            ("extensions", "partialclone") => "is a partial clone",
            ("core", "repositoryformatversion")
                if value.trim().parse::<u32>().is_ok_and(|version| version > 1) =>
            {
                "has an unknown format"
            }
            _ => continue,
        };
        return Err(BranchError::Unsupported(reason));
    }
    // As git does: whoever owns a repository decides what is in it.
    if fs::metadata(common)?.uid() != rustix::process::geteuid().as_raw() {
        return Err(BranchError::OtherOwner);
    }
    for name in ["objects", "objects/pack", "refs", "refs/heads"] {
        refuse_link(&common.join(name))?;
    }
    Ok(())
}

fn refuse_link(path: &Path) -> Result<(), BranchError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => Err(BranchError::Linked(path.display().to_string())),
        _ => Ok(()),
    }
}

/// Writes objects into a pack.
pub(super) fn objects(
    common: &Path,
    new: &[NewObject],
    objects: &dyn Objects,
    progress: &mut dyn FnMut(u64),
) -> Result<(), BranchError> {
    let folder = common.join("objects/pack");
    fs::create_dir_all(&folder)?;
    let count = u32::try_from(new.len()).map_err(|_| io::Error::other("too many objects for one pack"))?;
    let mut pack = PackWriter::create(&folder, count)?;
    for (done, object) in new.iter().enumerate() {
        match &object.content {
            NewContent::Bytes(bytes) => {
                let piece = std::iter::once(Ok::<_, BranchError>(bytes.clone()));
                pack.add(object.id, object.kind, bytes.len() as u64, piece)?;
            }
            NewContent::File(node) => {
                let Node::File { size, .. } = node else {
                    unreachable!("only files are read from the store")
                };
                let pieces = pieces(objects, node).map(|piece| piece.map_err(BranchError::from));
                pack.add(object.id, object.kind, *size, pieces)?;
            }
        }
        progress(done as u64 + 1);
    }
    Ok(pack.finish()?)
}

/// Creates a branch that does not exist, with git's own lock.
pub(super) fn branch(common: &Path, name: &str, commit: &ObjectId) -> Result<(), BranchError> {
    let path = common.join("refs/heads").join(name);
    let parent = path.parent().expect("it is below `refs/heads`");
    let mut above = common.join("refs/heads");
    for part in Path::new(name).parent().into_iter().flat_map(Path::iter) {
        above.push(part);
        refuse_link(&above)?;
    }
    fs::create_dir_all(parent)?;
    let mut lock = path.clone().into_os_string();
    lock.push(".lock");
    let lock = Path::new(&lock);
    let exists = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => BranchError::Exists(name.to_owned()),
        _ => error.into(),
    };
    let mut file = File::options().write(true).create_new(true).mode(0o644).open(lock).map_err(exists)?;
    let written = file
        .write_all(format!("{}\n", digits_of(commit)).as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(BranchError::from)
        .and_then(|()| {
            if let Some(found) = refs::branch_in_the_way(common, name) {
                return Err(BranchError::Exists(found));
            }
            // A folder of deleted branches may be left.
            let _ = remove_empty(&path);
            // Fails if the branch exists, even if a program without the lock made it just now.
            fs::hard_link(lock, &path).map_err(exists)
        });
    fs::remove_file(lock)?;
    written?;
    Ok(File::open(parent)?.sync_all()?)
}

/// Removes a folder that contains only folders.
fn remove_empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}
