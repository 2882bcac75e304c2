//! Asking the browser not to clear what is kept by itself.

use braid_app::protocol::Event;
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// Asks once, when something is kept: some browsers ask the person then.
#[derive(Default)]
pub(crate) struct Persist {
    asked: bool,
}

impl Persist {
    /// Take an event in.
    pub(crate) fn hear(&mut self, event: &Event) {
        if !matches!(event, Event::Saved { .. }) || std::mem::replace(&mut self.asked, true) {
            return;
        }
        let Some(window) = web_sys::window() else {
            return;
        };
        // Either answer is fine: without it, the browser may clear what is kept when the disk is full.
        if let Ok(answer) = window.navigator().storage().persist() {
            spawn_local(async move {
                let _ = JsFuture::from(answer).await;
            });
        }
    }
}
