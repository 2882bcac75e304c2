//! The page that `./x web` builds, in headless Chromium: what a visitor gets, with a GPU and without.

mod evidence;
mod lost;
mod phone;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{env, fs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use braid_app::backend::{Backend, Surroundings};
use braid_app::form::Edits;
use braid_app::protocol::{Command, Draft, Event, Line, RunState};
use braid_web::wire;
use serde_json::Value;

use crate::cdp::Tab;
use crate::chromium::Gpu;
use crate::server::{Files, Server, folder};

/// On a busy machine without a GPU, 50 steps take some seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Lies deep, so that an address that is not relative shows.
const PLACE: &str = "/some/where/";

/// The page's own code is left as it is; what its worker says is listened to.
const LISTEN: &str = r#"{
    const heard = [];
    const Plain = Worker;
    window.Worker = class extends Plain {
        constructor(...how) {
            super(...how);
            window.engine = this;
            this.addEventListener('message', ({ data }) => heard.push(data));
        }
    };
    const text = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
    window.heard = () => heard.splice(0).map((data) => typeof data === 'string' ? `broken: ${data}` : text(data));
}"#;

/// A page from a server of this process.
pub(crate) struct Visit {
    pub(crate) tab: Tab,
    address: String,
    pub(crate) heard: Vec<Event>,
    /// Texts of workers that were broken.
    pub(crate) broken: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder that `./x web build` makes; `None` if these tests are to be left out, which is said.
fn dist() -> Option<PathBuf> {
    if env::var("WEB_TESTS").is_ok_and(|value| value == "skip") {
        eprintln!("WEB_TESTS=skip: the page is not tested");
        return None;
    }
    let dist = root().join("web/dist");
    assert!(
        dist.join("index.html").is_file(),
        "web/dist is not built: run ./x web build (WEB_TESTS=skip leaves these tests out)"
    );
    Some(dist)
}

fn files() -> Option<Files> {
    let mut files = Files::new();
    folder(&mut files, PLACE, &dist()?);
    Some(files)
}

impl Visit {
    pub(crate) fn open(
        gpu: Gpu,
        more: Files,
        in_page: &str,
        in_workers: Option<&str>,
    ) -> Option<Self> {
        let mut all = files()?;
        all.extend(more);
        let server = Server::start(all);
        let address = server.address();
        let address = format!("{}{PLACE}", address.trim_end_matches('/'));
        let tab = Tab::open(gpu, &format!("{LISTEN}\n{in_page}"), in_workers);
        Some(Self {
            tab,
            address,
            heard: Vec::new(),
            broken: Vec::new(),
        })
    }

    /// Load the page, and wait until its window is drawn and its worker has answered.
    pub(crate) fn load(&mut self, fragment: &str) {
        let address = format!("{}{fragment}", self.address);
        self.tab.go(&address);
        self.until("the list of devices", |event| {
            matches!(event, Event::Devices { .. })
        });
        let hidden = self.tab.eval("document.getElementById('loading').hidden");
        assert_eq!(hidden, true, "{}", self.said());
    }

    pub(crate) fn said(&mut self) -> String {
        let said = self
            .tab
            .eval("document.getElementById('said')?.textContent");
        said.as_str().unwrap_or_default().into()
    }

    /// Take in what was said meanwhile.
    pub(crate) fn listen(&mut self) {
        let heard = self.heard_by("window.heard ? window.heard() : []");
        self.heard.extend(heard);
    }

    /// The events in a list of messages; texts say that a worker is broken.
    pub(crate) fn heard_by(&mut self, script: &str) -> Vec<Event> {
        let all = self.tab.eval(script);
        let all = all.as_array().into_iter().flatten();
        let mut events = Vec::new();
        for message in all.filter_map(Value::as_str) {
            match STANDARD.decode(message) {
                Ok(bytes) => events.push(wire::decode(&bytes).expect("an event")),
                Err(_) => self.broken.push(message.into()),
            }
        }
        events
    }

