//! Commands that have arrived and wait for their turn.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use braid_web::wire;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use crate::Command;

/// A command, or why a message is none.
type Message = Result<Command, String>;

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    waiting: Option<Waker>,
}

/// Fills itself from the page's messages.
pub(crate) struct Inbox(Rc<RefCell<State>>);

fn read(message: &JsValue) -> Message {
    match message.dyn_ref::<Uint8Array>() {
        Some(bytes) => wire::decode(&bytes.to_vec()),
        None => Err("a message is not made of bytes".into()),
    }
}

impl Inbox {
    /// Take what came early, then listen.
    pub(crate) fn open(scope: &DedicatedWorkerGlobalScope, early: &Array) -> Result<Self, JsValue> {
        let state = Rc::new(RefCell::new(State {
            messages: early.iter().map(|message| read(&message)).collect(),
            waiting: None,
        }));
        let shared = Rc::clone(&state);
        let heard = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let mut state = shared.borrow_mut();
            state.messages.push_back(read(&event.data()));
            if let Some(waker) = state.waiting.take() {
                waker.wake();
            }
        });
        scope.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        // It listens as long as the worker lives.
        heard.forget();
        Ok(Self(state))
    }

    /// The oldest one, if there is one.
    pub(crate) fn now(&self) -> Option<Message> {
        self.0.borrow_mut().messages.pop_front()
    }

    /// The oldest one, once there is one.
    pub(crate) async fn next(&self) -> Message {
        poll_fn(|context| {
            let mut state = self.0.borrow_mut();
            match state.messages.pop_front() {
                Some(message) => Poll::Ready(message),
                None => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
