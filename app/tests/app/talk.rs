//! A conversation with the engine's side of the window, and a small run to talk about.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use braid_app::backend::{Backend, Surroundings};
use braid_app::protocol::{Command, Draft, Event, Frame, Line, RunState};

/// A backend and everything that it has said.
pub(crate) struct Talk {
    pub(crate) backend: Backend,
    pub(crate) heard: Vec<Event>,
}

impl Talk {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        Self::with_clock(Rc::new(move || began.elapsed().as_secs_f64()))
    }

    pub(crate) fn with_clock(clock: Rc<dyn Fn() -> f64>) -> Self {
        Self {
            backend: Backend::new(Surroundings {
                clock,
                calendar: || 0,
                free_memory: || None,
                used_memory: || None,
                files: true,
            }),
            heard: Vec::new(),
        }
    }

    pub(crate) fn say(&mut self, command: Command) {
        let heard = &mut self.heard;
        pollster::block_on(self.backend.handle(command, &mut |event| heard.push(event)));
    }

    /// Turn until `done` is heard, from now on.
    pub(crate) fn until(&mut self, done: impl Fn(&Event) -> bool) {
        for _ in 0..10_000 {
            let seen = self.heard.len();
            let heard = &mut self.heard;
            pollster::block_on(self.backend.turn(&mut |event| heard.push(event)));
            if self.heard[seen..].iter().any(&done) {
                return;
            }
        }
        panic!("not heard: {:?}", self.heard.last());
    }

    pub(crate) fn state(&self) -> Option<&RunState> {
        self.heard.iter().rev().find_map(|event| match event {
            Event::State(state) => Some(state),
            _ => None,
        })
    }

    pub(crate) fn failures(&self) -> Vec<&str> {
        let heard = self.heard.iter();
        heard
            .filter_map(|event| match event {
                Event::Failed { message, .. } => Some(message.as_str()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn losses(&self) -> Vec<(u64, f64)> {
        let lines = self.heard.iter().filter_map(|event| match event {
            Event::Lines(lines) => Some(lines),
            _ => None,
        });
        lines
            .flatten()
            .filter_map(|line| match line {
                Line::Train { step, loss, .. } => Some((*step, loss.unwrap_or(f64::NAN))),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn frames(talk: &Talk) -> impl Iterator<Item = &Frame> {
    talk.heard.iter().filter_map(|event| match event {
        Event::Frame(frame) => Some(&**frame),
        _ => None,
    })
}

pub(crate) const SMALL: &str = "[model]\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 32\n[data]\ntask = \"copy\"\n[train]\nsteps = 40\nbatch = 4\n\
                     warmup = 5\neval_every = 10\neval_batches = 2\nsave_every = 20\n";

pub(crate) fn draft(toml: &str) -> Draft {
    Draft {
        toml: toml.into(),
        text: None,
    }
}

pub(crate) fn start(folder: &Path, paused: bool) -> Command {
    Command::Start {
        draft: draft(SMALL),
        device: "cpu".into(),
        folder: Some(folder.display().to_string()),
        paused,
    }
}

pub(crate) fn finished(event: &Event) -> bool {
    *event == Event::State(RunState::Finished)
}

/// Texts of so many tokens, whenever so many updates are done.
pub(crate) fn every(updates: u64, tokens: usize) -> Command {
    Command::SampleEvery {
        every: Some(updates),
        prompt: String::new(),
        tokens,
        temperature: 0.8,
        seed: 1,
    }
}
