//! The tree in memory; what it was before each change is noted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use braid_app::files::memory::{self, OpenOptions as Options};
pub(crate) use braid_app::files::memory::{
    bring, exists, is_dir, is_file, len, modified, read, read_dir, read_to_string,
};

/// Paths and contents; folders have none.
pub(crate) type Moment = BTreeMap<String, Option<Vec<u8>>>;

thread_local! {
    static MOMENTS: RefCell<Vec<Moment>> = const { RefCell::new(Vec::new()) };
}

/// The tree now.
pub(crate) fn moment() -> Moment {
    let (inventory, files) = memory::inventory();
    let folders = inventory.folders.into_iter().map(|path| (path, None));
    let contents = files.iter().map(|file| file.from(0));
    let files = inventory.files.into_iter().map(|file| file.path);
    folders.chain(files.zip(contents)).collect()
}

/// All moments since the last call.
pub(crate) fn moments() -> Vec<Moment> {
    MOMENTS.take()
}

/// Make the tree what it was then.
pub(crate) fn go_back(moment: &Moment) {
    memory::restore(&memory::Inventory::default(), None).unwrap();
    for (path, content) in moment {
        match content {
            None => memory::create_dir_all(path).unwrap(),
            Some(content) => {
                let mut file = memory::File::create(Path::new(path)).unwrap();
                file.write_all(content).unwrap();
            }
        }
    }
}

fn note() {
    MOMENTS.with_borrow_mut(|moments| moments.push(moment()));
}

pub(crate) fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    note();
    memory::create_dir_all(path)
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    note();
    memory::rename(from, to)
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    note();
    memory::remove_file(path)
}

pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    note();
    memory::remove_dir(path)
}

pub(crate) fn remove_dir_all(path: &Path) -> io::Result<()> {
    note();
    memory::remove_dir_all(path)
}

/// An open file.
#[derive(Debug)]
pub(crate) struct File(memory::File);

/// How to open one.
pub(crate) struct OpenOptions(Options);

impl OpenOptions {
    pub(crate) fn append(&mut self, append: bool) -> &mut Self {
        self.0.append(append);
        self
    }

    pub(crate) fn create(&mut self, create: bool) -> &mut Self {
        self.0.create(create);
        self
    }

    pub(crate) fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        note();
        self.0.open(path).map(File)
    }
}

impl File {
    pub(crate) fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        note();
        memory::File::create(path).map(Self)
    }

    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        memory::File::open(path).map(Self)
    }

    pub(crate) fn options() -> OpenOptions {
        OpenOptions(memory::File::options())
    }

    pub(crate) fn try_lock(&self) -> Result<(), std::fs::TryLockError> {
        self.0.try_lock()
    }

    pub(crate) fn try_lock_shared(&self) -> Result<(), std::fs::TryLockError> {
        self.0.try_lock_shared()
    }

    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        note();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
