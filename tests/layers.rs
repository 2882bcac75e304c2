//! Who may import whom. The architecture is this table; a change of it is a decision, so it stands here.

use std::fs;
use std::path::Path;

use braid_tests::source::{root, rust_files, without_comments};

/// Modules of the engine, lowest first: each may import those before it, and itself. Configurations are plain data and
/// lie below what they configure, wherever their files are.
const ORDER: [&str; 28] = [
    "shape",
    "error",
    "random",
    "kernel",
    "params",
    "plan",
    "tape",
    "executor",
    "ops",
    "optim",
    "cpu",
    "gpu",
    "device",
    "nn::feed_forward",
    "nn::residual::config",
    "models::config",
    "nn",
    "models",
    "data",
    "checkpoint",
    "sample",
    "runtime",
    "analysis",
    "trainer",
    "report",
    "bench",
    "golden",
    "lib",
];

/// The place in [`ORDER`] of the most special module that is or holds `path`.
fn place(path: &str) -> Option<usize> {
    let holds = |module: &str| {
        path.strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let held = (0..ORDER.len()).filter(|&position| holds(ORDER[position]));
    held.max_by_key(|&position| ORDER[position].len())
}

/// Words that the engine never names, and the reason.
const FORBIDDEN: [(&str, &str); 12] = [
    ("std::fs", "bytes are passed in"),
    (
        "std::time::Instant",
        "times are passed in, and browsers have no such clock",
    ),
    ("std::time::SystemTime", "times are passed in"),
    ("std::env", "settings are passed in"),
    ("std::thread", "threads come from rayon, in cpu/ only"),
    ("web_sys", "the engine knows no browser"),
    ("wasm_bindgen", "the engine knows no browser"),
    ("egui", "the engine has no window"),
    ("println!", "the engine does not print"),
    ("eprintln!", "the engine does not print"),
    ("dbg!", "the engine does not print"),
    ("pollster", "waiting is for the outermost edge"),
];

/// A file without comments, and without its tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("readable");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    without_comments(code)
}

/// A path relative to the repository, for messages and prefixes.
fn relative(file: &Path) -> String {
    let path = file.strip_prefix(root()).unwrap_or(file);
    path.to_string_lossy().replace('\\', "/")
}

/// Whether `text` has `word` as a word of its own.
fn names(text: &str, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(letter);
        let after = text[at + word.len()..].chars().next().is_some_and(letter);
        !(before || after && letter(word.chars().next_back().unwrap_or(' ')))
    })
}

/// The paths after each `crate::`, with `crate::{a, b::{c, d}}` taken apart.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        unfold("", rest, &mut found);
    }
    found.retain(|path| path.chars().next().is_some_and(char::is_lowercase));
    found
}

/// Read one path, or list of paths, at the start of `text`; returns what follows it.
fn unfold<'a>(prefix: &str, text: &'a str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = unfold(prefix, rest, found).trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}::{name}")
    };
    match rest.strip_prefix("::") {
        Some(rest) if !name.is_empty() => unfold(&path, rest, found),
        _ => {
            if !name.is_empty() {
                found.push(path);
            }
            rest
        }
    }
}

fn none(what: &str, failures: &[String]) {
    assert!(failures.is_empty(), "{what}:\n  {}", failures.join("\n  "));
}

#[test]
fn engine_modules_import_downwards_only() {
    let mut failures = Vec::new();
    for file in rust_files(&root().join("engine/src")) {
        let path = relative(&file);
        let inner = path
            .trim_start_matches("engine/src/")
            .trim_end_matches(".rs");
        let module = inner.trim_end_matches("/mod").replace('/', "::");
        let Some(own) = place(&module) else {
            failures.push(format!(
                "{path}: `{module}` is not in the table of tests/layers.rs"
            ));
            continue;
        };
        for import in imports(&code(&file)) {
            match place(&import) {
                Some(position) if position <= own => {}
                Some(_) => failures.push(format!("{path} imports `{import}`, which lies above it")),
                None => failures.push(format!(
                    "{path} imports `{import}`, which is not in the table"
                )),
            }
        }
    }
    failures.dedup();
    none("imports", &failures);
}

#[test]
fn only_gpu_and_device_name_wgpu_and_only_cpu_has_threads() {
    let mut failures = Vec::new();
    for file in rust_files(&root().join("engine/src")) {
        let (path, code) = (relative(&file), code(&file));
        let gpu = path.starts_with("engine/src/gpu/") || path == "engine/src/device.rs";
        if names(&code, "wgpu") && !gpu {
            failures.push(format!("{path} names wgpu: a missing feature of Executor"));
        }
        if names(&code, "rayon") && !path.starts_with("engine/src/cpu/") {
            failures.push(format!("{path} names rayon"));
        }
    }
    none("imports", &failures);
}

#[test]
fn the_engine_has_no_files_no_clock_and_no_window() {
    let mut failures = Vec::new();
    for file in rust_files(&root().join("engine/src")) {
        let (path, code) = (relative(&file), code(&file));
        // `use std::{fs, time::Instant}` names the same things.
        let spread = code.replace("std::{", "std::");
        for (word, why) in FORBIDDEN {
            if names(&code, word) || names(&spread, word) {
                failures.push(format!("{path} names {word}: {why}"));
            }
        }
        for word in ["Instant", "SystemTime"] {
            if names(&code, word) {
                failures.push(format!("{path} names {word}"));
            }
        }
    }
    none("the engine is told everything", &failures);
}

#[test]
fn only_the_outermost_edge_waits() {
    let edges = ["app/src/main.rs", "app/src/cli", "app/src/desk.rs"];
    let mut failures = Vec::new();
    for folder in ["app/src", "web/src"] {
        for file in rust_files(&root().join(folder)) {
            let path = relative(&file);
            let edge = edges.iter().any(|edge| path.starts_with(edge));
            if names(&code(&file), "pollster") && !edge {
                failures.push(format!("{path} names pollster"));
            }
        }
    }
    none("waiting", &failures);
}

#[test]
fn the_window_sees_commands_and_events_only() {
    let mut failures = Vec::new();
    for file in rust_files(&root().join("app/src/ui")) {
        let code = code(&file);
        for module in [
            "trainer", "tape", "plan", "executor", "device", "gpu", "cpu", "ops", "nn",
        ] {
            if code.contains(&format!("braid_engine::{module}::")) {
                failures.push(format!("{} names braid_engine::{module}", relative(&file)));
            }
        }
        for word in ["Trainer", "Tape", "Executor"] {
            if names(&code, word) {
                failures.push(format!("{} names {word}", relative(&file)));
            }
        }
    }
    none("the window", &failures);
}

#[test]
fn the_checks_see_what_they_should() {
    assert_eq!(
        imports(
            "use crate::{error::{Error, Result}, plan};\ncrate::params! {} crate::Shape crate::ops::x()"
        ),
        ["error::Error", "error::Result", "plan", "params", "ops::x"]
    );
    assert_eq!(
        place("nn::residual::config::ResidualConfig"),
        place("nn::residual::config")
    );
    assert!(
        place("models::config") < place("nn::residual") && place("nn::residual") < place("models")
    );
    assert_eq!(place("nnx"), None);
    assert!(names("use std::fs;", "std::fs"));
    assert!(names("std::fs::read()", "std::fs"));
    assert!(!names("std::fsx", "std::fs"));
    assert!(names("println!(\"\")", "println!"));
    assert!(!names("eprintln!(\"\")", "println!"));
    assert!(!names("wgpu_like", "wgpu"));
}
