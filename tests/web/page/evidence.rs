//! Figures of the page in headless Chromium, printed: `./x evidence web`.

use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use braid_app::form::{Edits, PRESETS};
use braid_app::protocol::{Event, Line};
use serde_json::json;

use super::{Visit, start};
use crate::chromium::Gpu;
use crate::server::Files;

/// When each message of the worker came, tasks of the main thread that took long, and the memory of the module.
const WATCH: &str = "{
    window.arrived = [];
    const Listening = window.Worker;
    window.Worker = class extends Listening {
        constructor(...how) {
            super(...how);
            this.addEventListener('message', () => window.arrived.push(performance.now()));
        }
    };
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
        .observe({ type: 'longtask', buffered: true });
    const plain = WebAssembly.instantiate;
    WebAssembly.instantiate = async (...how) => {
        const made = await plain(...how);
        window.memory = (made.instance ?? made).exports.memory;
        return made;
    };
    window.drawn = 0;
    const look = () => {
        const loading = document.getElementById('loading');
        if (loading && loading.hidden) window.drawn = performance.now();
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}";

/// Small, so that everything around the numbers shows.
const SMALL: &str = "[model]\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 32\n[residual]\nkind = \"dar\"\n[data]\ntask = \"recall\"\n\
                     [train]\nbatch = 4\nwarmup = 5\neval_every = 1000\neval_batches = 2\nsave_every = 100000\n";

/// As large as the smallest presets.
const MIDDLE: &str = "[model]\nlayers = 4\nwidth = 128\nheads = 4\ncontext = 64\n[residual]\nkind = \"dar\"\n[data]\ntask = \"recall\"\n\
                      [train]\nbatch = 8\nwarmup = 5\neval_every = 1000\neval_batches = 2\nsave_every = 100000\n";

fn steps(toml: &str, steps: u64) -> String {
    format!("{toml}steps = {steps}\n")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        0.5 * (values[middle - 1] + values[middle])
    }
}

fn open(gpu: Gpu) -> Option<Visit> {
    Visit::open(gpu, Files::new(), WATCH, None)
}

/// Updates a second between the tenth of the updates and the last.
fn rate(seconds: &[(u64, f64)]) -> f64 {
    let (first, last) = (seconds[seconds.len() / 10], seconds[seconds.len() - 1]);
    (last.0 - first.0) as f64 / (last.1 - first.1)
}

/// Updates and their seconds of training.
fn times<'a>(lines: impl Iterator<Item = &'a Line>) -> Vec<(u64, f64)> {
    lines
        .filter_map(|line| match line {
            Line::Train { step, seconds, .. } => seconds.map(|seconds| (*step, seconds)),
            _ => None,
        })
        .collect()
}

/// Updates a second in the page.
fn page_rate(visit: &mut Visit, toml: &str, device: &str) -> f64 {
    visit.heard.clear();
    visit.train(toml, device);
    let lines = visit.heard.iter().filter_map(|event| match event {
        Event::Lines(lines) => Some(lines),
        _ => None,
    });
    rate(&times(lines.flatten()))
}

/// Updates a second of the program `BRAID`, on one thread.
fn native_rate(toml: &str, device: &str) -> f64 {
    let program = env::var("BRAID").expect("BRAID is the path of the program, built for speed");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    fs::write(&config, toml).expect("writes");
    let output = Process::new(program)
        .args(["train", "--json", "--device", device, "--config"])
        .arg(&config)
        .arg("--out")
        .arg(folder.path().join("run"))
        .env("RAYON_NUM_THREADS", "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    rate(&times(Line::read(&text).iter()))
}

/// Geometric mean of ratios, and its 95 % interval (Student's t).
fn ratio(ratios: &[f64]) -> String {
    const T: [f64; 11] = [
        f64::NAN,
        f64::NAN,
        12.71,
        4.30,
        3.18,
        2.78,
        2.57,
        2.45,
        2.36,
        2.31,
        2.26,
    ];
    let n = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let error = T[ratios.len().min(10)] * (squares / (n - 1.0) / n).sqrt();
    format!(
        "{:.2} [{:.2}, {:.2}]",
        mean.exp(),
        (mean - error).exp(),
        (mean + error).exp()
    )
}

#[test]
#[ignore = "figures: run by ./x evidence web"]
fn evidence_times() {
    let preset = PRESETS.first().expect("a preset");
    let link = Edits::from_toml(preset.toml)
        .expect("a configuration")
        .link("");
    for (gpu, word) in [
        (Gpu::None, "processor"),
        (Gpu::Software, "WebGPU in software"),
    ] {
        for cache in ["cold", "warm"] {
            let [mut paints, mut windows, mut firsts] = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..5 {
                let Some(mut visit) = open(gpu) else { return };
                if cache == "warm" {
                    visit.load(&link);
                    visit
                        .tab
                        .eval("navigator.serviceWorker.ready.then(() => true)");
                    // The service worker may still be filling its cache.
                    std::thread::sleep(Duration::from_secs(2));
                    visit.tab.go("about:blank");
                    visit.heard.clear();
                }
                visit.load(&link);
                let device = if gpu == Gpu::None { "cpu" } else { "gpu" };
                let draft = start(preset.toml, device);
                let before = visit.heard.len();
                visit.send(&draft);
                visit.until("first step", |event| matches!(event, Event::Lines(_)));
                let lines = |event: &Event| matches!(event, Event::Lines(_));
                let at = before + visit.heard[before..].iter().position(lines).expect("heard");
                let script = format!("window.arrived[{at}]");
                firsts.push(visit.tab.eval(&script).as_f64().unwrap_or(f64::NAN));
                let paint =
                    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN";
                paints.push(visit.tab.eval(paint).as_f64().unwrap_or(f64::NAN));
                windows.push(visit.tab.eval("window.drawn").as_f64().unwrap_or(f64::NAN));
            }
            println!(
                "times, {word}, {cache}, medians of 5: first paint {:.0} ms, window {:.0} ms, first step of \"{}\" {:.0} ms",
                median(&mut paints),
                median(&mut windows),
                preset.name,
                median(&mut firsts)
            );
        }
    }
}

#[test]
#[ignore = "figures: run by ./x evidence web"]
fn evidence_speed() {
    const PAIRS: usize = 5;
    let cases = [
        ("small", SMALL, "cpu", 1500, false),
        ("middle", MIDDLE, "cpu", 150, false),
        ("middle", MIDDLE, "cpu", 150, true),
        ("middle", MIDDLE, "gpu", 60, false),
    ];
    for (name, toml, device, count, hidden) in cases {
        let toml = steps(toml, count);
        let gpu = if device == "gpu" {
            Gpu::Software
        } else {
            Gpu::None
        };
        let Some(mut visit) = open(gpu) else { return };
        visit.load("");
        if hidden {
            visit.tab.hide();
        }
        let [mut page, mut native, mut ratios] = [Vec::new(), Vec::new(), Vec::new()];
        visit.tab.eval("window.tasks.length = 0");
        for pair in 0..PAIRS {
            let mut both = [0.0; 2];
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                both[which] = if which == 0 {
                    page_rate(&mut visit, &toml, device)
                } else {
                    native_rate(&toml, device)
                };
            }
            page.push(both[0]);
            native.push(both[1]);
            ratios.push(both[0] / both[1]);
        }
        let longest = visit.tab.eval("Math.max(0, ...window.tasks)");
        println!(
            "speed, {name}, {device}{}: page {:.1} steps/s, native on one thread {:.1}; page over native {}; longest task of \
             the page's main thread {:.0} ms (0: none of 50 ms)",
            if hidden { ", tab hidden" } else { "" },
            median(&mut page),
            median(&mut native),
            ratio(&ratios),
            longest.as_f64().unwrap_or(f64::NAN)
        );
    }
}

