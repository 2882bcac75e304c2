//! Figures of a model and of a plan, as text.

use std::fmt::Write;

use braid_engine::error::bytes_for_people;
use braid_engine::models::config::ModelConfig;
use braid_engine::params::{ParamSpec, Parameters};
use braid_engine::trainer::MemoryPlan;

/// Trained numbers that one token uses: all but those of the experts that it is not sent to.
#[must_use]
pub fn active_parameters(model: &ModelConfig, parameters: &Parameters) -> usize {
    let Some(moe) = model.experts() else {
        return parameters.count();
    };
    let expert = 3 * moe.intermediate_size as usize * model.hidden_size as usize;
    let idle = (moe.experts - moe.top_k) as usize * model.num_hidden_layers as usize;
    parameters.count() - idle * expert
}

/// Numbers of one part of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `embedding`, `attention`, `feed-forward`, `experts`, `shared experts`, `routers`, `norms`, `head`, `routing`
    pub name: &'static str,
    /// Tensors.
    pub tensors: usize,
    /// Trained numbers.
    pub numbers: usize,
    /// Those of them that AdamW decays.
    pub decayed: usize,
}

fn part(spec: &ParamSpec) -> &'static str {
    let name = spec.name.as_str();
    if spec.group.routing {
        "routing"
    } else if name.contains("norm") {
        "norms"
    } else if name.contains("self_attn.") {
        "attention"
    } else if name.contains("mlp.experts.") {
        "experts"
    } else if name.contains("mlp.shared_experts.") {
        "shared experts"
    } else if name.contains("mlp.gate.") {
        "routers"
    } else if name.contains("mlp.") {
        "feed-forward"
    } else if name.starts_with("lm_head") {
        "head"
    } else {
        "embedding"
    }
}

/// The parts of a model that have parameters.
#[must_use]
pub fn parts(parameters: &Parameters) -> Vec<Part> {
    let order = [
        "embedding",
        "attention",
        "feed-forward",
        "experts",
        "shared experts",
        "routers",
        "norms",
        "head",
        "routing",
    ];
    let sum = |name: &'static str| {
        let mut sum = Part {
            name,
            tensors: 0,
            numbers: 0,
            decayed: 0,
        };
        for (_, spec) in parameters.trained().filter(|(_, spec)| part(spec) == name) {
            sum.tensors += 1;
            sum.numbers += spec.shape.len();
            sum.decayed += if spec.group.decay {
                spec.shape.len()
            } else {
                0
            };
        }
        sum
    };
    order
        .into_iter()
        .map(sum)
        .filter(|part| part.tensors > 0)
        .collect()
}

/// `1,003,854`
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 h 02 min`, `3 min 20 s`, `12.3 s`
#[must_use]
pub fn duration(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a duration is not negative"
    )]
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A table of the parts.
#[must_use]
pub fn parameter_table(parameters: &Parameters) -> String {
    let total = parameters.count().max(1);
    let mut out = String::new();
    for part in parts(parameters) {
        let share = 100.0 * part.numbers as f64 / total as f64;
        let decayed = if part.decayed == 0 { "" } else { ", decayed" };
        let _ = writeln!(
            out,
            "  {:<14} {:>13}  {share:>5.1} %  in {} tensor{}{decayed}",
            part.name,
            grouped(part.numbers as u64),
            part.tensors,
            if part.tensors == 1 { "" } else { "s" }
        );
    }
    let bytes = bytes_for_people(4 * total as u64);
    let _ = writeln!(
        out,
        "  {:<14} {:>13}  {bytes} in single precision",
        "all",
        grouped(total as u64)
    );
    out
}

/// Memory of a training, its largest tensors, and the kernel calls of a step.
#[must_use]
pub fn memory_table(memory: &MemoryPlan, largest: usize) -> String {
    let people = bytes_for_people;
    let mut out = String::new();
    let rows = [
        (
            "parameters, gradients, two moments",
            memory.parameters,
            String::new(),
        ),
        (
            "training step",
            memory.training.planned,
            format!("  ({} without sharing)", people(memory.training.unshared)),
        ),
        (
            "evaluation and routing weights",
            memory.evaluation.planned,
            format!("  ({} without sharing)", people(memory.evaluation.unshared)),
        ),
        (
            "update",
            memory.update.planned,
            format!("  ({} without sharing)", people(memory.update.unshared)),
        ),
        ("all", memory.total(), String::new()),
    ];
    for (name, bytes, note) in rows {
        let _ = writeln!(out, "  {name:<35} {:>9}{note}", people(bytes));
    }
    let _ = writeln!(out, "largest tensors of a step");
    for (name, bytes) in memory.training.largest.iter().take(largest) {
        let _ = writeln!(out, "  {name:<35} {:>9}", people(*bytes));
    }
    let _ = writeln!(
        out,
        "kernel calls of a step                {:>9}",
        memory.steps
    );
    out
}
