//! A tree of files in memory, with the names, results and errors of [`std::fs`], for systems that have no files.
//!
//! Each file has a number, which it keeps when it is renamed; written anew, it is another file. So what a storage has under a
//! number only ever grows, and a list of paths, numbers and lengths ([`inventory`]) says all of the tree: a storage that first
//! copies contents and then replaces that list has the old tree or the new one, whenever it is interrupted. The list is the
//! order of changes: a checkpoint is never named before its content is there.
//!
//! Content that a storage has may leave the memory ([`FileRef::let_go`]); it is fetched again by [`bring`].
//!
//! One tree a thread: the worker has one thread, and tests do not disturb each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::TryLockError;
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

/// Content of a file: the first `away` bytes are in the storage only, the others are here.
#[derive(Debug, Default)]
struct Content {
    number: u64,
    /// When it was made, in seconds since 1970.
    made: u64,
    away: u64,
    here: Vec<u8>,
    locked: bool,
}

impl Content {
    fn len(&self) -> u64 {
        self.away + self.here.len() as u64
    }
}

type Shared = Rc<RefCell<Content>>;

#[derive(Debug)]
enum Node {
    File(Shared),
    Folder(BTreeMap<String, Node>),
}

impl Node {
    fn is_dir(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    fn folder(&self) -> io::Result<&BTreeMap<String, Node>> {
        match self {
            Self::Folder(entries) => Ok(entries),
            Self::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn folder_mut(&mut self) -> io::Result<&mut BTreeMap<String, Node>> {
        match self {
            Self::Folder(entries) => Ok(entries),
            Self::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn file(&self) -> io::Result<&Shared> {
        match self {
            Self::File(content) => Ok(content),
            Self::Folder(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }
}

/// Where content comes from that is not here: the file's number and bytes, from its beginning.
pub type Fetch = Rc<dyn Fn(u64, u64) -> Pin<Box<dyn Future<Output = io::Result<Vec<u8>>>>>>;

struct Tree {
    root: Node,
    /// Number of the next file.
    next: u64,
    /// Counts changes.
    changes: u64,
    calendar: fn() -> u64,
    fetch: Option<Fetch>,
}

thread_local! {
    static TREE: RefCell<Tree> = const { RefCell::new(Tree {
        root: Node::Folder(BTreeMap::new()),
        next: 1,
        changes: 0,
        calendar: || 0,
        fetch: None,
    }) };
}

/// Do something with the tree. It is never entered twice: nothing in here calls out.
fn with<T>(act: impl FnOnce(&mut Tree) -> T) -> T {
    TREE.with_borrow_mut(act)
}

/// The names on the way to a path, from the root.
fn parts(path: &Path) -> Vec<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts
}

impl Tree {
    fn find(&self, parts: &[String]) -> io::Result<&Node> {
        let mut node = &self.root;
        for part in parts {
            node = node.folder()?.get(part).ok_or(ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// The folder that holds a path, and the name in it.
    fn place<'a>(
        &mut self,
        parts: &'a [String],
    ) -> io::Result<(&mut BTreeMap<String, Node>, &'a String)> {
        let (name, above) = parts.split_last().ok_or(ErrorKind::InvalidInput)?;
        let mut node = &mut self.root;
        for part in above {
            node = node
                .folder_mut()?
                .get_mut(part)
                .ok_or(ErrorKind::NotFound)?;
        }
        Ok((node.folder_mut()?, name))
    }

    fn new_content(&mut self) -> Shared {
        let number = self.next;
        self.next += 1;
        Rc::new(RefCell::new(Content {
            number,
            made: (self.calendar)(),
            ..Content::default()
        }))
    }
}

/// Whether there is something.
#[must_use]
pub fn exists(path: &Path) -> bool {
    with(|tree| tree.find(&parts(path)).is_ok())
}

/// Whether it is a folder.
#[must_use]
pub fn is_dir(path: &Path) -> bool {
    with(|tree| tree.find(&parts(path)).is_ok_and(Node::is_dir))
}

/// Whether it is a file.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    with(|tree| tree.find(&parts(path)).is_ok_and(|node| !node.is_dir()))
}

/// Bytes of a file, whether they are here or not.
///
/// # Errors
/// If there is none.
pub fn len(path: &Path) -> io::Result<u64> {
    with(|tree| Ok(tree.find(&parts(path))?.file()?.borrow().len()))
}

/// When a file was made, in seconds since 1970.
///
/// # Errors
/// If there is none.
pub fn modified(path: &Path) -> io::Result<u64> {
    with(|tree| Ok(tree.find(&parts(path))?.file()?.borrow().made))
}

/// Read a whole file.
///
/// # Errors
/// If there is none, or its content is not here: see [`bring`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    with(|tree| {
        let content = tree.find(&parts(path.as_ref()))?.file()?.borrow();
        if content.away > 0 {
            return Err(io::Error::other(
                "its content was not fetched from the browser's storage, which is a bug",
            ));
        }
        Ok(content.here.clone())
    })
}

/// Read a whole text file.
///
/// # Errors
/// As for [`read`], and if it is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Make a folder and those above it.
///
/// # Errors
/// If a part of the path is a file.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with(|tree| {
        tree.changes += 1;
        let mut node = &mut tree.root;
        let parts = parts(path.as_ref());
        for (place, part) in parts.iter().enumerate() {
            let last = place + 1 == parts.len();
            let entries = node.folder_mut()?;
            node = entries
                .entry(part.clone())
                .or_insert_with(|| Node::Folder(BTreeMap::new()));
            if last && !node.is_dir() {
                return Err(ErrorKind::AlreadyExists.into());
            }
        }
        Ok(())
    })
}

/// Give a file or folder another name; what has it is replaced, if it is of the same kind, and a folder empty.
///
/// # Errors
/// If that is not so, or there is nothing to rename.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    with(|tree| {
        let (from, to) = (parts(from), parts(to));
        tree.place(&from)?;
        tree.place(&to)?;
        let is_dir = tree.find(&from)?.is_dir();
        if from == to {
            return Ok(());
        }
        if to.starts_with(&from) {
            return Err(ErrorKind::InvalidInput.into());
        }
        if from.starts_with(&to) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let (entries, name) = tree.place(&to)?;
        match entries.get(name) {
            Some(Node::Folder(_)) if !is_dir => return Err(ErrorKind::IsADirectory.into()),
            Some(Node::File(_)) if is_dir => return Err(ErrorKind::NotADirectory.into()),
            Some(Node::Folder(inside)) if !inside.is_empty() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        tree.changes += 1;
        let (entries, name) = tree.place(&from)?;
        let node = entries.remove(name).ok_or(ErrorKind::NotFound)?;
        let (entries, name) = tree.place(&to)?;
        entries.insert(name.clone(), node);
        Ok(())
    })
}

