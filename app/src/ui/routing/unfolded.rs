//! Every mechanism as one matrix: how much of each earlier output is in what a site reads.

use egui::{Ui, vec2};

use super::scale::{Range, Scale};
use super::shown::frame;
use super::table::Table;
use super::{empty, heat};
use crate::names::{site_label, source_short, sublayer};
use crate::protocol::SiteKind;
use crate::ui::heard::Heard;
use crate::ui::view::View;

/// Draw it.
pub(super) fn show(ui: &mut Ui, heard: &Heard, view: &View) {
    let found = frame(heard, view).map(|(frame, _)| frame);
    let Some(matrix) = found.and_then(|frame| frame.unfolded.as_ref()) else {
        let sentence = if found.is_some() {
            "The matrix is taken with live frames only: go to the newest frame, or let the model train on."
        } else {
            "When a model trains, this shows its mechanism, whichever it is, on one scale: coefficients of all earlier outputs in what each site reads."
        };
        empty::say(ui, "No matrix in this frame", sentence);
        return;
    };
    let count = matrix.rows.len();
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let last = number(count.saturating_sub(1));
    let name = |at: usize| site_label(number(at), SiteKind::of(number(at), last));
    let rows: Vec<String> = (0..count).map(name).collect();
    let widest = matrix.rows.iter().map(Vec::len).max().unwrap_or(0);
    let columns: Vec<String> = (0..widest).map(|at| source_short(&sublayer(at))).collect();
    let scale = Scale::of(matrix.rows.iter().flatten().copied(), Range::Unit);
    ui.label("Coefficient of each earlier output (columns) in what a site reads (rows)")
        .on_hover_text(
            "The routing, followed back through blocks and streams to single sublayers, so that every mechanism shows on the same \
             scale: standard residuals have 1 everywhere.",
        );
    ui.weak("EMB: the embedding; A1, M1: output of layer 1's attention and MLP");
    let selected = view
        .selected
        .and_then(|(site, _)| usize::try_from(site).ok());
    let table = Table {
        name: "unfolded matrix",
        rows: &rows,
        tokens: false,
        columns: &columns,
        bottom_up: true,
        scale,
        strong: selected.filter(|&row| row < count),
    };
    let space = vec2(
        ui.available_width(),
        (ui.available_height() - 30.0).max(60.0),
    );
    table.show(ui, space, |row, column| {
        matrix.rows.get(row)?.get(column).copied()
    });
    let title = match scale {
        Scale::Sequential { .. } => "coefficient",
        Scale::Diverging { .. } => "coefficient (symmetric log)",
    };
    heat::legend(ui, scale, title);
}
