use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use memory::File;

use super::*;

/// Files in memory; after so many writes and removals the power fails, in the middle of one.
#[derive(Clone, Debug, Default)]
struct Fake {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    left: Rc<Cell<Option<usize>>>,
    /// Bytes that there is room for; `None`: any.
    room: Rc<Cell<Option<usize>>>,
}

impl Fake {
    /// Whether this change is made: all of it, a part, or nothing.
    fn power(&self) -> (bool, bool) {
        match self.left.get() {
            None => (true, true),
            Some(0) => (false, false),
            Some(left) => {
                self.left.set(Some(left - 1));
                (true, left > 1)
            }
        }
    }

    fn bytes(&self) -> usize {
        self.files.borrow().values().map(Vec::len).sum()
    }
}

fn off() -> Trouble {
    Trouble::Other("the power is off".into())
}

impl Blobs for Fake {
    async fn names(&self) -> Result<Vec<String>, Trouble> {
        Ok(self.files.borrow().keys().cloned().collect())
    }

    async fn read(&self, name: &str, from: u64, bytes: u64) -> Result<Vec<u8>, Trouble> {
        let files = self.files.borrow();
        let content = files.get(name).ok_or_else(off)?;
        let content = content.iter().skip(from as usize);
        Ok(content.take(bytes as usize).copied().collect())
    }