#[test]
#[ignore = "figures: run by ./x evidence web"]
fn evidence_memory() {
    let Some(mut visit) = open(Gpu::None) else {
        return;
    };
    visit.load("");
    visit.send(&start(&steps(SMALL, 5_000), "cpu"));
    let began = Instant::now();
    for step in [500, 5_000] {
        visit.until("the step", |event| {
            let reached = |line: &Line| matches!(line, Line::Train { step: at, .. } if *at >= step);
            matches!(event, Event::Lines(lines) if lines.iter().any(reached))
        });
        let worker = visit.tab.workers[0].clone();
        let page = visit.tab.heap(None);
        let other = visit.tab.heap(Some(&worker));
        let wasm = visit.tab.eval("window.memory.buffer.byteLength");
        let used = visit.heard.iter().rev().find_map(|event| match event {
            Event::Timing(timing) => timing.memory,
            _ => None,
        });
        println!(
            "memory at step {step}, after {:.0} s: JS heap {:.1} MB in the page, {:.1} MB in the worker; wasm {:.1} MB in the \
             page, {:.1} MB in the worker",
            began.elapsed().as_secs_f64(),
            page / 1e6,
            other / 1e6,
            wasm.as_f64().unwrap_or(f64::NAN) / 1e6,
            used.unwrap_or(0) as f64 / 1e6
        );
        visit.heard.clear();
    }
}

/// Pictures of the real page: training, on both sizes, dark and light. Written to the folder `BRAID_PICTURES`.
#[test]
#[ignore = "writes pictures: run it by name, then look at them"]
fn evidence_pictures() {
    let folder = PathBuf::from(env::var("BRAID_PICTURES").expect("a folder for the pictures"));
    fs::create_dir_all(&folder).expect("a folder");
    let preset = PRESETS.first().expect("a preset");
    for (word, size) in [("1400", (1400, 900)), ("390", (390, 844))] {
        for theme in ["dark", "light"] {
            let Some(mut visit) = open(Gpu::None) else {
                return;
            };
            let scheme =
                json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
            visit.tab.call("Emulation.setEmulatedMedia", scheme);
            if size.0 < 600 {
                visit.tab.phone(size.0, size.1);
            } else {
                let screen = json!({ "width": size.0, "height": size.1, "deviceScaleFactor": 1, "mobile": false });
                visit.tab.call("Emulation.setDeviceMetricsOverride", screen);
            }
            visit.load("");
            visit.send(&start(preset.toml, "cpu"));
            let reached = |line: &Line| matches!(line, Line::Train { step, .. } if *step >= 120);
            visit.until(
                "some steps",
                |event| matches!(event, Event::Lines(lines) if lines.iter().any(reached)),
            );
            if size.0 < 600 {
                // The curves.
                visit.tab.tap(85.0, 385.0);
            }
            visit.tab.frames();
            let picture = visit.tab.call("Page.captureScreenshot", json!({}));
            let bytes = STANDARD.decode(picture["data"].as_str().unwrap_or_default());
            let path = folder.join(format!("web_{word}_{theme}.png"));
            fs::write(path, bytes.expect("base 64")).expect("a file");
        }
    }
}
