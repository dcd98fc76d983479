//! Settings shared between threads: the prompts, roles and context presets of one project, or of all
//! projects.
//!
//! ```text
//!   shared/global, shared/<project>     one small file each: hash, then one encoded record
//!   write: lock ► read ► change ► temporary file ► sync ► rename ► sync of the folder
//! ```
//!
//! They are not part of a thread's history, yet undo in a thread reverts the values which that thread set.
//! The record therefore lists, for each value, the threads that set it, latest last. The reader picks the one
//! that applies from the current state of those threads (see `timeline/shared.rs`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use minicbor::{Decode, Encode};
use retake_model::id::{ProjectId, ThreadId};
use retake_model::take::FileItem;

use crate::location::{open_private, private_file, private_folder, sync_folder};
use crate::maintenance::budget::list_files;
use crate::maintenance::redact::{REDACTED, Secrets, item_holds};
use crate::{Store, StoreError};

/// Which threads shared settings apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// All projects.
    Global,
    /// All threads of one project.
    Project(ProjectId),
}

/// The shared settings of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SharedSettings {
    /// Incremented with every change.
    #[n(0)]
    pub version: u64,
    /// For each setting, the values that threads set, latest last.
    #[n(1)]
    pub values: BTreeMap<String, Vec<SharedValue>>,
    /// Context presets (lists of context files), by name.
    #[n(2)]
    pub presets: BTreeMap<String, Vec<FileItem>>,
    /// Deleted or replaced presets, latest last. Older versions of Retake do not write this field.
    #[n(3)]
    #[cbor(default)]
    pub former_presets: Vec<FormerPreset>,
}

/// A context preset that was deleted or replaced.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FormerPreset {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// The files, in order.
    #[n(1)]
    pub items: Vec<FileItem>,
}

/// A shared value and the thread that set it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SharedValue {
    /// The thread that set it.
    #[n(0)]
    pub thread: ThreadId,
    /// The value.
    #[n(1)]
    pub value: String,
}

/// Older values are dropped: an undo that reaches further back uses the oldest remaining one.
const MAX_VALUES: usize = 100;
/// Older former presets are dropped.
const MAX_FORMER_PRESETS: usize = 1_000;
/// Length of the hash in front of the record.
const HASH: usize = 32;
/// Name of the file that writers lock.
const LOCK: &str = "lock";
/// File extension of a damaged record in quarantine.
const DAMAGED: &str = "damaged";

impl SharedSettings {
    /// Appends a value set by a thread.
    pub fn push(&mut self, name: &str, value: SharedValue) {
        let values = self.values.entry(name.to_owned()).or_default();
        values.push(value);
        let surplus = values.len().saturating_sub(MAX_VALUES);
        values.drain(..surplus);
    }

    /// Replaces a context preset, or deletes it for `None`. The previous list becomes a former preset.
    pub fn set_preset(&mut self, name: &str, items: Option<Vec<FileItem>>) {
        let former = match &items {
            Some(items) => self.presets.insert(name.to_owned(), items.clone()),
            None => self.presets.remove(name),
        };
        if let Some(former) = former.filter(|former| items.as_ref() != Some(former)) {
            self.former_presets.push(FormerPreset { name: name.to_owned(), items: former });
            let surplus = self.former_presets.len().saturating_sub(MAX_FORMER_PRESETS);
            self.former_presets.drain(..surplus);
        }
    }

    /// Restores the latest former preset of that name; the current one becomes a former preset.
    pub fn restore_preset(&mut self, name: &str) -> Option<Vec<FileItem>> {
        let at = self.former_presets.iter().rposition(|former| former.name == name)?;
        let items = self.former_presets.remove(at).items;
        self.set_preset(name, Some(items.clone()));
        Some(items)
    }

    /// True if there are neither current nor former values.
    pub fn is_empty(&self) -> bool {
        self.values.values().all(Vec::is_empty) && self.presets.is_empty() && self.former_presets.is_empty()
    }
}

impl Store {
    /// Reads the shared settings of a scope; empty if there are none.
    pub fn shared_settings(&self, scope: SettingScope) -> Result<SharedSettings, StoreError> {
        read(&path_of(&self.folder, scope))
    }

    /// Changes the shared settings of a scope. The change is durable when this returns.
    pub fn change_shared_settings<E: From<StoreError>>(
        &self,
        scope: SettingScope,
        change: impl FnOnce(&mut SharedSettings) -> Result<(), E>,
    ) -> Result<SharedSettings, E> {
        let path = path_of(&self.folder, scope);
        let _lock = self.lock_shared_settings()?;
        let before = read(&path)?;
        let mut after = before.clone();
        change(&mut after)?;
        if after != before {
            after.version = before.version + 1;
            write(&path, &after)?;
        }
        Ok(after)
    }
}

