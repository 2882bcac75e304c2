//! When the worker's files are copied to the browser's storage, and what is said about it.

use std::cell::RefCell;
use std::rc::Rc;

use braid_app::protocol::Event;
use braid_web::keeping::{Keeper, Trouble};

use crate::opfs::{Opfs, Storage};

/// Seconds between two copies while records come; a checkpoint is copied at once.
const OFTEN: f64 = 1.0;

/// Seconds until a copy that failed is tried again.
const AGAIN: f64 = 30.0;

/// Events that say that something was saved: they wait until it is in the storage.
pub(crate) type Saved = Rc<RefCell<Vec<Event>>>;

/// The storage, and what it said last.
pub(crate) struct Keeping {
    keeper: Option<Keeper<Opfs>>,
    saved: Saved,
    trouble: Option<String>,
    /// When the next copy is due.
    next: f64,
}

/// Why there is no storage.
fn refused(why: &str) -> String {
    let safe =
        "The training goes on, but it is lost with this tab: download what is worth keeping.";
    match why {
        "tab" => format!(
            "Another tab with this page keeps its runs in this browser; so that neither overwrites the other's, this one keeps \
             none. {safe} To open what is kept, close the other tab and reload this one."
        ),
        why => format!(
            "The browser keeps no files for this page ({why}). {safe} Allow storage for this page in the browser's settings, or \
             use a window that is not private."
        ),
    }
}

fn failed(trouble: &Trouble) -> String {
    let safe = "The training goes on, but what it learns from now on is lost with this tab";
    match trouble {
        Trouble::Full => format!(
            "The browser's storage for this page is full. {safe}: delete runs under \"Open a run\", or download this one."
        ),
        Trouble::Other(words) => format!(
            "The browser has refused to write ({words}). {safe}: download this run. It is tried again meanwhile."
        ),
    }
}

impl Keeping {
    /// Read the list of what is kept. `say` hears why nothing is, if so.
    pub(crate) async fn open(storage: Storage, saved: Saved, say: &impl Fn(Event)) -> Self {
        let keeper = match Opfs::of(storage) {
            Ok(storage) => Keeper::open(storage).await,
            Err(why) => Err(why),
        };
        let (keeper, trouble) = match keeper {
            Ok(keeper) => (Some(keeper), None),
            Err(why) => (None, Some(refused(&why))),
        };
        if trouble.is_some() {
            say(Event::Keeping {
                trouble: trouble.clone(),
            });
        }
        Self {
            keeper,
            saved,
            trouble,
            next: 0.0,
        }
    }

    /// Copy what is due at this time; `rests`: nothing else is going on.
    pub(crate) async fn turn(&mut self, now: f64, rests: bool, say: &impl Fn(Event)) {
        let saved = !self.saved.borrow().is_empty();
        let failing = self.trouble.is_some();
        let due = saved || now >= self.next || (rests && !failing);
        let copied = match &mut self.keeper {
            Some(keeper) if due && keeper.is_due() => {
                let copied = keeper.commit().await;
                self.next = now + if copied.is_ok() { OFTEN } else { AGAIN };
                copied.map_err(|trouble| failed(&trouble))
            }
            Some(_) => Ok(()),
            None => Err(self.trouble.clone().unwrap_or_default()),
        };
        let trouble = copied.err();
        for event in self.saved.take() {
            match (&trouble, event) {
                (Some(_), Event::Saved { step, .. }) => say(Event::Notice {
                    message: format!("step {step} is held in memory, until this tab is closed"),
                }),
                (_, event) => say(event),
            }
        }
        // Between two tries nothing is known.
        let tried = due && self.keeper.is_some() && self.next > now;
        if tried && trouble != self.trouble {
            self.trouble.clone_from(&trouble);
            say(Event::Keeping { trouble });
        }
    }
}
