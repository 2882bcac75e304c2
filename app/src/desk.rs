//! The desktop's way between window and engine: a thread that runs a [`Backend`], and two channels.

use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::backend::{Backend, Surroundings};
use crate::protocol::{Command, Event};

/// The window's end of the channels.
#[derive(Debug)]
pub struct Desk {
    commands: Sender<Command>,
    events: Receiver<Event>,
    ended: bool,
}

/// Seconds since 1970.
#[must_use]
pub fn calendar() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// Bytes that this process may still use, if the system says so.
#[must_use]
pub fn free_memory() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let free = system.available_memory();
    let free = match system.cgroup_limits() {
        Some(limits) if limits.total_memory > 0 => free.min(limits.free_memory),
        _ => free,
    };
    (free > 0).then_some(free)
}

/// Bytes of memory that this process has, if the system says so.
#[must_use]
pub fn used_memory() -> Option<u64> {
    let own = sysinfo::get_current_pid().ok()?;
    let mut system = sysinfo::System::new().ok()?;
    let (which, what) = (
        sysinfo::ProcessesToUpdate::Some(&[own]),
        sysinfo::ProcessRefreshKind::nothing().with_memory(),
    );
    system.refresh_processes_specifics(which, false, what);
    system.process(own).map(sysinfo::Process::memory)
}

impl Desk {
    /// Start the thread. `wake` is called, on that thread, whenever there are events.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn open(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let (commands, inbox) = mpsc::channel();
        let (outbox, events) = mpsc::channel();
        thread::Builder::new()
            .name("braid engine".into())
            .spawn(move || work(&inbox, &outbox, &wake))?;
        Ok(Self {
            commands,
            events,
            ended: false,
        })
    }

    /// Ask for something.
    pub fn send(&self, command: Command) {
        // A thread that has ended hears nothing; `poll` says that it has.
        let _ = self.commands.send(command);
    }

    /// All events since the last call.
    pub fn poll(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(event) => {
                    self.ended |= matches!(event, Event::Ended);
                    all.push(event);
                }
                Err(TryRecvError::Disconnected) if !self.ended => {
                    self.ended = true;
                    all.push(Event::Failed {
                        what: "engine".into(),
                        message: "the engine's thread has stopped, which is a bug; the run is kept up to its last \
                                  checkpoint: start the program again and open it"
                            .into(),
                        field: None,
                    });
                    all.push(Event::Ended);
                }
                Err(_) => return all,
            }
        }
    }
}

fn work(inbox: &Receiver<Command>, outbox: &Sender<Event>, wake: &impl Fn()) {
    let began = Instant::now();
    let mut backend = Backend::new(Surroundings {
        clock: Rc::new(move || began.elapsed().as_secs_f64()),
        calendar,
        free_memory,
        used_memory,
        files: true,
    });
    let mut sink = |event| {
        let _ = outbox.send(event);
        wake();
    };
    while !backend.has_ended() {
        let command = if backend.is_busy() {
            match inbox.try_recv() {
                Ok(command) => Some(command),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => break,
            }
        } else {
            match inbox.recv() {
                Ok(command) => Some(command),
                Err(_) => break,
            }
        };
        match command {
            Some(command) => pollster::block_on(backend.handle(command, &mut sink)),
            None => pollster::block_on(backend.turn(&mut sink)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::used_memory;

    #[test]
    fn what_is_allocated_is_used() {
        let Some(before) = used_memory() else {
            return;
        };
        let block = vec![1_u8; 64 << 20];
        let after = used_memory().expect("as before");
        assert!(after > before + (32 << 20), "{before} {after}");
        assert_eq!(
            block.iter().map(|&byte| usize::from(byte)).sum::<usize>(),
            block.len()
        );
    }
}
