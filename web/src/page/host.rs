//! The page's way to files: the browser's own dialog, and downloads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use eframe::egui;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, Document, File, HtmlAnchorElement, HtmlInputElement, Storage, Url};

/// Dialogs that are open, and their answers.
pub(crate) struct Page {
    answers: Answers,
    context: egui::Context,
}

type Answers = Rc<RefCell<VecDeque<(Purpose, Answer)>>>;

fn document() -> Result<Document, JsValue> {
    web_sys::window()
        .and_then(|window| window.document())
        .ok_or_else(|| "the page has gone".into())
}

fn words(error: &JsValue) -> String {
    error.as_string().unwrap_or_else(|| format!("{error:?}"))
}

/// Whether a media query holds.
fn matches(query: &str) -> bool {
    let list = web_sys::window().and_then(|window| window.match_media(query).ok().flatten());
    list.is_some_and(|list| list.matches())
}

impl Page {
    pub(crate) fn new(context: egui::Context) -> Self {
        Self {
            answers: Answers::default(),
            context,
        }
    }

    /// Read a file that was chosen, or dropped, and answer.
    fn read(&self, purpose: Purpose, file: File) {
        let (answers, context) = (Rc::clone(&self.answers), self.context.clone());
        spawn_local(async move {
            let name = file.name();
            let answer = match JsFuture::from(file.array_buffer()).await {
                Ok(buffer) => Answer::File {
                    name,
                    readable: false,
                    bytes: Uint8Array::new(&buffer).to_vec(),
                },
                Err(error) => Answer::Failed(format!("{name} cannot be read: {}", words(&error))),
            };
            answers.borrow_mut().push_back((purpose, answer));
            context.request_repaint();
        });
    }

    fn choose(&self, purpose: Purpose) -> Result<(), JsValue> {
        let input: HtmlInputElement = document()?.create_element("input")?.dyn_into()?;
        input.set_type("file");
        let page = Self {
            answers: Rc::clone(&self.answers),
            context: self.context.clone(),
        };
        let chosen = input.clone();
        let change = Closure::once_into_js(move || {
            // No file: the dialog was dismissed.
            if let Some(file) = chosen.files().and_then(|files| files.get(0)) {
                page.read(purpose, file);
            }
        });
        input.set_onchange(Some(change.unchecked_ref()));
        input.click();
        Ok(())
    }
}

/// The page's address, without what a link carries.
fn address() -> String {
    let location = web_sys::window().map(|window| window.location());
    let address = location.and_then(|location| location.href().ok());
    let address = address.unwrap_or_default();
    address.split('#').next().unwrap_or_default().to_owned()
}

/// What is kept belongs to this page: one origin may hold several.
fn key() -> String {
    format!("braid {}", address())
}

fn storage() -> Result<Storage, JsValue> {
    web_sys::window()
        .map_or(Ok(None), |window| window.local_storage())?
        .ok_or_else(|| "there is no storage for pages".into())
}

fn refused(error: &JsValue) -> String {
    format!(
        "The browser refuses to keep anything for this page ({}); allow it in the browser's settings, or use a window that is \
         not private.",
        words(error)
    )
}

/// Hand bytes out as a download.
fn download(name: &str, bytes: &[u8]) -> Result<(), JsValue> {
    let parts = Array::of1(&Uint8Array::from(bytes));
    let address = Url::create_object_url_with_blob(&Blob::new_with_u8_array_sequence(&parts)?)?;
    let link: HtmlAnchorElement = document()?.create_element("a")?.dyn_into()?;
    link.set_href(&address);
    link.set_download(name);
    link.click();
    // The browser has taken hold of the bytes by the time the click returns.
    Url::revoke_object_url(&address)
}

impl Host for Page {
    fn ask(&mut self, purpose: Purpose, wish: Wish) {
        let answer = match wish {
            Wish::OpenFile => match self.choose(purpose) {
                Ok(()) => return,
                Err(error) => Answer::Failed(format!("no file can be chosen: {}", words(&error))),
            },
            Wish::Save { name, bytes } => match download(&name, &bytes) {
                Ok(()) => Answer::Saved(name),
                Err(error) => Answer::Failed(format!("{name} cannot be saved: {}", words(&error))),
            },
            Wish::OpenFolder => Answer::Failed(
                "pages cannot open folders; drop the files of the run instead".into(),
            ),
        };
        self.answers.borrow_mut().push_back((purpose, answer));
        self.context.request_repaint();
    }

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        self.answers.borrow_mut().pop_front()
    }

    fn dropped(&mut self, file: egui::DroppedFileHandle) {
        if let Some(file) = file.web_file() {
            self.read(Purpose::Text, file.clone());
        }
    }

    fn has_folders(&self) -> bool {
        false
    }

    fn kept(&mut self) -> Result<Option<String>, String> {
        let text = storage().and_then(|storage| storage.get_item(&key()));
        text.map_err(|error| refused(&error))
    }

    fn keep(&mut self, text: &str) -> Result<(), String> {
        let kept = storage().and_then(|storage| storage.set_item(&key(), text));
        kept.map_err(|error| refused(&error))
    }

    fn wants_calm(&self) -> bool {
        matches("(prefers-reduced-motion: reduce)")
    }

    fn is_touch(&self) -> bool {
        matches("(pointer: coarse)")
    }

    fn link_base(&self) -> String {
        address()
    }
}
