//! A real browser: the page (`page.rs`), what it keeps (`keeping.rs`), and every shader: Chromium compiles what naga accepted, at default limits.
//!
//! Chromium refuses some shaders that naga accepts (barriers in divergent control flow, direct stores to atomics), so
//! that a build that is green everywhere else could fail for every visitor of the page. Two such shaders are compiled
//! too, and must be refused: else this test would test nothing.

mod cdp;
mod chromium;
mod keeping;
mod page;
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use braid_engine::kernel::Access;
use braid_engine::kernel::kernels::ALL;
use chromium::{Chromium, Gpu};
use serde_json::{Value, json};
use server::Server;

const PAGE: &str = include_str!("page.html");
const CANARIES: [(&str, &str); 2] = [
    ("barrier", include_str!("canaries/barrier.wgsl")),
    ("atomic", include_str!("canaries/atomic.wgsl")),
];

/// Barrier-free kernels take milliseconds each, tiled ones up to eight seconds on a software adapter.
const PATIENCE: Duration = Duration::from_secs(600);

/// What the page compiles.
fn shaders() -> Value {
    let mut files: BTreeMap<&str, (&str, Vec<Value>)> = BTreeMap::new();
    for kernel in ALL {
        let writes = |access| access == Access::Write;
        let bindings = kernel.bindings.iter().map(|binding| writes(binding.access));
        let constants = if kernel.source.contains("override WG") {
            json!({ "WG": 64 })
        } else {
            json!({})
        };
        let (_, kernels) = files
            .entry(kernel.name)
            .or_insert((kernel.source, Vec::new()));
        kernels.push(json!({
            "entry": kernel.entry,
            "bindings": bindings.collect::<Vec<_>>(),
            "constants": constants,
        }));
    }
    let files = files.into_iter().map(
        |(name, (source, kernels))| json!({ "name": name, "source": source, "kernels": kernels }),
    );
    let canaries = CANARIES.map(|(name, source)| json!({ "name": name, "source": source }));
    json!({ "files": files.collect::<Vec<_>>(), "canaries": canaries })
}

#[test]
fn chromium_accepts_every_shader_and_refuses_the_canaries() {
    let file = |media, content: String| (media, content.into_bytes());
    let server = Server::start(BTreeMap::from([
        ("/".into(), file("text/html", PAGE.into())),
        (
            "/shaders.json".into(),
            file("application/json", shaders().to_string()),
        ),
    ]));
    let mut browser = Chromium::open(&server.address(), Gpu::Software);
    let text = server.wait_for("/result", PATIENCE).unwrap_or_else(|| {
        let last = server
            .last("/progress")
            .unwrap_or_else(|| "the page".into());
        panic!(
            "no answer; the last thing begun was {last}\n{}",
            browser.complaints()
        )
    });
    let report: Value = serde_json::from_str(&text).expect("the page posts JSON");
    assert!(
        report["fatal"].is_null(),
        "no WebGPU in Chromium: {}\n{}",
        report["fatal"],
        browser.complaints()
    );
    let list = |key: &str| -> Vec<String> {
        let items = report[key].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item.as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let failures = list("failures");
    assert!(
        failures.is_empty(),
        "Chromium refuses what naga accepts:\n  {}",
        failures.join("\n  ")
    );
    assert_eq!(report["pipelines"], ALL.len(), "one pipeline per kernel");
    assert_eq!(
        list("refused"),
        CANARIES.map(|(name, _)| name),
        "known-bad shaders pass"
    );
}
