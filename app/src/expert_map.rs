//! The use of experts as text: rows are layers, the last on top; columns are experts.
//!
//! A shade says how an expert's share of the choices compares with an even share, on a fixed scale from none to twice as much, or more.

use std::fmt::Write;

use braid_engine::analysis::{ExpertLoad, Weighting};

use crate::heat_map::{Paint, cell};

/// Cells of a line.
const CELLS: usize = 64;

/// One cell; half of the scale is an even share.
fn shade(share: f64, size: usize, paint: Paint) -> String {
    cell(Some(share / 2.0), size, paint, Weighting::Softmax)
}

/// The map; empty if there are no experts. At most 80 characters a line.
#[must_use]
pub fn expert_map(layers: &[ExpertLoad], paint: Paint) -> String {
    let experts = layers.first().map_or(0, |layer| layer.load.len());
    if experts == 0 {
        return String::new();
    }
    let size = if experts <= 12 { 4 } else { 1 };
    let mut out = String::new();
    for layer in layers.iter().rev() {
        let mut label = format!("layer {:<3}", layer.layer + 1);
        let lines: Vec<_> = layer.load.chunks(CELLS).collect();
        for (number, shares) in lines.iter().enumerate() {
            let _ = write!(out, "{label}");
            for share in *shares {
                out.push_str(&shade(share * experts as f64, size, paint));
            }
            if number + 1 == lines.len() {
                let _ = write!(out, " {:.2}", layer.max_violation + 1.0);
            }
            out.push('\n');
            label = " ".repeat(label.len());
        }
    }
    if size > 1 {
        let axis: String = (1..=experts)
            .map(|expert| format!("{expert:<size$}"))
            .collect();
        let _ = writeln!(out, "         {axis} most");
    }
    out.push_str("share of an expert, in even shares: ");
    for from in [0.0, 0.4, 0.8, 1.2, 1.6] {
        let _ = write!(out, " {} {from:.1}", shade(from, 1, paint));
    }
    out.push_str(" and more\n");
    out.push_str("most: the largest of them\n");
    out
}
