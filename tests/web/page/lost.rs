//! The device is lost, or its memory is used up: the page says so, and goes on.

use std::time::Instant;

use braid_app::protocol::{Command, Event, RunState};

use super::{PATIENCE, TOY, Visit, ended, losses, start};
use crate::chromium::Gpu;
use crate::server::Files;

/// Reaches into the worker, whose own code is left as it is: devices that it opens are kept in `opened`, and while `full` is
/// set, the driver reports that memory is used up.
const REACH: &str = "
    self.opened = [];
    Object.defineProperty(navigator, 'gpu', { get() {
        if (!self.reached) {
            self.reached = true;
            const request = GPUAdapter.prototype.requestDevice;
            GPUAdapter.prototype.requestDevice = async function (...how) {
                if (self.gone) throw new Error('no device any more');
                const device = await request.apply(this, how);
                self.opened.push(device);
                return device;
            };
            const push = GPUDevice.prototype.pushErrorScope, pop = GPUDevice.prototype.popErrorScope;
            const scopes = [];
            GPUDevice.prototype.pushErrorScope = function (filter) { scopes.push(filter); push.call(this, filter); };
            GPUDevice.prototype.popErrorScope = function () {
                const real = pop.call(this);
                const memory = scopes.pop() === 'out-of-memory';
                return memory && self.full ? Promise.resolve(new GPUOutOfMemoryError('no memory left')) : real;
            };
        }
        return Object.getOwnPropertyDescriptor(WorkerNavigator.prototype, 'gpu').get.call(navigator);
    } })";

fn visit() -> Option<Visit> {
    let mut visit = Visit::open(Gpu::Software, Files::new(), "", Some(REACH))?;
    visit.load("");
    Some(visit)
}

impl Visit {
    fn in_worker(&mut self, script: &str) {
        let worker = self.tab.workers[0].clone();
        self.tab.eval_in(&worker, script);
    }

    /// Wait until this update has been read back.
    fn until_step(&mut self, step: u64) {
        let late = Instant::now() + PATIENCE;
        while losses(&self.heard).last().is_none_or(|last| last.0 < step) {
            assert!(Instant::now() < late, "{:?}", losses(&self.heard).last());
            self.listen();
        }
    }
}

/// The loss of each update that counts in the end: what was done again replaces what was lost.
fn last_losses(heard: &[Event]) -> Vec<(u64, f64)> {
    let mut all: Vec<(u64, f64)> = Vec::new();
    for (step, loss) in losses(heard) {
        all.retain(|old| old.0 < step);
        all.push((step, loss));
    }
    all
}

#[test]
fn a_lost_device_is_opened_again_and_the_losses_are_those_of_an_undisturbed_run() {
    let Some(mut visit) = visit() else {
        return;
    };
    let toml = format!("{TOY}save_every = 10\n");
    let undisturbed = visit.train(&toml, "gpu");
    assert_eq!(undisturbed.len(), 50);
    visit.heard.clear();
    visit.send(&start(&toml, "gpu"));
    visit.until_step(13);
    visit.in_worker("self.opened.at(-1).destroy()");
    visit.until("word of it", |event| {
        matches!(event, Event::DeviceLost { .. })
    });
    visit.until("end of the training", ended);
    let lost = visit.heard.iter().find_map(|event| match event {
        Event::DeviceLost { step, message } => Some((*step, message.clone())),
        _ => None,
    });
    let (step, message) = lost.expect("it was heard");
    assert!(step >= 10 && step % 10 == 0, "{step}: {message}");
    assert!(
        message.contains("opened again") && message.contains(&format!("step {step}")),
        "{message}"
    );
    // Those of an undisturbed run, bit for bit.
    let bits = |losses: &[(u64, f64)]| -> Vec<(u64, u64)> {
        losses
            .iter()
            .map(|(step, loss)| (*step, loss.to_bits()))
            .collect()
    };
    assert_eq!(bits(&last_losses(&visit.heard)), bits(&undisturbed));
    visit.was_clean();
}

#[test]
fn a_device_that_does_not_come_back_leaves_the_run_on_the_processor() {
    let Some(mut visit) = visit() else {
        return;
    };
    let toml = format!("{TOY}save_every = 10\n");
    visit.send(&start(&toml, "gpu"));
    visit.until_step(11);
    visit.in_worker("self.gone = true; self.opened.at(-1).destroy()");
    visit.until("word of it", |event| {
        matches!(event, Event::DeviceLost { message, .. } if message.contains("waits on the CPU"))
    });
    visit.listen();
    let state = visit.heard.iter().rev().find_map(|event| match event {
        Event::State(state) => Some(state.clone()),
        _ => None,
    });
    assert_eq!(state, Some(RunState::Paused));
    visit.send(&Command::Resume);
    visit.until("end of the training", ended);
    let all = last_losses(&visit.heard);
    assert_eq!(all.len(), 50, "{all:?}");
    assert!(all[49].1 < all[0].1 - 0.1, "{all:?}");
    visit.was_clean();
}

#[test]
fn memory_that_is_used_up_is_a_sentence_and_the_page_lives_on() {
    let Some(mut visit) = visit() else {
        return;
    };
    let failed = |visit: &mut Visit, toml: &str, device: &str| -> String {
        visit.heard.clear();
        visit.send(&start(toml, device));
        visit.until("a failure", |event| matches!(event, Event::Failed { .. }));
        let message = visit.heard.iter().find_map(|event| match event {
            Event::Failed { message, .. } => Some(message.clone()),
            _ => None,
        });
        visit.heard.clear();
        message.unwrap_or_default()
    };
    visit.in_worker("self.full = true");
    let message = failed(&mut visit, TOY, "gpu");
    assert!(
        message.contains("the GPU has no more of it") && message.contains("lower train.batch"),
        "{message}"
    );
    visit.in_worker("self.full = false");
    // More than the addresses of WebAssembly reach.
    let large = TOY
        .replace("width = 32", "width = 4096")
        .replace("layers = 2", "layers = 24")
        .replace("heads = 2", "heads = 32");
    let message = failed(&mut visit, &large, "cpu");
    assert!(
        message.contains("addresses here reach") && message.contains("lower model.width"),
        "{message}"
    );
    for device in ["gpu", "cpu"] {
        visit.heard.clear();
        let short = TOY.replace("steps = 50", "steps = 2");
        assert_eq!(visit.train(&short, device).len(), 2);
    }
    visit.was_clean();
}