/// Remove an entry, if `fits` has nothing against it.
fn remove(path: &Path, fits: impl FnOnce(&Node) -> io::Result<()>) -> io::Result<()> {
    with(|tree| {
        let parts = parts(path);
        fits(tree.find(&parts)?)?;
        tree.changes += 1;
        let (entries, name) = tree.place(&parts)?;
        entries.remove(name);
        Ok(())
    })
}

/// Remove a file.
///
/// # Errors
/// If there is none.
pub fn remove_file(path: &Path) -> io::Result<()> {
    remove(path, |node| node.file().map(|_| ()))
}

/// Remove an empty folder.
///
/// # Errors
/// If there is none, or it is not empty.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    remove(path, |node| match node.folder()?.is_empty() {
        true => Ok(()),
        false => Err(ErrorKind::DirectoryNotEmpty.into()),
    })
}

/// Remove a folder and all that is below it.
///
/// # Errors
/// If there is none.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    remove(path, |node| node.folder().map(|_| ()))
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct DirEntry {
    folder: PathBuf,
    name: String,
}

impl DirEntry {
    /// The folder's path and its name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Its name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.name.clone().into()
    }
}

/// The entries of a folder, in order of their names.
///
/// # Errors
/// If it is not a folder; the entries are never errors.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<std::vec::IntoIter<io::Result<DirEntry>>> {
    let folder = path.as_ref();
    let entry = |name: &String| DirEntry {
        folder: folder.into(),
        name: name.clone(),
    };
    let entries: Vec<_> = with(|tree| {
        let entries = tree.find(&parts(folder))?.folder()?;
        io::Result::Ok(entries.keys().map(|name| Ok(entry(name))).collect())
    })?;
    Ok(entries.into_iter())
}

/// How to open a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    create: bool,
    append: bool,
}

