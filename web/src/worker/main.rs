//! The engine in a dedicated worker: takes commands, trains in between, posts events.
//!
//! It owns its WebGPU device. One slice of work runs at a time; between two it lets the event loop turn through a message
//! channel, which browsers do not slow down in hidden tabs as they do timers.
#![warn(missing_docs)]

mod inbox;
mod keeping;
mod opfs;
mod turns;
mod verifying;

use std::rc::Rc;

use braid_app::backend::{Backend, Surroundings};
use braid_app::files::memory;
use braid_app::protocol::{Command, Event};
use braid_web::no_gpu::{Advice, Missing};
use braid_web::wire;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use web_sys::DedicatedWorkerGlobalScope;
use web_time::{Instant, SystemTime, UNIX_EPOCH};

use inbox::Inbox;
use keeping::{Keeping, Saved};
use opfs::Storage;
use turns::Turns;

/// Bytes that 32-bit addresses reach.
const ADDRESSABLE: u64 = 4 << 30;

/// The module is entered at [`start`].
fn main() {}

fn calendar() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// What this module has allocated: it never gives memory back.
#[cfg(target_arch = "wasm32")]
fn used_memory() -> Option<u64> {
    const PAGE: u64 = 65_536;
    Some(core::arch::wasm32::memory_size(0) as u64 * PAGE)
}

#[cfg(not(target_arch = "wasm32"))]
fn used_memory() -> Option<u64> {
    None
}

/// What a training may still allocate. A checkpoint takes its weights and moments twice more, as numbers and as files; the
/// rest is for that, for messages and for gaps.
fn free_memory() -> Option<u64> {
    used_memory().map(|used| ADDRESSABLE.saturating_sub(used) / 5 * 2)
}

/// Serve the page until it says `Quit`. `early` are messages that came while this module was being compiled, `missing` is
/// what `worker-start.js` found about WebGPU, `storage` is where runs are kept.
///
/// # Errors
/// If this is not a worker.
#[wasm_bindgen]
pub async fn start(early: Array, missing: String, storage: JsValue) -> Result<(), JsValue> {
    let scope: DedicatedWorkerGlobalScope = js_sys::global().dyn_into()?;
    std::panic::set_hook(Box::new({
        let scope = scope.clone();
        move |panic| {
            // Text instead of bytes: the worker is broken.
            let _ = scope.post_message(&panic.to_string().into());
        }
    }));
    let post = |event: Event| match wire::encode(&event) {
        Ok(bytes) => {
            let bytes = Uint8Array::from(bytes.as_slice());
            let moved = Array::of1(&bytes.buffer());
            let _ = scope.post_message_with_transfer(&bytes, &moved);
        }
        Err(message) => {
            let _ = scope.post_message(&message.into());
        }
    };
    let missing = Missing::of(&missing);
    if let Some(missing) = missing {
        let agent = scope.navigator().user_agent()?;
        let message = Advice {
            missing,
            agent: &agent,
        };
        post(Event::NoGpu {
            message: message.to_string(),
        });
    }
    // A GPU that cannot be opened is none to choose.
    let opens = matches!(missing, None | Some(Missing::Hardware));
    let saved = Saved::default();
    let mut sink = |event| match event {
        // Not before the browser has it.
        Event::Saved { .. } => saved.borrow_mut().push(event),
        event => post(usable(event, opens)),
    };

    let inbox = Inbox::open(&scope, &early)?;
    let turns = Turns::new()?;
    let began = Instant::now();
    memory::set_calendar(calendar);
    let storage: Storage = storage.unchecked_into();
    let mut keeping = Keeping::open(storage, Rc::clone(&saved), &post).await;
    let mut backend = Backend::new(Surroundings {
        clock: Rc::new(move || began.elapsed().as_secs_f64()),
        calendar,
        free_memory,
        used_memory,
        files: true,
    });
    while !backend.has_ended() {
        let busy = backend.is_busy();
        let now = began.elapsed().as_secs_f64();
        keeping.turn(now, !busy, &post).await;
        let command = if busy {
            inbox.now()
        } else {
            Some(inbox.next().await)
        };
        match command {
            Some(Ok(command)) => backend.handle(command, &mut sink).await,
            Some(Err(message)) => sink(Event::Failed {
                what: "message".into(),
                message,
                field: None,
            }),
            None => {
                backend.turn(&mut sink).await;
                turns.next().await;
            }
        }
    }
    keeping
        .turn(began.elapsed().as_secs_f64(), true, &post)
        .await;
    Ok(())
}

/// The devices that can be opened.
fn usable(event: Event, gpu: bool) -> Event {
    match event {
        Event::Devices { mut list, auto } if !gpu => {
            list.retain(|device| device.kind == "host");
            let host = list.first().map(|device| device.name.clone());
            Event::Devices {
                list,
                auto: host.unwrap_or(auto),
            }
        }
        other => other,
    }
}