    /// Wait until a checkpoint of this step is kept.
    pub(crate) fn until_saved(&mut self, wanted: u64) {
        let saved = |event: &Event| matches!(event, Event::Saved { step, .. } if *step == wanted);
        if !self.heard.iter().any(saved) {
            self.until("checkpoint", saved);
        }
    }

    /// The page's origin.
    pub(crate) fn origin(&self) -> String {
        let origin = self.address.split(PLACE).next();
        origin.unwrap_or_default().to_owned()
    }

    pub(crate) fn until(&mut self, what: &str, done: impl Fn(&Event) -> bool) {
        let late = Instant::now() + PATIENCE;
        let mut seen = self.heard.len();
        loop {
            self.listen();
            if self.heard[seen..].iter().any(&done) {
                return;
            }
            seen = self.heard.len();
            if Instant::now() > late {
                let said = self.said();
                panic!(
                    "no {what}: {said} {:#?} {:?} {:?}",
                    self.heard.last(),
                    self.tab.errors,
                    self.broken
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Send a command as the window would.
    pub(crate) fn send(&mut self, command: &Command) {
        let bytes = wire::encode(command).expect("writes");
        let bytes = STANDARD.encode(bytes);
        let script = format!(
            "window.engine.postMessage(Uint8Array.from(atob('{bytes}'), (c) => c.charCodeAt(0)))"
        );
        self.tab.eval(&script);
    }

    fn train(&mut self, toml: &str, device: &str) -> Vec<(u64, f64)> {
        self.send(&start(toml, device));
        self.until("end of the training", ended);
        losses(&self.heard)
    }

    /// Nothing went wrong, and nothing left the page's origin.
    pub(crate) fn was_clean(&mut self) {
        // A last call, so that everything before it has been noted.
        self.listen();
        assert_eq!((&self.tab.errors, &self.broken), (&vec![], &vec![]));
        let origin = self.origin();
        assert!(self.tab.requests.len() >= 6, "{:?}", self.tab.requests);
        for address in &self.tab.requests {
            let inside = ["blob:", "data:"]
                .iter()
                .any(|kind| address.starts_with(kind));
            assert!(
                inside || address.starts_with(&origin),
                "asked for {address}"
            );
        }
        let failures: Vec<&Event> = self
            .heard
            .iter()
            .filter(|event| matches!(event, Event::Failed { .. }))
            .collect();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

/// Written for two layers of every kind, some records, and both optimiser phases.
pub(crate) const TOY: &str = "[model]\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 32\n[residual]\nkind = \"dar\"\n[data]\ntask = \"recall\"\n\
                   [train]\nsteps = 50\nbatch = 4\nwarmup = 5\neval_every = 25\neval_batches = 2\n";

pub(crate) fn start(toml: &str, device: &str) -> Command {
    Command::Start {
        draft: Draft {
            toml: toml.into(),
            text: None,
        },
        device: device.into(),
        folder: None,
        paused: false,
    }
}

pub(crate) fn ended(event: &Event) -> bool {
    matches!(
        event,
        Event::State(RunState::Finished | RunState::Diverged { .. }) | Event::Failed { .. }
    )
}

pub(crate) fn losses(heard: &[Event]) -> Vec<(u64, f64)> {
    let lines = heard.iter().filter_map(|event| match event {
        Event::Lines(lines) => Some(lines),
        _ => None,
    });
    lines
        .flatten()
        .filter_map(|line| match line {
            Line::Train { step, loss, .. } => Some((*step, loss.unwrap_or(f64::NAN))),
            _ => None,
        })
        .collect()
}

/// The same training in this process.
fn native(toml: &str, device: &str) -> Vec<(u64, f64)> {
    let began = Instant::now();
    let mut backend = Backend::new(Surroundings {
        clock: Rc::new(move || began.elapsed().as_secs_f64()),
        calendar: || 0,
        free_memory: || None,
        used_memory: || None,
        files: false,
    });
    let mut heard = Vec::new();
    let begin = start(toml, device);
    pollster::block_on(backend.handle(begin, &mut |event| heard.push(event)));
    while backend.is_busy() {
        pollster::block_on(backend.turn(&mut |event| heard.push(event)));
    }
    assert!(heard.iter().any(ended), "{heard:?}");
    losses(&heard)
}

fn agree(page: &[(u64, f64)], native: &[(u64, f64)], first: f64, all: f64) {
    assert_eq!(native.len(), 50, "{native:?}");
    assert_eq!(page.len(), 50, "{page:?}");
    let worst = page.iter().zip(native).map(|(a, b)| (a.1 - b.1).abs());
    let worst = worst.fold(0.0, f64::max);
    let start = (page[0].1 - native[0].1).abs();
    eprintln!("losses of page and native: first step {start:.2e} apart, at most {worst:.2e}");
    assert!(
        start <= first && worst <= all,
        "{start} {worst}\n{page:?}\n{native:?}"
    );
    assert!(page[49].1 < page[0].1 - 0.1, "it learns: {page:?}");
}

#[test]
fn with_webgpu_it_trains_as_a_native_gpu_does() {
    let Some(mut visit) = Visit::open(Gpu::Software, Files::new(), "", None) else {
        return;
    };
    visit.load("");
    let Some(gpu) = braid_tests::gpu() else {
        return;
    };
    let page = visit.train(TOY, "gpu");
    agree(&page, &native(TOY, &gpu.report().choice()), 1e-5, 1e-3);
    // The shaders were counted while they were compiled.
    let counted: Vec<(u32, u32)> = visit
        .heard
        .iter()
        .filter_map(|event| match event {
            Event::State(RunState::Preparing { stage, done, of })
                if stage == "compiling shaders" =>
            {
                Some((*done, *of))
            }
            _ => None,
        })
        .collect();
    let of = counted.first().map_or(0, |(_, of)| *of);
    assert!(of > 20, "{counted:?}");
    assert_eq!(counted, (0..of).map(|done| (done, of)).collect::<Vec<_>>());
    let (message, devices) = without_gpu(&visit);
    assert!(message.contains("software here"), "{message}");
    assert_eq!(devices, ["gpu", "cpu"]);
    visit.was_clean();
}

/// What is said about a GPU, and the devices that are left.
fn without_gpu(visit: &Visit) -> (String, Vec<String>) {
    let message = visit.heard.iter().find_map(|event| match event {
        Event::NoGpu { message } => Some(message.clone()),
        _ => None,
    });
    let devices = visit.heard.iter().find_map(|event| match event {
        Event::Devices { list, .. } => {
            Some(list.iter().map(|device| device.choice.clone()).collect())
        }
        _ => None,
    });
    (message.unwrap_or_default(), devices.unwrap_or_default())
}

#[test]
fn without_an_adapter_it_says_so_and_trains_on_the_processor() {
    let Some(mut visit) = Visit::open(Gpu::None, Files::new(), "", None) else {
        return;
    };
    // The configuration travels in the address; the space bar starts it.
    let link = Edits::from_toml(TOY).expect("a configuration").link("");
    visit.load(&link);
    let (message, devices) = without_gpu(&visit);
    assert!(
        message.contains("offers no GPU") && message.contains("chrome://gpu"),
        "{message}"
    );
    assert_eq!(devices, ["cpu"]);
    visit.tab.press(" ", "Space", " ");
    visit.until("end of the training", ended);
    agree(&losses(&visit.heard), &native(TOY, "cpu"), 1e-6, 1e-4);
    visit.was_clean();
}

#[test]
fn a_browser_without_the_api_and_one_that_refuses_the_device_are_told_apart() {
    // Chromium adds WebGPU to a worker later than these run, so its place is taken.
    let hidden = "Object.defineProperty(navigator, 'gpu', { value: undefined })";
    let refused = "Object.defineProperty(navigator, 'gpu', { get() {
        GPUAdapter.prototype.requestDevice = () => Promise.reject(new Error('no'));
        return Object.getOwnPropertyDescriptor(WorkerNavigator.prototype, 'gpu').get.call(navigator);
    } })";
    for (script, sentence) in [(hidden, "has no WebGPU"), (refused, "refuses to open it")] {
        let Some(mut visit) = Visit::open(Gpu::Software, Files::new(), "", Some(script)) else {
            return;
        };
        visit.load("");
        let (message, devices) = without_gpu(&visit);
        assert!(message.contains(sentence), "{message}");
        assert_eq!(devices, ["cpu"]);
        let page = visit.train(&TOY.replace("steps = 50", "steps = 2"), "auto");
        assert_eq!(page.len(), 2);
        visit.was_clean();
    }
}

#[test]
fn without_webgl2_or_scripts_there_is_a_sentence() {
    let blind = "HTMLCanvasElement.prototype.getContext = () => null";
    let Some(mut visit) = Visit::open(Gpu::None, Files::new(), blind, None) else {
        return;
    };
    let address = visit.address.clone();
    visit.tab.go(&address);
    let late = Instant::now() + PATIENCE;
    while !visit.said().contains("WebGL2") {
        assert!(Instant::now() < late, "{}", visit.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(visit.tab.errors, [""; 0]);
    let page = fs::read_to_string(root().join("web/dist/index.html")).expect("built");
    assert!(page.contains("<noscript>") && !page.contains('@'), "{page}");
}

#[test]
fn golden_cases_hold_in_the_page() {
    let names = [
        "standard-mha",
        "dar-k2-dar",
        "delta-block-s2",
        "mhc-n4-sinkhorn",
        "moe-b",
    ];
    let mut golden = Files::new();
    folder(&mut golden, "/golden/", &root().join("tests/golden"));
    let Some(mut visit) = Visit::open(Gpu::Software, golden, "", None) else {
        return;
    };
    visit.load("");
    let build = visit.tab.eval("document.querySelector('script').src");
    let worker = build
        .as_str()
        .unwrap_or_default()
        .replace("boot.js", "worker.js");
    for name in names {
        for device in ["cpu", "gpu"] {
            let script = format!(
                "(async () => {{
                    const engine = await import('{worker}');
                    window.ready ??= engine.default();
                    await window.ready;
                    const file = async (name) => await fetch('/golden/{name}/' + name);
                    const text = async (name) => (await file(name)).text();
                    const bytes = async (name) => new Uint8Array(await (await file(name)).arrayBuffer());
                    return engine.verify('{device}', await text('config.json'), await text('case.json'),
                        await bytes('model.safetensors'), await bytes('expected.safetensors'));
                }})()"
            );
            let verdict = visit.tab.eval(&script);
            let verdict: Value = serde_json::from_str(verdict.as_str().unwrap_or_default())
                .unwrap_or_else(|error| panic!("{name} on {device}: {error} {verdict}"));
            assert_eq!(verdict["pass"], true, "{name} on {device}: {verdict}");
        }
    }
    visit.was_clean();
}

#[test]
fn the_training_goes_on_while_the_tab_is_hidden() {
    let Some(mut visit) = Visit::open(Gpu::None, Files::new(), "", None) else {
        return;
    };
    visit.load("");
    let long = TOY.replace("steps = 50", "steps = 100000");
    visit.send(&start(&long, "cpu"));
    visit.until("first steps", |event| matches!(event, Event::Lines(_)));
    visit.tab.hide();
    assert_eq!(visit.tab.eval("document.visibilityState"), "hidden");
    let step = |visit: &Visit| losses(&visit.heard).last().map_or(0, |(step, _)| *step);
    visit.listen();
    let before = step(&visit);
    let late = Instant::now() + PATIENCE;
    while step(&visit) < before + 200 {
        assert!(Instant::now() < late, "{} after {before}", step(&visit));
        std::thread::sleep(Duration::from_millis(200));
        visit.listen();
    }
    visit.was_clean();
}

#[test]
fn the_page_opens_again_without_a_network() {
    let Some(mut visit) = Visit::open(Gpu::None, Files::new(), "", None) else {
        return;
    };
    visit.load("");
    visit
        .tab
        .eval("navigator.serviceWorker.ready.then(() => true)");
    visit.tab.offline();
    visit.heard.clear();
    let fragment = Edits::from_toml(TOY).expect("a configuration").link("");
    visit.tab.go("about:blank");
    visit.load(&fragment);
}