impl OpenOptions {
    /// Make it if it is not there.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.create = create;
        self
    }

    /// Write at its end.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.append = append;
        self
    }

    /// Open it.
    ///
    /// # Errors
    /// If it is not there and not to be made, or is a folder.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        with(|tree| {
            let parts = parts(path.as_ref());
            let found = match tree.find(&parts) {
                Ok(node) => Some(Rc::clone(node.file()?)),
                Err(error) if error.kind() == ErrorKind::NotFound && self.create => None,
                Err(error) => return Err(error),
            };
            let content = match found {
                Some(content) => content,
                None => {
                    let made = tree.new_content();
                    let (entries, name) = tree.place(&parts)?;
                    entries.insert(name.clone(), Node::File(Rc::clone(&made)));
                    tree.changes += 1;
                    made
                }
            };
            Ok(File::of(content, self.append))
        })
    }
}

/// An open file; written at its end only.
#[derive(Debug)]
pub struct File {
    content: Shared,
    write: bool,
    locks: Cell<bool>,
}

impl File {
    fn of(content: Shared, write: bool) -> Self {
        Self {
            content,
            write,
            locks: Cell::new(false),
        }
    }

    /// Make a file, or empty the one that is there.
    ///
    /// # Errors
    /// If it is a folder, or its folder is not there.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        with(|tree| {
            let parts = parts(path.as_ref());
            let made = tree.new_content();
            let (entries, name) = tree.place(&parts)?;
            if entries.get(name).is_some_and(Node::is_dir) {
                return Err(ErrorKind::IsADirectory.into());
            }
            entries.insert(name.clone(), Node::File(Rc::clone(&made)));
            tree.changes += 1;
            Ok(Self::of(made, true))
        })
    }

    /// Open it to look at it, such as a folder to flush it: nothing needs that here.
    ///
    /// # Errors
    /// If it is not there.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        with(|tree| match tree.find(&parts(path.as_ref()))? {
            Node::File(content) => Ok(Self::of(Rc::clone(content), false)),
            Node::Folder(_) => Ok(Self::of(Shared::default(), false)),
        })
    }

    /// How to open a file.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// Hold it, so that nobody else can, until it is closed.
    ///
    /// # Errors
    /// If somebody else holds it.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        let mut content = self.content.borrow_mut();
        if content.locked && !self.locks.get() {
            return Err(TryLockError::WouldBlock);
        }
        content.locked = true;
        self.locks.set(true);
        Ok(())
    }

    /// Whether nobody else holds it.
    ///
    /// # Errors
    /// If somebody does.
    pub fn try_lock_shared(&self) -> Result<(), TryLockError> {
        if self.content.borrow().locked && !self.locks.get() {
            return Err(TryLockError::WouldBlock);
        }
        Ok(())
    }

    /// The worker copies to the storage what it has to, in an order that does not matter here.
    ///
    /// # Errors
    /// Never.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.content.borrow_mut().locked &= !self.locks.get();
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.write {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.content.borrow_mut().here.extend_from_slice(bytes);
        with(|tree| tree.changes += 1);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All of a tree but the contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Number of the next file.
    pub next: u64,
    /// Paths of all folders but the root, each after those above it.
    pub folders: Vec<String>,
    /// All files.
    pub files: Vec<Entry>,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, from the root.
    pub path: String,
    /// Its number.
    pub number: u64,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Bytes of a file that stay in memory, at most, while somebody holds a lock beside it: an open run reads what it has recorded
/// when it thins that out.
const HELD: u64 = 64 << 20;

/// A file of the tree, for a storage.
#[derive(Clone, Debug)]
pub struct FileRef {
    content: Shared,
    /// Somebody holds a lock in its folder.
    held: bool,
}

impl FileRef {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.content.borrow().number
    }

    /// Its content from some byte on; `None` if that is not here.
    #[must_use]
    pub fn from(&self, start: u64) -> Option<Vec<u8>> {
        let content = self.content.borrow();
        let start = usize::try_from(start.checked_sub(content.away)?).ok()?;
        content.here.get(start..).map(<[u8]>::to_vec)
    }

    /// The storage has the first `stored` bytes. They leave the memory if the file has more than `most`, or, as a part of an
    /// open run, more than 64 MiB.
    pub fn let_go(&self, stored: u64, most: u64) {
        let mut content = self.content.borrow_mut();
        let most = if self.held { most.max(HELD) } else { most };
        if content.len() <= most {
            return;
        }
        let gone = usize::try_from(stored.saturating_sub(content.away)).unwrap_or(usize::MAX);
        let gone = gone.min(content.here.len());
        content.here = content.here.split_off(gone);
        content.away += gone as u64;
    }
}

