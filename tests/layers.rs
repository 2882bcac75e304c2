//! Who may import whom. The architecture is this table; a change of it is a decision, so it stands here.

use std::fs;
use std::path::Path;

use braid_tests::source::{root, rust_files, without_comments};

/// Modules of the engine, lowest first: each may import those before it, and itself.
const ORDER: [&str; 20] = [
    "shape",
    "error",
    "random",
    "kernel",
    "params",
    "plan",
    "tape",
    "executor",
    "ops",
    "cpu",
    "gpu",
    "device",
    "optim",
    "nn",
    "models",
    "data",
    "checkpoint",
    "trainer",
    "analysis",
    "report",
];

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

/// The modules after each `crate::`, with `crate::{a, b::c}` taken apart.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let first = |part: &str| {
            let part = part.trim_start();
            let end = part.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            part[..end.unwrap_or(part.len())].to_owned()
        };
        if let Some(list) = rest.strip_prefix('{') {
            let (mut depth, mut item) = (0, String::new());
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(first(&std::mem::take(&mut item))),
                    _ => {}
                }
                if !(c == ',' && depth == 0) {
                    item.push(c);
                }
            }
            found.push(first(&item));
        } else {
            found.push(first(rest));
        }
    }
    found.retain(|name| name.chars().next().is_some_and(char::is_lowercase));
    found
}

fn none(what: &str, failures: &[String]) {
    assert!(failures.is_empty(), "{what}:\n  {}", failures.join("\n  "));
}

#[test]
fn engine_modules_import_downwards_only() {
    let mut failures = Vec::new();
    let place = |module: &str| ORDER.iter().position(|known| *known == module);
    for file in rust_files(&root().join("engine/src")) {
        let path = relative(&file);
        let inner = path
            .strip_prefix("engine/src/")
            .expect("it was found there");
        let module = inner.split(['/', '.']).next().unwrap_or_default();
        if module == "lib" {
            continue;
        }
        let Some(own) = place(module) else {
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
    let edges = ["app/src/main.rs", "app/src/cli", "app/src/session"];
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
        ["error", "plan", "params", "ops"]
    );
    assert!(names("use std::fs;", "std::fs"));
    assert!(names("std::fs::read()", "std::fs"));
    assert!(!names("std::fsx", "std::fs"));
    assert!(names("println!(\"\")", "println!"));
    assert!(!names("eprintln!(\"\")", "println!"));
    assert!(!names("wgpu_like", "wgpu"));
}
