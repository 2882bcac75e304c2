//! The tab is hidden, or about to be closed: what is not saved then may be lost.

use std::cell::Cell;
use std::rc::Rc;

use eframe::egui;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};

/// Remembers that the tab was hidden.
pub(crate) struct Hiding {
    hidden: Rc<Cell<bool>>,
    /// Kept, since the document calls it.
    _heard: Closure<dyn FnMut()>,
}

impl Hiding {
    pub(crate) fn listen(context: egui::Context) -> Result<Self, JsValue> {
        let document = web_sys::window()
            .and_then(|window| window.document())
            .ok_or("the page has gone")?;
        let hidden = Rc::<Cell<bool>>::default();
        let heard = Closure::<dyn FnMut()>::new({
            let (hidden, document) = (Rc::clone(&hidden), document.clone());
            move || {
                if document.hidden() {
                    hidden.set(true);
                    context.request_repaint();
                }
            }
        });
        let listener = heard.as_ref().unchecked_ref();
        document.add_event_listener_with_callback("visibilitychange", listener)?;
        Ok(Self {
            hidden,
            _heard: heard,
        })
    }

    /// Whether it was hidden since the last call.
    pub(crate) fn take(&self) -> bool {
        self.hidden.take()
    }
}
