//! A model of a disk that can lose power. It knows which bytes and names have been flushed, from the flushes that the tested code reports, and
//! makes the states that a power cut may leave: without what was not flushed, with a part of it, or with all of it.
//!
//! A rename of a file or a directory is atomic, as on a file system with a journal: flushing one of its directories makes it durable in both.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The disks of the tests that run.
static DISKS: Mutex<Vec<Arc<ModelledDisk>>> = Mutex::new(Vec::new());

/// Files by path below the root, each with its inode number and content.
type Tree = BTreeMap<PathBuf, (u64, Vec<u8>)>;

/// How much of what was not flushed a power cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// Nothing.
    Flushed,
    /// Names, and half of the bytes that were not flushed, the last of them garbage.
    Torn,
    /// Everything.
    All,
}

/// The disk, and an SQLite database beside it, which survives as it is.
#[derive(Debug)]
pub struct ModelledDisk {
    root: PathBuf,
    database: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Flushed bytes by inode.
    bytes: BTreeMap<u64, Vec<u8>>,
    /// Flushed names.
    names: BTreeMap<PathBuf, u64>,
    /// The number of events before the power cut.
    left: Option<usize>,
    cut: Option<PowerCut>,
}

/// The state of disk and database at a power cut.
#[derive(Debug)]
struct PowerCut {
    bytes: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<PathBuf, u64>,
    present: Tree,
    database: BTreeMap<PathBuf, Vec<u8>>,
}

/// Tells the disk of a test that a file or directory is flushed.
pub fn flush(path: &Path) {
    let disks = DISKS.lock().unwrap().clone();
    if let Some(disk) = disks.iter().find(|disk| path.starts_with(&disk.root)) {
        disk.event();
        disk.flush(path);
        disk.event();
    }
}

impl ModelledDisk {
    /// Creates the model of the files below `root`, all of which are flushed.
    pub fn new(root: PathBuf, database: Option<PathBuf>) -> Arc<Self> {
        let state = Mutex::default();
        let disk = Arc::new(Self {
            root,
            database,
            state,
        });
        disk.flush_everything();
        DISKS.lock().unwrap().push(Arc::clone(&disk));
        disk
    }

    /// Requests a power cut after so many events: flushes that begin or end, and acknowledgements.
    pub fn cut_power_after(&self, events: usize) {
        let mut state = self.state.lock().unwrap();
        state.left = Some(events);
        state.cut = None;
    }

    /// Counts an event, and keeps the state of the disk if it is the one of the power cut. What happens afterwards has not happened.
    /// Returns whether the power has been cut.
    pub fn event(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        match state.left {
            Some(0) => {
                state.left = None;
                state.cut = Some(self.power_cut(&state));
            }
            Some(left) => state.left = Some(left - 1),
            None => {}
        }
        state.cut.is_some()
    }

    /// Cuts the power now, unless it has been cut.
    pub fn cut_power(&self) {
        let mut state = self.state.lock().unwrap();
        state.left = None;
        if state.cut.is_none() {
            state.cut = Some(self.power_cut(&state));
        }
    }

    /// Leaves the files and the database as a restart finds them after the power cut. Nothing may have them open.
    pub fn restart(&self, survival: Survival) {
        let cut = self.state.lock().unwrap().cut.take().unwrap();
        for path in self.present().into_keys() {
            fs::remove_file(self.root.join(path)).unwrap();
        }
        for (path, bytes) in cut.files(survival) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        for path in self.database_files() {
            let _ = fs::remove_file(path);
        }
        for (path, bytes) in &cut.database {
            fs::write(path, bytes).unwrap();
        }
        self.flush_everything();
    }

    fn power_cut(&self, state: &State) -> PowerCut {
        let database = self.database_files().into_iter();
        PowerCut {
            bytes: state.bytes.clone(),
            names: state.names.clone(),
            present: self.present(),
            // The shared memory of SQLite is not part of a database that nobody has open.
            database: database
                .filter(|path| !path.to_string_lossy().ends_with("-shm"))
                .filter_map(|path| Some((path.clone(), fs::read(path).ok()?)))
                .collect(),
        }
    }

