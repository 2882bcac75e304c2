//! Turns of the event loop: a message to oneself.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use web_sys::{MessageChannel, MessageEvent, MessagePort};

#[derive(Default)]
struct State {
    arrived: bool,
    waiting: Option<Waker>,
}

/// Both ends of a channel.
pub(crate) struct Turns {
    to_self: MessagePort,
    state: Rc<RefCell<State>>,
    /// Kept, since the other end listens through it.
    _heard: Closure<dyn FnMut(MessageEvent)>,
}

impl Turns {
    pub(crate) fn new() -> Result<Self, JsValue> {
        let channel = MessageChannel::new()?;
        let state = Rc::<RefCell<State>>::default();
        let shared = Rc::clone(&state);
        let heard = Closure::<dyn FnMut(MessageEvent)>::new(move |_| {
            let mut state = shared.borrow_mut();
            state.arrived = true;
            if let Some(waker) = state.waiting.take() {
                waker.wake();
            }
        });
        channel
            .port1()
            .set_onmessage(Some(heard.as_ref().unchecked_ref()));
        Ok(Self {
            to_self: channel.port2(),
            state,
            _heard: heard,
        })
    }

    /// Come back once everything that waits has had its turn: messages of the page, answers of the device.
    pub(crate) async fn next(&self) {
        self.state.borrow_mut().arrived = false;
        if self.to_self.post_message(&JsValue::NULL).is_err() {
            return;
        }
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.arrived {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
