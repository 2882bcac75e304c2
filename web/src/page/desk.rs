//! The page's way to the engine: a worker, and messages.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use braid_app::protocol::{Command, Event};
use braid_web::wire;
use eframe::egui;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker, WorkerOptions, WorkerType};

/// The window's end.
pub(crate) struct Desk {
    worker: Worker,
    events: Rc<RefCell<VecDeque<Event>>>,
    /// Kept, since the worker calls them.
    _heard: Closure<dyn FnMut(MessageEvent)>,
    _failed: Closure<dyn FnMut(ErrorEvent)>,
}

fn words(error: &JsValue) -> String {
    let text = error.as_string();
    text.unwrap_or_else(|| format!("{error:?}"))
}

/// What to say about a worker that is broken.
fn stopped(why: &str) -> Event {
    Event::Failed {
        what: "engine".into(),
        message: format!(
            "the engine's worker has stopped ({why}); reload the page to start it again"
        ),
        field: None,
    }
}

impl Desk {
    /// Start the worker.
    pub(crate) fn open(
        address: &str,
        module: &JsValue,
        context: egui::Context,
    ) -> Result<Self, String> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        options.set_name("braid engine");
        let worker = Worker::new_with_options(address, &options).map_err(|error| words(&error))?;
        let events = Rc::<RefCell<VecDeque<Event>>>::default();
        let hear = {
            let events = Rc::clone(&events);
            move |event| {
                events.borrow_mut().push_back(event);
                context.request_repaint();
            }
        };
        let heard = Closure::<dyn FnMut(MessageEvent)>::new({
            let hear = hear.clone();
            move |message: MessageEvent| {
                let data = message.data();
                match data.dyn_ref::<Uint8Array>() {
                    Some(bytes) => match wire::decode(&bytes.to_vec()) {
                        Ok(event) => hear(event),
                        Err(message) => hear(stopped(&message)),
                    },
                    None => {
                        hear(stopped(&words(&data)));
                        hear(Event::Ended);
                    }
                }
            }
        });
        let failed = Closure::<dyn FnMut(ErrorEvent)>::new(move |error: ErrorEvent| {
            hear(stopped(&error.message()));
            hear(Event::Ended);
        });
        worker.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        worker.set_onerror(Some(failed.as_ref().unchecked_ref()));
        worker.post_message(module).map_err(|error| words(&error))?;
        Ok(Self {
            worker,
            events,
            _heard: heard,
            _failed: failed,
        })
    }

    /// Ask for something.
    pub(crate) fn send(&self, command: &Command) {
        let sent = wire::encode(command).and_then(|bytes| {
            let bytes = Uint8Array::from(bytes.as_slice());
            let moved = Array::of1(&bytes.buffer());
            self.worker
                .post_message_with_transfer(&bytes, &moved)
                .map_err(|error| words(&error))
        });
        if let Err(message) = sent {
            self.events.borrow_mut().push_back(stopped(&message));
        }
    }

    /// All events since the last call.
    pub(crate) fn poll(&mut self) -> Vec<Event> {
        self.events.borrow_mut().drain(..).collect()
    }
}