    async fn write(&self, name: &str, from: u64, bytes: &[u8]) -> Result<(), Trouble> {
        let (some, all) = self.power();
        if !some {
            return Err(off());
        }
        let full = self
            .room
            .get()
            .is_some_and(|room| self.bytes() + bytes.len() > room);
        let mut files = self.files.borrow_mut();
        let content = files.entry(name.into()).or_default();
        content.truncate(from as usize);
        assert_eq!(content.len(), from as usize, "{name} has no hole");
        let whole = all && !full;
        let written = if whole { bytes.len() } else { bytes.len() / 2 };
        content.extend(&bytes[..written]);
        match (full, all) {
            (true, _) => Err(Trouble::Full),
            (_, true) => Ok(()),
            _ => Err(off()),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), Trouble> {
        let (some, _) = self.power();
        if some {
            self.files.borrow_mut().remove(name);
        }
        some.then_some(()).ok_or_else(off)
    }
}

/// Nothing in these tests waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

fn write(path: &str, bytes: &[u8]) {
    let mut file = File::create(Path::new(path)).expect("made");
    file.write_all(bytes).expect("written");
}

/// All paths with their contents; folders have none.
fn tree() -> BTreeMap<String, Option<Vec<u8>>> {
    let (inventory, _) = memory::inventory();
    now(memory::bring(&[PathBuf::new()])).expect("all of it is there");
    let folders = inventory.folders.into_iter().map(|path| (path, None));
    let files = inventory.files.into_iter().map(|file| {
        let content = memory::read(Path::new(&file.path)).expect("brought");
        (file.path, Some(content))
    });
    folders.chain(files).collect()
}

/// Some changes, and files that stay open.
type Step = Box<dyn Fn(&mut Vec<File>)>;

/// Steps of a life; what each changes, a commit is to keep together.
fn steps() -> Vec<Step> {
    let p = Path::new;
    vec![
        Box::new(move |open| {
            memory::create_dir_all(p("runs/.a.new/checkpoints")).expect("made");
            write("runs/.a.new/config.toml", b"[model]");
            memory::rename(p("runs/.a.new"), p("runs/a")).expect("renamed");
            let mut log = File::options();
            let log = log.append(true).create(true).open(p("runs/a/metrics"));
            open.push(log.expect("opened"));
        }),
        Box::new(|open| open[0].write_all(&[1; 70_000]).expect("appended")),
        Box::new(move |open| {
            open[0].write_all(b"more").expect("appended");
            memory::create_dir_all(p("runs/a/checkpoints/.one.new")).expect("made");
            write("runs/a/checkpoints/.one.new/model", &[2; 100_000]);
            memory::rename(
                p("runs/a/checkpoints/.one.new"),
                p("runs/a/checkpoints/one"),
            )
            .expect("renamed");
            write("runs/a/.last.new", b"one");
            memory::rename(p("runs/a/.last.new"), p("runs/a/last")).expect("renamed");
        }),
        Box::new(move |open| {
            open[0].write_all(b"and more").expect("appended");
            memory::create_dir_all(p("runs/a/checkpoints/two")).expect("made");
            write("runs/a/checkpoints/two/model", &[3; 100_000]);
            write("runs/a/.last.new", b"two");
            memory::rename(p("runs/a/.last.new"), p("runs/a/last")).expect("renamed");
            memory::remove_dir_all(p("runs/a/checkpoints/one")).expect("removed");
        }),
    ]
}

fn begin(fake: &Fake) -> Keeper<Fake> {
    now(Keeper::open(fake.clone())).expect("it can be read")
}

#[test]
fn what_is_kept_comes_back_and_large_contents_leave_the_memory() {
    let fake = Fake::default();
    let mut keeper = begin(&fake);
    let mut open = Vec::new();
    for step in steps() {
        step(&mut open);
        assert!(keeper.is_due());
        now(keeper.commit()).expect("kept");
        assert!(!keeper.is_due());
    }
    let model = Path::new("runs/a/checkpoints/two/model");
    assert!(memory::read(model).is_err(), "it has left the memory");
    assert_eq!(memory::len(model).ok(), Some(100_000));
    assert_eq!(
        memory::read(Path::new("runs/a/last")).ok().as_deref(),
        Some(&b"two"[..]),
        "what is small stays"
    );
    let before = tree();
    assert_eq!(
        before["runs/a/metrics"].as_ref().map(Vec::len),
        Some(70_012)
    );
    // Two lists, four files with content: nothing that is not needed.
    assert_eq!(
        fake.files.borrow().len(),
        6,
        "{:?}",
        fake.files.borrow().keys()
    );
    begin(&fake);
    assert_eq!(tree(), before);
    // A file that grows after it has left the memory.
    let mut keeper = begin(&fake);
    let mut log = File::options();
    let mut log = log
        .append(true)
        .open(Path::new("runs/a/metrics"))
        .expect("opened");
    log.write_all(b"!").expect("appended");
    now(keeper.commit()).expect("kept");
    begin(&fake);
    assert_eq!(
        tree()["runs/a/metrics"].as_ref().map(Vec::len),
        Some(70_013)
    );
}

#[test]
fn wherever_the_power_fails_the_last_state_or_the_one_before_is_there_whole() {
    let mut cuts = 0;
    for count in 1..=steps().len() {
        for power in 1.. {
            let fake = Fake::default();
            let mut keeper = begin(&fake);
            let mut open = Vec::new();
            let mut before = tree();
            for (place, step) in steps().iter().take(count).enumerate() {
                before = tree();
                step(&mut open);
                if place + 1 == count {
                    fake.left.set(Some(power));
                }
                let _ = now(keeper.commit());
            }
            let after = tree_without_storage(&fake);
            let cut = fake.left.get() == Some(0);
            fake.left.set(None);
            begin(&fake);
            let found = tree();
            assert!(found == before || found == after, "{count} {power}");
            // And it goes on from there.
            let mut keeper = begin(&fake);
            write("runs-later", b"later");
            now(keeper.commit()).expect("kept");
            begin(&fake);
            assert_eq!(tree()["runs-later"].as_deref(), Some(&b"later"[..]));
            if !cut {
                assert_eq!(found, after);
                break;
            }
            cuts += 1;
        }
    }
    assert!(cuts > 10, "{cuts}");
}

/// The tree as the program that still runs sees it.
fn tree_without_storage(fake: &Fake) -> BTreeMap<String, Option<Vec<u8>>> {
    let left = fake.left.replace(None);
    let tree = tree();
    fake.left.set(left);
    tree
}

#[test]
fn a_full_storage_keeps_the_last_state_and_takes_the_next_one_once_there_is_room() {
    let fake = Fake::default();
    let mut keeper = begin(&fake);
    write("a", &[1; 1000]);
    now(keeper.commit()).expect("kept");
    let before = tree();
    fake.room.set(Some(fake.bytes() + 500));
    write("b", &[2; 100_000]);
    let used = fake.bytes();
    assert_eq!(now(keeper.commit()), Err(Trouble::Full));
    assert_eq!(fake.bytes(), used, "what was begun takes no room");
    assert!(
        memory::read(Path::new("b")).is_ok(),
        "it is still in memory"
    );
    assert!(keeper.is_due());
    let other = fake.clone();
    let found = std::thread::scope(|scope| {
        // Another start: a tree of its own.
        let files = other.files.borrow().clone();
        let start = move || {
            let fake = Fake::default();
            *fake.files.borrow_mut() = files;
            begin(&fake);
            tree()
        };
        scope.spawn(start).join().expect("it opens")
    });
    assert_eq!(found, before);
    fake.room.set(None);
    now(keeper.commit()).expect("there is room again");
    begin(&fake);
    assert_eq!(tree()["b"].as_deref(), Some(&[2; 100_000][..]));
}

#[test]
fn what_is_damaged_or_of_another_version_is_left_alone() {
    let fake = Fake::default();
    let mut keeper = begin(&fake);
    for name in ["a", "b"] {
        write(name, b"content");
        now(keeper.commit()).expect("kept");
    }
    let whole = fake.files.borrow().clone();
    // One list that was cut short: the other one holds.
    for name in ["index-0", "index-1"] {
        let cut = whole[name].len() / 2;
        fake.files
            .borrow_mut()
            .get_mut(name)
            .expect("there")
            .truncate(cut);
        begin(&fake);
        assert!(tree().contains_key("a"));
        *fake.files.borrow_mut() = whole.clone();
    }
    for name in ["index-0", "index-1"] {
        fake.files
            .borrow_mut()
            .insert(name.into(), b"braid".to_vec());
    }
    let damaged = fake.files.borrow().clone();
    let error = now(Keeper::open(fake.clone())).expect_err("both are damaged");
    assert!(error.contains("clear this site's data"), "{error}");
    assert_eq!(*fake.files.borrow(), damaged);
    let newer = String::from_utf8_lossy(&whole["index-0"]).replacen("files 1", "files 2", 1);
    fake.files
        .borrow_mut()
        .insert("index-0".into(), newer.into_bytes());
    let error = now(Keeper::open(fake.clone())).expect_err("another version");
    assert!(error.contains("another version"), "{error}");
}