    fn flush(&self, path: &Path) {
        let present = self.present();
        let mut state = self.state.lock().unwrap();
        let path = path.strip_prefix(&self.root).unwrap();
        if let Some((inode, bytes)) = present.get(path) {
            state.bytes.insert(*inode, bytes.clone());
            return;
        }
        let is_here = |name: &Path| name.parent() == Some(path);
        let appeared: Vec<(PathBuf, u64)> = present
            .iter()
            .filter(|(name, _)| is_here(name))
            .map(|(name, (inode, _))| (name.clone(), *inode))
            .collect();
        let gone: Vec<u64> = state
            .names
            .iter()
            .filter(|(name, _)| is_here(name) && !present.contains_key(*name))
            .map(|(_, inode)| *inode)
            .collect();
        let moved = present.iter().filter(|(_, (inode, _))| gone.contains(inode));
        let moved: Vec<(PathBuf, u64)> = moved.map(|(name, (inode, _))| (name.clone(), *inode)).collect();
        // Names that were flushed in a directory that has been renamed since, within the flushed directory.
        let renamed: Vec<(PathBuf, u64)> = present
            .iter()
            .filter(|(name, _)| name.starts_with(path) && !is_here(name))
            .filter_map(|(name, (inode, _))| {
                let (former, _) = state.names.iter().find(|(_, other)| *other == inode)?;
                let below = |name: &Path| name.strip_prefix(path).map(Path::to_owned).ok();
                let (now, before) = (below(name)?, below(former)?);
                let is_renamed = now.components().next() != before.components().next();
                (is_renamed && now.components().skip(1).eq(before.components().skip(1)))
                    .then(|| (name.clone(), *inode))
            })
            .collect();
        for (name, inode) in appeared.into_iter().chain(moved).chain(renamed) {
            state.names.retain(|_, other| *other != inode);
            state.names.insert(name, inode);
        }
    }

    fn flush_everything(&self) {
        let mut state = self.state.lock().unwrap();
        let present = self.present();
        state.names = present
            .iter()
            .map(|(name, (inode, _))| (name.clone(), *inode))
            .collect();
        state.bytes = present.into_values().collect();
    }

    fn present(&self) -> Tree {
        let mut tree = Tree::new();
        let mut directories = vec![self.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let metadata = entry.metadata().unwrap();
                if metadata.is_dir() {
                    directories.push(path);
                } else if let Ok(bytes) = fs::read(&path) {
                    let name = path.strip_prefix(&self.root).unwrap().to_owned();
                    tree.insert(name, (metadata.ino(), bytes));
                }
            }
        }
        tree
    }

    fn database_files(&self) -> Vec<PathBuf> {
        let files = |database: &PathBuf| {
            ["", "-wal", "-shm"].map(|suffix| {
                let mut path = database.clone().into_os_string();
                path.push(suffix);
                PathBuf::from(path)
            })
        };
        self.database.iter().flat_map(files).collect()
    }
}

impl PowerCut {
    fn files(&self, survival: Survival) -> BTreeMap<PathBuf, Vec<u8>> {
        let present = self.present.iter();
        match survival {
            Survival::Flushed => self
                .names
                .iter()
                .map(|(name, inode)| (name.clone(), self.bytes.get(inode).cloned().unwrap_or_default()))
                .collect(),
            Survival::Torn => present
                .map(|(name, (inode, bytes))| {
                    let flushed = self.bytes.get(inode).cloned().unwrap_or_default();
                    (name.clone(), torn(flushed, bytes))
                })
                .collect(),
            Survival::All => present
                .map(|(name, (_, bytes))| (name.clone(), bytes.clone()))
                .collect(),
        }
    }
}

/// Returns flushed bytes with half of those after them, the last one changed.
fn torn(mut flushed: Vec<u8>, present: &[u8]) -> Vec<u8> {
    let unflushed = present.get(flushed.len()..).unwrap_or_default();
    flushed.extend(&unflushed[..unflushed.len() / 2]);
    if unflushed.len() >= 2 {
        *flushed.last_mut().unwrap() ^= 0xff;
    }
    flushed
}
