//! The page's way to files: the browser's own dialog, and downloads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use eframe::egui;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, Document, File, HtmlAnchorElement, HtmlInputElement, Storage, Url};

/// Dialogs that are open, and their answers.
pub(crate) struct Page {
    answers: Answers,
    context: egui::Context,
}

type Answers = Rc<RefCell<VecDeque<(Purpose, Answer)>>>;

thread_local! {
    /// Where what is dropped goes.
    static DROPPED: RefCell<Option<(Answers, egui::Context)>> = const { RefCell::new(None) };
}

/// Take in what `drop.js` has read: paths and contents, or why they cannot be read.
#[expect(unreachable_pub, reason = "the macro insists on it")]
#[wasm_bindgen]
pub fn dropped(paths: Array, contents: Array, failed: String) {
    let answer = if failed.is_empty() {
        let paths = paths.iter().filter_map(|path| path.as_string());
        let contents = contents
            .iter()
            .map(|bytes| Uint8Array::new(&bytes).to_vec());
        Answer::Files(paths.zip(contents).collect())
    } else {
        Answer::Failed(format!("what was dropped cannot be read: {failed}"))
    };
    DROPPED.with_borrow(|dropped| {
        if let Some((answers, context)) = dropped {
            answers.borrow_mut().push_back((Purpose::Dropped, answer));
            context.request_repaint();
        }
    });
}

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
        let answers = Answers::default();
        DROPPED.set(Some((Rc::clone(&answers), context.clone())));
        Self { answers, context }
    }

    /// Read files that were chosen, and answer.
    fn read(&self, purpose: Purpose, files: Vec<File>) {
        let (answers, context) = (Rc::clone(&self.answers), self.context.clone());
        spawn_local(async move {
            let mut read = Vec::new();
            let mut failed = None;
            for file in files {
                let name = file.name();
                match JsFuture::from(file.array_buffer()).await {
                    Ok(buffer) => read.push((name, Uint8Array::new(&buffer).to_vec())),
                    Err(error) => {
                        failed = Some(format!("{name} cannot be read: {}", words(&error)));
                    }
                }
            }
            let answer = match (failed, purpose) {
                (Some(message), _) => Answer::Failed(message),
                (None, Purpose::OpenRun | Purpose::CompareRun) => Answer::Files(read),
                (None, _) => {
                    let Some((name, bytes)) = read.pop() else {
                        return;
                    };
                    Answer::File {
                        name,
                        readable: false,
                        bytes,
                    }
                }
            };
            answers.borrow_mut().push_back((purpose, answer));
            context.request_repaint();
        });
    }

    fn choose(&self, purpose: Purpose, several: bool) -> Result<(), JsValue> {
        let input: HtmlInputElement = document()?.create_element("input")?.dyn_into()?;
        input.set_type("file");
        input.set_multiple(several);
        let page = Self {
            answers: Rc::clone(&self.answers),
            context: self.context.clone(),
        };
        let chosen = input.clone();
        let change = Closure::once_into_js(move || {
            let list = chosen.files();
            let count = list.as_ref().map_or(0, |files| files.length());
            let files: Vec<File> = (0..count)
                .filter_map(|index| list.as_ref()?.get(index))
                .collect();
            // No file: the dialog was dismissed.
            if !files.is_empty() {
                page.read(purpose, files);
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
            Wish::OpenFile | Wish::OpenFolder => {
                // A run is its archive, or all of its files.
                match self.choose(purpose, wish == Wish::OpenFolder) {
                    Ok(()) => return,
                    Err(error) => {
                        Answer::Failed(format!("no file can be chosen: {}", words(&error)))
                    }
                }
            }
            Wish::Save { name, bytes } => match download(&name, &bytes) {
                Ok(()) => Answer::Saved(name),
                Err(error) => Answer::Failed(format!("{name} cannot be saved: {}", words(&error))),
            },
        };
        self.answers.borrow_mut().push_back((purpose, answer));
        self.context.request_repaint();
    }

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        self.answers.borrow_mut().pop_front()
    }

    // What is dropped comes from `drop.js`, which knows folders.

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