impl Store {
    /// Locks out other writers of shared settings until the file is closed.
    fn lock_shared_settings(&self) -> Result<File, StoreError> {
        let folder = folder_of(&self.folder);
        private_folder(&folder)?;
        let path = folder.join(LOCK);
        let lock = open_private(&path)?;
        lock.lock().map_err(|error| failed(&path, error))?;
        Ok(lock)
    }

    /// Paths of damaged records.
    pub(crate) fn damaged_shared_settings(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut damaged = Vec::new();
        for path in records(&self.folder)? {
            match read(&path) {
                Ok(_) => {}
                Err(error) if error.is_damage() => damaged.push(path),
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }

    /// Moves damaged records to quarantine, so that their settings can be set again.
    pub(crate) fn quarantine_shared_settings(&self) -> Result<Vec<PathBuf>, StoreError> {
        let damaged = self.damaged_shared_settings()?;
        for path in &damaged {
            let aside = path.with_extension(DAMAGED);
            fs::rename(path, &aside).map_err(|error| failed(path, error))?;
            path.parent().map_or(Ok(()), sync_folder).map_err(|error| failed(path, error))?;
        }
        Ok(damaged)
    }

    /// Removes these texts from all records, as redaction does in the states of the threads that set them.
    pub(crate) fn redact_shared_settings(&self, secrets: &Secrets) -> Result<u64, StoreError> {
        let mut changed = 0;
        if !folder_of(&self.folder).exists() {
            return Ok(0);
        }
        let _lock = self.lock_shared_settings()?;
        // Delete unfinished copies first: writing a record replaces its own temporary file.
        let mut files = list_files(&folder_of(&self.folder))?;
        files.sort_by_key(|path| path.extension().is_none());
        for path in files {
            if path.ends_with(LOCK) {
                continue;
            }
            // Damaged, quarantined and unfinished records can contain the texts too and are of no use: delete
            // them.
            let mut settings = match read(&path) {
                Ok(settings) if path.extension().is_none() => settings,
                Err(error) if !error.is_damage() => return Err(error),
                _ => {
                    fs::remove_file(&path).map_err(|error| failed(&path, error))?;
                    sync_folder(&folder_of(&self.folder)).map_err(|error| failed(&path, error))?;
                    changed += 1;
                    continue;
                }
            };
            let before = settings.clone();
            for set in settings.values.values_mut().flatten().filter(|set| secrets.occur_in(&set.value)) {
                REDACTED.clone_into(&mut set.value);
            }
            settings.presets.retain(|name, _| !secrets.occur_in(name));
            let clean = |item: &FileItem| !item_holds(item, secrets);
            settings.presets.values_mut().for_each(|items| items.retain(clean));
            settings.former_presets.retain(|former| !secrets.occur_in(&former.name));
            settings.former_presets.iter_mut().for_each(|former| former.items.retain(clean));
            if settings != before {
                settings.version += 1;
                write(&path, &settings)?;
                changed += 1;
            }
        }
        Ok(changed)
    }
}

/// Paths of all records in a store. Only records have a name without an extension.
pub(crate) fn records(store: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = folder_of(store);
    let listed = match fs::read_dir(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&folder, error)),
    };
    let mut found = Vec::new();
    for file in listed {
        let path = file.map_err(|error| failed(&folder, error))?.path();
        if path.extension().is_none() && !path.ends_with(LOCK) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn folder_of(store: &Path) -> PathBuf {
    store.join("shared")
}

fn path_of(store: &Path, scope: SettingScope) -> PathBuf {
    match scope {
        SettingScope::Global => folder_of(store).join("global"),
        SettingScope::Project(project) => folder_of(store).join(project.to_string()),
    }
}

fn failed(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::File { path: path.to_owned(), error }
}

fn read(path: &Path) -> Result<SharedSettings, StoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(SharedSettings::default()),
        Err(error) => return Err(failed(path, error)),
    };
    let damaged = || StoreError::Damaged(format!("the shared settings in {}", path.display()));
    let (hash, record) = bytes.split_at_checked(HASH).ok_or_else(damaged)?;
    if blake3::hash(record).as_bytes() != hash {
        return Err(damaged());
    }
    minicbor::decode(record).map_err(|_| damaged())
}

fn write(path: &Path, settings: &SharedSettings) -> Result<(), StoreError> {
    let record = minicbor::to_vec(settings).expect("encoding into memory cannot fail");
    let temporary = path.with_extension("new");
    let fail = |error| failed(path, error);
    let _ = fs::remove_file(&temporary);
    private_file(&temporary)?;
    let mut file = File::options().write(true).open(&temporary).map_err(fail)?;
    file.write_all(blake3::hash(&record).as_bytes()).and_then(|()| file.write_all(&record)).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    fs::rename(&temporary, path).map_err(fail)?;
    path.parent().map_or(Ok(()), sync_folder).map_err(fail)
}

