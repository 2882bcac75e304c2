//! A text for bug reports: version, devices, configuration, last errors.

use std::fmt::Write;

use super::format::{bytes, grouped};
use super::heard::{Heard, Level};
use super::view::View;

/// Errors that are kept in the text.
const ERRORS: usize = 10;

/// Everything that somebody who was not there needs to know.
#[must_use]
pub(super) fn text(heard: &Heard, view: &View) -> String {
    let mut text = format!(
        "Braid {} on {} {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let _ = writeln!(text, "\ndevices ({})", heard.auto);
    for device in &heard.devices {
        let limit = device.binding_bytes.map_or("no limit".into(), bytes);
        let _ = writeln!(
            text,
            "  {}: {} [{}], largest binding: {limit}",
            device.choice, device.name, device.kind
        );
    }
    if heard.devices.is_empty() {
        text += "  none listed\n";
    }
    let toml = match &heard.run {
        Some(run) => {
            let timing = heard.timing;
            let _ = writeln!(
                text,
                "\nrun {} on {}, {} allocated{}\n  step {} of {}\n  a step: {:.1} ms, device {:.1}, host {:.1}, routing frame {:.1}, window {:.1}",
                run.name,
                run.device,
                bytes(run.bytes),
                timing.memory.map_or_else(String::new, |used| format!(
                    ", the process uses {}",
                    bytes(used)
                )),
                grouped(heard.step),
                grouped(run.steps),
                timing.step,
                timing.device,
                timing.host,
                timing.frame,
                view.paint
            );
            run.toml.clone()
        }
        None => {
            let _ = writeln!(
                text,
                "\nno run; the draft, for the device `{}`",
                view.draft.device
            );
            view.draft.edits.to_toml()
        }
    };
    let _ = write!(text, "\nconfiguration\n{}", indented(&toml));
    let errors = heard.log.iter().filter(|entry| entry.level == Level::Error);
    let errors: Vec<_> = errors.collect();
    text += "\nlast errors\n";
    for entry in errors.iter().rev().take(ERRORS).rev() {
        let _ = writeln!(text, "  step {}: {}", grouped(entry.step), entry.text);
    }
    if errors.is_empty() {
        text += "  none\n";
    }
    text
}

fn indented(toml: &str) -> String {
    let lines = toml.lines().filter(|line| !line.is_empty());
    lines.map(|line| format!("  {line}\n")).collect()
}
