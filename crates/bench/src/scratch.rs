//! The folder of the stores, and the cost of a sync there.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Outcome;
use crate::measure::{Samples, format_duration, timed};

/// A temporary folder that is removed when the benchmark ends.
pub(crate) struct ScratchDir {
    folder: TempDir,
}

impl ScratchDir {
    /// A new folder inside the given one; otherwise in `target`, which is on a real disk more often than `/tmp`;
    /// otherwise in the temporary folder.
    pub(crate) fn choose(inside: Option<&Path>) -> Outcome<Self> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let default = if target.is_dir() { target } else { std::env::temp_dir() };
        let inside: PathBuf = inside.map_or(default, Path::to_owned);
        let folder = tempfile::Builder::new().prefix("retake-bench-").tempdir_in(inside)?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The conditions that a reader needs to judge the figures.
    pub(crate) fn conditions(&self) -> Outcome<Vec<(String, String)>> {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let build = if cfg!(debug_assertions) { "debug: the figures mean little" } else { "release" };
        let sync = sync_cost(self.path())?;
        Ok([
            ("build", build.to_owned()),
            ("cores", cores.to_string()),
            ("SQLite", rusqlite::version().to_owned()),
            ("file system", file_system(self.path()).unwrap_or_else(|| "unknown".to_owned())),
            ("writing 4 KB and syncing it (fdatasync)", format_duration(sync.median())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec())
    }
}

/// The cost of overwriting and syncing one page of a file.
fn sync_cost(folder: &Path) -> Outcome<Samples> {
    const PAGE: usize = 4096;
    const PAGES: u64 = 256;
    let path = folder.join("sync");
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    file.write_all_at(&vec![1; PAGE * PAGES as usize], 0)?;
    file.sync_all()?;
    let mut samples = Samples::default();
    for page in 0..PAGES {
        let write = || -> Outcome<()> {
            file.write_all_at(&[2; PAGE], page * PAGE as u64)?;
            Ok(file.sync_data()?)
        };
        samples.push(timed(write)?.1);
    }
    std::fs::remove_file(path)?;
    File::open(folder)?.sync_all()?;
    Ok(samples)
}

/// The file system type of a folder, from the mount table.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let fits = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (Path::new(fields.next()?), fields.next()?);
        folder.starts_with(point).then(|| (point.components().count(), kind.to_owned()))
    });
    // Of two mounts at one point, the later covers the earlier.
    fits.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}