#[cfg(test)]
mod tests {
    use retake_model::time::Timestamp;

    use super::*;
    use crate::{Problem, RepairChange};

    #[test]
    fn shared_settings_round_trip_and_damage_is_detected() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        let scope = SettingScope::Project(ProjectId::from_bytes([7; 16]));
        let thread = ThreadId::from_bytes([1; 16]);
        for number in 0..150_u32 {
            let value = SharedValue { thread, value: number.to_string() };
            let changed = store.change_shared_settings::<StoreError>(scope, |shared| {
                shared.push("roles", value);
                shared.presets.insert("mine".to_owned(), vec![FileItem::new("a.rs")]);
                Ok(())
            });
            assert_eq!(changed.expect("write succeeds").version, u64::from(number) + 1);
        }
        let found = store.shared_settings(scope).expect("settings readable");
        assert_eq!((found.values["roles"].len(), found.values["roles"][99].value.as_str()), (100, "149"));
        assert_eq!(
            store.shared_settings(SettingScope::Global).expect("settings readable"),
            SharedSettings::default()
        );
        let path = path_of(store.folder(), scope);
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("a damaged file");
            assert!(store.shared_settings(scope).is_err_and(|error| error.is_damage()), "byte {at}");
        }
        let verified = store.verify(&mut |_| {}).expect("a check");
        let codes: Vec<_> = verified.problems.iter().map(Problem::code).collect();
        assert_eq!(codes, ["shared_settings_damaged"]);
        let repaired = store.repair(&mut |_| {}, Timestamp::from_millis(0)).expect("a repair");
        assert_eq!(
            repaired.changes.iter().map(RepairChange::code).collect::<Vec<_>>(),
            ["shared_settings_quarantined"]
        );
        assert!(store.verify(&mut |_| {}).expect("a check").is_clean());
        assert_eq!(store.shared_settings(scope).expect("settings readable"), SharedSettings::default());
        assert!(path.with_extension("damaged").exists(), "nothing is thrown away");
    }

    #[test]
    fn redacted_text_is_in_no_record() {
        const KEY: &str = "sk-0123456789abcdef";
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("store")).expect("a store");
        let thread = ThreadId::from_bytes([1; 16]);
        for scope in [SettingScope::Global, SettingScope::Project(ProjectId::from_bytes([7; 16]))] {
            let changed = store.change_shared_settings::<StoreError>(scope, |shared| {
                for value in [format!("Use {KEY}."), "Be kind.".to_owned()] {
                    shared.push("global_system_prompt", SharedValue { thread, value });
                }
                let items = vec![FileItem::new("a.rs"), FileItem::new(KEY)];
                shared.presets.extend([("mine".to_owned(), items), (format!("with {KEY}"), Vec::new())]);
                shared.set_preset("mine", Some(vec![FileItem::new("a.rs")]));
                shared.set_preset(&format!("with {KEY}"), None);
                Ok(())
            });
            changed.expect("write succeeds");
        }
        let whole = fs::read(path_of(store.folder(), SettingScope::Global)).expect("a record");
        for ending in ["damaged", "new"] {
            fs::write(folder_of(store.folder()).join("global").with_extension(ending), &whole)
                .expect("a file");
        }
        let secrets = Secrets::new([KEY.to_owned()]);
        store.redact_with(&[], &secrets, &[], Timestamp::from_millis(0)).expect("a redaction");
        for file in fs::read_dir(folder_of(store.folder())).expect("a folder") {
            let bytes = fs::read(file.expect("a file").path()).expect("readable");
            assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
        }
        let left = store.shared_settings(SettingScope::Global).expect("settings readable");
        let values: Vec<_> =
            left.values["global_system_prompt"].iter().map(|set| set.value.as_str()).collect();
        assert_eq!(values, ["[redacted]", "Be kind."]);
        assert_eq!(
            left.presets.into_iter().collect::<Vec<_>>(),
            [("mine".to_owned(), vec![FileItem::new("a.rs")])]
        );
        let former = FormerPreset { name: "mine".to_owned(), items: vec![FileItem::new("a.rs")] };
        assert_eq!(left.former_presets, [former]);
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read() {
        #[derive(Encode)]
        struct Earlier {
            #[n(0)]
            version: u64,
            #[n(1)]
            values: BTreeMap<String, Vec<SharedValue>>,
            #[n(2)]
            presets: BTreeMap<String, Vec<FileItem>>,
        }
        let presets = BTreeMap::from([("mine".to_owned(), vec![FileItem::new("a.rs")])]);
        let earlier = Earlier { version: 3, values: BTreeMap::new(), presets: presets.clone() };
        let record = minicbor::to_vec(earlier).expect("encoding into memory cannot fail");
        let found: SharedSettings = minicbor::decode(&record).expect("settings readable");
        assert_eq!((found.version, found.presets, found.former_presets), (3, presets, Vec::new()));
    }
}
