//! Any sequence of operations has the same results in memory as on a disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use braid_app::files::memory;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    Folder(PathBuf),
    Write(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>, bool),
    Rename(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    RemoveFolder(PathBuf),
    RemoveAll(PathBuf),
}

/// Few names, so that operations meet.
fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4)
        .prop_map(|parts| parts.iter().collect())
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        path().prop_map(Act::Folder),
        (path(), bytes()).prop_map(|(path, bytes)| Act::Write(path, bytes)),
        (path(), bytes(), any::<bool>())
            .prop_map(|(path, bytes, create)| Act::Append(path, bytes, create)),
        (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
        path().prop_map(Act::RemoveFile),
        path().prop_map(Act::RemoveFolder),
        path().prop_map(Act::RemoveAll),
    ]
}

fn on_disk(root: &Path, act: &Act) -> io::Result<()> {
    match act {
        Act::Folder(path) => fs::create_dir_all(root.join(path)),
        Act::Write(path, bytes) => fs::File::create(root.join(path))?.write_all(bytes),
        Act::Append(path, bytes, create) => fs::File::options()
            .append(true)
            .create(*create)
            .open(root.join(path))?
            .write_all(bytes),
        Act::Rename(from, to) => fs::rename(root.join(from), root.join(to)),
        Act::RemoveFile(path) => fs::remove_file(root.join(path)),
        Act::RemoveFolder(path) => fs::remove_dir(root.join(path)),
        Act::RemoveAll(path) => fs::remove_dir_all(root.join(path)),
    }
}

fn in_memory(act: &Act) -> io::Result<()> {
    match act {
        Act::Folder(path) => memory::create_dir_all(path),
        Act::Write(path, bytes) => memory::File::create(path)?.write_all(bytes),
        Act::Append(path, bytes, create) => memory::File::options()
            .append(true)
            .create(*create)
            .open(path)?
            .write_all(bytes),
        Act::Rename(from, to) => memory::rename(from, to),
        Act::RemoveFile(path) => memory::remove_file(path),
        Act::RemoveFolder(path) => memory::remove_dir(path),
        Act::RemoveAll(path) => memory::remove_dir_all(path),
    }
}

fn disk_tree(root: &Path, at: &Path, tree: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs::read_dir(root.join(at)).unwrap() {
        let path = at.join(entry.unwrap().file_name());
        let full = root.join(&path);
        assert_eq!(memory::is_dir(&path), full.is_dir());
        assert_eq!(memory::is_file(&path), full.is_file());
        if full.is_dir() {
            tree.insert(path.clone(), None);
            disk_tree(root, &path, tree);
        } else {
            let content = fs::read(&full).unwrap();
            assert_eq!(memory::len(&path).unwrap(), content.len() as u64);
            tree.insert(path, Some(content));
        }
    }
}

fn memory_tree(at: &Path, tree: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in memory::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        let path = at.join(entry.file_name());
        assert_eq!(path, entry.path());
        if memory::is_dir(&path) {
            tree.insert(path.clone(), None);
            memory_tree(&path, tree);
        } else {
            tree.insert(path.clone(), Some(memory::read(&path).unwrap()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_have_the_same_results_as_on_a_disk(acts in prop::collection::vec(act(), 1..40)) {
        let root = tempfile::tempdir().unwrap();
        memory::restore(&memory::Inventory::default(), None).unwrap();
        for act in &acts {
            let (disk, memory) = (on_disk(root.path(), act), in_memory(act));
            let kind = |result: io::Result<()>| result.map_err(|error| error.kind());
            prop_assert_eq!(kind(disk), kind(memory), "{:?}", act);
        }
        let (mut disk, mut memory) = (BTreeMap::new(), BTreeMap::new());
        disk_tree(root.path(), Path::new(""), &mut disk);
        memory_tree(Path::new(""), &mut memory);
        prop_assert_eq!(disk, memory);
    }
}

#[test]
fn an_open_file_follows_its_name_and_a_lock_ends_with_its_holder() {
    let at = Path::new;
    let mut log = memory::File::create(at("log")).unwrap();
    memory::rename(at("log"), at("other")).unwrap();
    log.write_all(b"kept").unwrap();
    assert_eq!(memory::read("other").unwrap(), b"kept");
    let second = memory::File::options();
    let second = { second }.append(true).open(at("other")).unwrap();
    log.try_lock().unwrap();
    log.try_lock().unwrap();
    assert!(second.try_lock().is_err());
    drop(log);
    second.try_lock().unwrap();
    assert!(memory::read_dir(at("other")).is_err() && memory::read("").is_err());
}