/// A path, and for a file its content and whether somebody holds a lock beside it.
type Seen<'a> = &'a mut dyn FnMut(String, Option<(&Shared, bool)>);

/// Go through a folder and all below it.
fn list(entries: &BTreeMap<String, Node>, above: &str, seen: Seen<'_>) {
    let locked = |node: &Node| node.file().is_ok_and(|content| content.borrow().locked);
    let held = entries.values().any(locked);
    for (name, node) in entries {
        let path = format!("{above}{name}");
        match node {
            Node::File(content) => seen(path, Some((content, held))),
            Node::Folder(inside) => {
                let above = format!("{path}/");
                seen(path, None);
                list(inside, &above, seen);
            }
        }
    }
}

/// All of the tree but the contents, and its files in the same order.
#[must_use]
pub fn inventory() -> (Inventory, Vec<FileRef>) {
    with(|tree| {
        let mut inventory = Inventory {
            next: tree.next,
            ..Inventory::default()
        };
        let mut files = Vec::new();
        if let Node::Folder(root) = &tree.root {
            list(root, "", &mut |path, content| match content {
                None => inventory.folders.push(path),
                Some((content, held)) => {
                    let own = content.borrow();
                    inventory.files.push(Entry {
                        path,
                        number: own.number,
                        made: own.made,
                        bytes: own.len(),
                    });
                    files.push(FileRef {
                        content: Rc::clone(content),
                        held,
                    });
                }
            });
        }
        (inventory, files)
    })
}

/// Use this clock from now on: seconds since 1970.
pub fn set_calendar(calendar: fn() -> u64) {
    with(|tree| tree.calendar = calendar);
}

/// Replace the tree by what a storage has; no content is here yet, `fetch` brings it.
///
/// # Errors
/// If the inventory is not one of a tree: a file lies in a file, or in no folder. The tree is empty then.
pub fn restore(inventory: &Inventory, fetch: Option<Fetch>) -> io::Result<()> {
    let restored = fill(inventory, fetch);
    if restored.is_err() {
        with(|tree| tree.root = Node::Folder(BTreeMap::new()));
    }
    restored
}

fn fill(inventory: &Inventory, fetch: Option<Fetch>) -> io::Result<()> {
    with(|tree| {
        tree.root = Node::Folder(BTreeMap::new());
        (tree.next, tree.fetch) = (inventory.next.max(1), fetch);
        for folder in &inventory.folders {
            let parts = parts(Path::new(folder));
            let (entries, name) = tree.place(&parts)?;
            entries.insert(name.clone(), Node::Folder(BTreeMap::new()));
        }
        for file in &inventory.files {
            let content = Content {
                number: file.number,
                made: file.made,
                away: file.bytes,
                ..Content::default()
            };
            tree.next = tree.next.max(file.number + 1);
            let parts = parts(Path::new(&file.path));
            let (entries, name) = tree.place(&parts)?;
            entries.insert(name.clone(), Node::File(Rc::new(RefCell::new(content))));
        }
        tree.changes += 1;
        Ok(())
    })
}

/// A number that changes whenever the tree does.
#[must_use]
pub fn changes() -> u64 {
    with(|tree| tree.changes)
}

/// The files at and below these paths whose content is not here, without those that do not exist.
fn missing(paths: &[PathBuf]) -> Vec<Shared> {
    let mut missing = Vec::new();
    let mut look = |content: &Shared| {
        if content.borrow().away > 0 {
            missing.push(Rc::clone(content));
        }
    };
    with(|tree| {
        for path in paths {
            match tree.find(&parts(path)) {
                Ok(Node::File(content)) => look(content),
                Ok(Node::Folder(entries)) => {
                    list(entries, "", &mut |_, content| {
                        if let Some((content, _)) = content {
                            look(content);
                        }
                    });
                }
                Err(_) => {}
            }
        }
    });
    missing
}

/// Fetch the content of these files, and of all below these folders, from the storage. It stays until the storage is next
/// asked to keep something.
///
/// # Errors
/// If the storage cannot read it.
pub async fn bring(paths: &[PathBuf]) -> io::Result<()> {
    let Some(fetch) = with(|tree| tree.fetch.clone()) else {
        return Ok(());
    };
    for content in missing(paths) {
        let (number, away) = (content.borrow().number, content.borrow().away);
        let mut bytes = fetch(number, away).await?;
        let mut content = content.borrow_mut();
        bytes.append(&mut content.here);
        (content.here, content.away) = (bytes, 0);
    }
    Ok(())
}
