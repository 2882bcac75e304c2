//! Entry of the page's module.

use braid_app::form::Edits;
use braid_app::ui::Window;
use eframe::egui;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use web_sys::HtmlCanvasElement;

use crate::desk::Desk;
use crate::host::Page;

/// The window and the worker behind it.
struct App {
    desk: Desk,
    window: Window,
}

impl eframe::App for App {
    fn logic(&mut self, _: &egui::Context, _: &mut eframe::Frame) {
        for event in self.desk.poll() {
            self.window.hear(event);
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        for command in self.window.show(ui) {
            self.desk.send(&command);
        }
    }
}

/// Draw the window on `canvas`. `worker` is the address of `worker-start.js`, `engine` the compiled module that it runs.
///
/// # Errors
/// If the browser cannot draw it, or has no workers.
#[expect(unreachable_pub, reason = "the macro insists on it")]
#[wasm_bindgen]
pub async fn start(
    canvas: HtmlCanvasElement,
    worker: String,
    engine: JsValue,
) -> Result<(), JsValue> {
    let create: eframe::AppCreator<'static> = Box::new(move |context| {
        let context = context.egui_ctx.clone();
        let mut window = Window::default().with_host(Box::new(Page::new(context.clone())));
        if let Some(edits) = shared() {
            window.view.draft.edits = edits;
        }
        let desk = Desk::open(&worker, &engine, context)?;
        Ok(Box::new(App { desk, window }))
    });
    eframe::WebRunner::new()
        .start(canvas, eframe::WebOptions::default(), create)
        .await
}

/// The configuration that the page's address carries.
fn shared() -> Option<Edits> {
    let address = web_sys::window()?.location().href().ok()?;
    Edits::is_link(&address)
        .then(|| Edits::from_link(&address).ok())
        .flatten()
        .map(|(edits, _)| edits)
}
