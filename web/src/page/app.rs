//! Entry of the page's module.

use braid_app::form::Edits;
use braid_app::protocol::{Command, Event, RunState};
use braid_app::ui::Window;
use eframe::egui;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use web_sys::HtmlCanvasElement;
use web_time::{Duration, Instant};

use crate::desk::Desk;
use crate::hiding::Hiding;
use crate::host::Page;
use crate::persist::Persist;

/// A worker that breaks this soon after it was started breaks because of the run: it is not opened again.
const SOON: Duration = Duration::from_secs(30);

/// The window and the worker behind it.
struct App {
    desk: Desk,
    window: Window,
    persist: Persist,
    hiding: Hiding,
    /// When a worker was started in the place of a broken one.
    restarted: Option<Instant>,
    /// The worker is broken, and there is no other one.
    dead: bool,
}

impl App {
    /// The worker is broken: another one goes on with what is kept.
    fn restart(&mut self, why: &str) {
        let now = Instant::now();
        let soon = self.restarted.replace(now);
        let soon = soon.is_some_and(|before| now.duration_since(before) < SOON);
        let run = self.window.heard.run.as_ref().map(|run| run.folder.clone());
        let kept = self.window.heard.not_kept.is_none();
        // Nothing that the window waits for will come.
        self.window.hear(Event::State(RunState::Empty));
        if let Err(error) = self.desk.restart() {
            self.dead = true;
            self.window.hear(Event::Failed {
                what: "engine".into(),
                message: format!("{why}; another worker cannot be started: {error}"),
                field: None,
            });
            self.window.hear(Event::Ended);
            return;
        }
        let opens = run.filter(|_| kept && !soon);
        let next = match &opens {
            Some(folder) => format!("the run {folder} is opened at its last checkpoint"),
            None if soon => {
                "it had broken a moment ago, so the run is not opened again by itself".into()
            }
            None if !kept => "runs are not kept here, so what it had learnt is lost".into(),
            None => "no run was loaded".into(),
        };
        self.window.hear(Event::Failed {
            what: "worker".into(),
            message: format!("{why}. Another worker was started: {next}."),
            field: None,
        });
        for command in self.window.greet_again() {
            self.desk.send(&command);
        }
        if let Some(folder) = opens {
            let device = self.window.view.draft.device.clone();
            self.desk.send(&Command::Open { folder, device });
        }
    }
}

impl eframe::App for App {
    fn logic(&mut self, _: &egui::Context, _: &mut eframe::Frame) {
        for event in self.desk.poll() {
            self.persist.hear(&event);
            self.window.hear(event);
        }
        if !self.dead
            && let Some(why) = self.desk.broken()
        {
            self.restart(&why);
        }
        // Systems end hidden tabs without asking.
        if self.hiding.take() && self.window.heard.is_unsaved() {
            self.desk.send(&Command::Save);
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
        let hiding = Hiding::listen(context.clone())
            .map_err(|error| format!("the page cannot be listened to: {error:?}"))?;
        let desk = Desk::open(worker, engine, context)?;
        Ok(Box::new(App {
            desk,
            window,
            persist: Persist::default(),
            hiding,
            restarted: None,
            dead: false,
        }))
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
