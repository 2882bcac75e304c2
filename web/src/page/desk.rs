//! The page's way to the engine: a worker, and messages. A worker that breaks is replaced.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use braid_app::protocol::{Command, Event};
use braid_web::wire;
use eframe::egui;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker, WorkerOptions, WorkerType};

/// What a worker has said.
#[derive(Default)]
struct Heard {
    events: VecDeque<Event>,
    /// Why it is broken, if so: the first words about it.
    broken: Option<String>,
}

/// A worker, and what it calls.
struct Engine {
    worker: Worker,
    heard: Rc<RefCell<Heard>>,
    _heard: Closure<dyn FnMut(MessageEvent)>,
    _failed: Closure<dyn FnMut(ErrorEvent)>,
}

/// The window's end.
pub(crate) struct Desk {
    address: String,
    module: JsValue,
    context: egui::Context,
    engine: Engine,
}

fn words(error: &JsValue) -> String {
    let text = error.as_string();
    text.unwrap_or_else(|| format!("{error:?}"))
}

impl Engine {
    fn start(address: &str, module: &JsValue, context: &egui::Context) -> Result<Self, String> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        options.set_name("braid engine");
        let worker = Worker::new_with_options(address, &options).map_err(|error| words(&error))?;
        let heard = Rc::<RefCell<Heard>>::default();
        let hear = {
            let (heard, context) = (Rc::clone(&heard), context.clone());
            move |event: Result<Event, String>| {
                let mut heard = heard.borrow_mut();
                match event {
                    Ok(event) => heard.events.push_back(event),
                    // What follows the first words is their consequence.
                    Err(why) if heard.broken.is_none() => heard.broken = Some(why),
                    Err(_) => {}
                }
                context.request_repaint();
            }
        };
        let message = Closure::<dyn FnMut(MessageEvent)>::new({
            let hear = hear.clone();
            move |message: MessageEvent| {
                let data = message.data();
                hear(match data.dyn_ref::<Uint8Array>() {
                    Some(bytes) => wire::decode(&bytes.to_vec()),
                    None => Err(words(&data)),
                });
            }
        });
        let failed = Closure::<dyn FnMut(ErrorEvent)>::new(move |error: ErrorEvent| {
            hear(Err(error.message()));
        });
        worker.set_onmessage(Some(message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(failed.as_ref().unchecked_ref()));
        worker.post_message(module).map_err(|error| words(&error))?;
        Ok(Self {
            worker,
            heard,
            _heard: message,
            _failed: failed,
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl Desk {
    /// Start the worker.
    pub(crate) fn open(
        address: String,
        module: JsValue,
        context: egui::Context,
    ) -> Result<Self, String> {
        let engine = Engine::start(&address, &module, &context)?;
        Ok(Self {
            address,
            module,
            context,
            engine,
        })
    }

    /// Ask for something.
    pub(crate) fn send(&self, command: &Command) {
        let sent = wire::encode(command).and_then(|bytes| {
            let bytes = Uint8Array::from(bytes.as_slice());
            let moved = Array::of1(&bytes.buffer());
            self.engine
                .worker
                .post_message_with_transfer(&bytes, &moved)
                .map_err(|error| words(&error))
        });
        if let Err(message) = sent {
            self.engine.heard.borrow_mut().broken = Some(message);
        }
    }

    /// All events since the last call.
    pub(crate) fn poll(&mut self) -> Vec<Event> {
        self.engine.heard.borrow_mut().events.drain(..).collect()
    }

    /// Why the worker is broken, if it is.
    pub(crate) fn broken(&self) -> Option<String> {
        self.engine.heard.borrow().broken.clone()
    }

    /// Another worker in the place of the one that is broken.
    ///
    /// # Errors
    /// If the browser gives none.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        self.engine = Engine::start(&self.address, &self.module, &self.context)?;
        Ok(())
    }
}
