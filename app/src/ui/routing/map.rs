//! The map: one heat map for each stream on one scale, with selection by pointer and keys.

use egui::emath::GuiRounding;
use egui::{
    Align2, EventFilter, FontId, Id, Key, Modifiers, Pos2, Rect, Role, ScrollArea, Sense, Shape,
    Stroke, Ui, Vec2, WidgetInfo, pos2, vec2,
};

use super::grid::Grid;
use super::heat::{self, FONT, Lattice};
use super::scale::{Scale, ink};
use super::signed::signed;
use super::words::sentence;
use crate::names::{site_label, site_words, source_short, source_words};
use crate::protocol::{Intervention, RouteEdit, Site, SiteKind};
use crate::ui::format::{grouped, percent};
use crate::ui::view::View;

/// Width of the mark that tells attention from MLP.
const MARK: f32 = 12.0;
/// Between two streams, and from the start of one title to the next at least.
const BETWEEN: f32 = 18.0;
const TITLE: f32 = 58.0;
/// Height of titles and of names under the columns.
const LINE: f32 = 17.0;

/// What is drawn.
pub(super) struct Map<'a> {
    /// What it is called by a screen reader.
    pub(super) name: &'a str,
    /// Where the weights come from.
    pub(super) sites: &'a [Site],
    /// Streams, then perhaps their difference.
    pub(super) grids: &'a [Grid],
    /// Scale of weights.
    pub(super) scale: Scale,
    /// Scale of the difference.
    pub(super) difference: Scale,
    /// Whether these are weights of a model; if not, only the shape is drawn.
    pub(super) trained: bool,
    /// Updates done, and tokens that the means are over (0: unknown).
    pub(super) moment: (u64, u64),
    /// Edits to mark.
    pub(super) edits: &'a [Intervention],
}

/// `stream 1`, `stream 0 − stream 1`, or nothing for a single stream.
fn title(grid: &Grid, streams: usize) -> String {
    match grid.stream {
        None => "stream 0 − stream 1".into(),
        Some(_) if streams < 2 => String::new(),
        Some(stream) => format!("stream {stream}"),
    }
}

/// Attention: a ring. MLP: a square. Read-out: a triangle.
fn mark(ui: &Ui, center: Pos2, kind: SiteKind) {
    let colour = ui.visuals().weak_text_color();
    let painter = ui.painter();
    match kind {
        SiteKind::Attn => {
            painter.circle_stroke(center, 2.5, Stroke::new(1.0, colour));
        }
        SiteKind::Mlp => {
            let square = Rect::from_center_size(center, Vec2::splat(5.0));
            painter.rect_filled(square, 0.0, colour);
        }
        SiteKind::Readout => {
            let corners = [vec2(-3.0, 2.5), vec2(3.0, 2.5), vec2(0.0, -3.0)];
            let corners = corners.map(|corner| center + corner).to_vec();
            painter.add(Shape::convex_polygon(corners, colour, Stroke::NONE));
        }
    }
}

impl Map<'_> {
    fn scale(&self, grid: &Grid) -> Scale {
        if grid.stream.is_some() {
            self.scale
        } else {
            self.difference
        }
    }

    /// The stream that a click into a grid selects: a difference belongs to the first.
    fn stream(grid: &Grid) -> usize {
        grid.stream.unwrap_or(0)
    }

    /// Draw it into at most `space`; what does not fit is scrolled. Returns where it lies.
    pub(super) fn show(&self, ui: &mut Ui, space: Vec2, view: &mut View) -> Rect {
        let Some(first) = self.grids.first() else {
            return Rect::NOTHING;
        };
        let (rows, columns) = (first.rows.len(), first.columns.len());
        let labels: Vec<String> = first
            .rows
            .iter()
            .map(|row| site_label(row.site, row.kind))
            .collect();
        let left = MARK
            + heat::label_width(
                ui,
                &FontId::proportional(FONT),
                labels.iter().map(String::as_str),
            );
        let count = self.grids.len() as f32;
        let top = if self.grids.len() > 1 { LINE } else { 4.0 };
        let room = vec2(
            (space.x - left - (count - 1.0) * BETWEEN - 8.0) / count,
            space.y - top - LINE - 4.0,
        );
        let cell = Lattice::fit(room, rows, columns);
        let pitch = (columns as f32 * cell.x + BETWEEN).max(TITLE);
        let size = vec2(
            left + (count - 1.0) * pitch + columns as f32 * cell.x + 4.0,
            top + rows as f32 * cell.y + LINE,
        );
        ScrollArea::both()
            .id_salt(self.name)
            .max_width(space.x)
            .max_height(space.y)
            .show(ui, |ui| {
                let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
                let min = rect.min.round_to_pixels(ui.pixels_per_point());
                let lattice = |at: usize| Lattice {
                    min: min + vec2(left + at as f32 * pitch, top),
                    cell,
                    rows,
                    columns,
                    bottom_up: true,
                };
                let lattices: Vec<Lattice> = (0..self.grids.len()).map(lattice).collect();
                self.interact(ui, rect, &lattices, view);
                self.paint(ui, &lattices, &labels, view);
            });
        Rect::from_min_size(ui.min_rect().min, size)
    }

    fn interact(&self, ui: &Ui, rect: Rect, lattices: &[Lattice], view: &mut View) {
        let id = ui.scope_id().with(self.name);
        let response = ui.interact(rect, id, Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Grid, true, self.name));
        for (grid, lattice) in self.grids.iter().zip(lattices) {
            self.describe(ui, id, grid, lattice);
        }
        let hit = |position: Pos2| {
            let inside = self.grids.iter().zip(lattices).find_map(|(grid, lattice)| {
                let (row, column) = lattice.at(position)?;
                Some((grid, row, Some(column)))
            });
            // The labels belong to the first stream.
            inside.or_else(|| {
                let lattice = lattices.first()?;
                let (row, _) = lattice.at(pos2(lattice.min.x + 1.0, position.y))?;
                (position.x < lattice.min.x).then_some((&self.grids[0], row, None))
            })
        };
        if response.clicked() {
            response.request_focus();
            if let Some((grid, row, column)) = response.interact_pointer_pos().and_then(hit) {
                let cell = column.and_then(|column| grid.cells[row][column]);
                view.selected = Some((grid.rows[row].site, Self::stream(grid)));
                view.source = cell.map(|cell| cell.source);
            }
        }
        if let Some((grid, row, Some(column))) = response.hover_pos().and_then(hit)
            && grid.cells[row][column].is_some()
        {
            response
                .clone()
                .on_hover_ui_at_pointer(|ui| self.explain(ui, grid, row, column));
        }
        if response.has_focus() {
            let filter = EventFilter {
                horizontal_arrows: true,
                vertical_arrows: true,
                ..EventFilter::default()
            };
            ui.memory_mut(|memory| memory.set_focus_lock_filter(id, filter));
            for (key, step) in [
                (Key::ArrowUp, (1, 0)),
                (Key::ArrowDown, (-1, 0)),
                (Key::ArrowRight, (0, 1)),
                (Key::ArrowLeft, (0, -1)),
            ] {
                if ui.input_mut(|input| input.consume_key(Modifiers::NONE, key)) {
                    self.walk(view, step);
                }
            }
            let accent = ui.visuals().selection.stroke;
            let inside = egui::StrokeKind::Inside;
            ui.painter().rect_stroke(rect, 2.0, accent, inside);
        }
    }

    /// Rows for a screen reader: what each of them reads.
    fn describe(&self, ui: &Ui, id: Id, grid: &Grid, lattice: &Lattice) {
        let Some(stream) = grid.stream else {
            return;
        };
        for (row, line) in grid.rows.iter().enumerate() {
            let id = id.with((stream, line.site));
            let response = ui.interact(lattice.row(row), id, Sense::empty());
            let selected = || {
                let words = sentence(self.sites, (line.site, stream)).unwrap_or_default();
                if self.trained {
                    words
                } else {
                    format!("{words}, not trained yet")
                }
            };
            response.widget_info(|| WidgetInfo::labeled(Role::Row, true, selected()));
        }
    }

    /// Move the selection by so many rows and sources.
    fn walk(&self, view: &mut View, (up, right): (isize, isize)) {
        let streams: Vec<&Grid> = self.grids.iter().filter(|g| g.stream.is_some()).collect();
        let Some(first) = streams.first() else {
            return;
        };
        let start = first.rows.len().saturating_sub(1);
        let Some((site, stream)) = view.selected else {
            view.selected = first.rows.get(start).map(|row| (row.site, 0));
            return;
        };
        // The selection may be of a model with more streams.
        let stream = stream.min(streams.len() - 1);
        let grid = streams[stream];
        let Some(row) = grid.row(site) else {
            view.selected = first.rows.get(start).map(|row| (row.site, 0));
            return;
        };
        let column = view.source.and_then(|source| grid.column(row, source));
        if up != 0 {
            let row = row.saturating_add_signed(up).min(start);
            view.selected = Some((grid.rows[row].site, stream));
            let below = column.and_then(|column| grid.cells[row][column]);
            view.source = below.map(|cell| cell.source);
            return;
        }
        // Along the sources that exist, then into the next stream.
        let exist = |grid: &Grid| -> Vec<usize> {
            let cells = grid.cells[row].iter().enumerate();
            cells.filter_map(|(at, cell)| cell.map(|_| at)).collect()
        };
        let here = exist(grid);
        let at = column.and_then(|column| here.iter().position(|&own| own == column));
        let next = match (at, right > 0) {
            (None, true) => here.first().map(|&column| (stream, column)),
            (None, false) => here.last().map(|&column| (stream, column)),
            (Some(at), true) if at + 1 < here.len() => Some((stream, here[at + 1])),
            (Some(at), false) if at > 0 => Some((stream, here[at - 1])),
            (Some(_), true) => streams
                .get(stream + 1)
                .and_then(|grid| Some((stream + 1, *exist(grid).first()?))),
            (Some(_), false) => stream
                .checked_sub(1)
                .and_then(|before| Some((before, *exist(streams[before]).last()?))),
        };
        if let Some((stream, column)) = next {
            view.selected = Some((site, stream));
            view.source = streams[stream].cells[row][column].map(|cell| cell.source);
        }
    }

    fn explain(&self, ui: &mut Ui, grid: &Grid, row: usize, column: usize) {
        let Some(cell) = grid.cells[row][column] else {
            return;
        };
        let line = &grid.rows[row];
        let reader = site_words(line.site, line.kind);
        let source = source_words(&grid.columns[column]);
        if !self.trained {
            ui.label(format!("{reader} can read {source}"));
            let n = grid.cells[row].iter().flatten().count();
            ui.weak(format!("not trained yet: each of {n} sources weighs 1/{n}"));
            return;
        }
        let value = match (grid.stream, self.scale) {
            (Some(_), scale) if scale.shares() => {
                format!("{:.4} ({})", cell.value, percent(cell.value))
            }
            _ => signed(cell.value, 4),
        };
        ui.strong(value);
        ui.label(format!("{reader} reads {source}"));
        let streams = self.grids.iter().filter(|g| g.stream.is_some()).count();
        let title = title(grid, streams);
        if !title.is_empty() {
            ui.label(title);
        }
        let (step, tokens) = self.moment;
        let mut over = format!("step {}", grouped(step));
        if tokens > 0 {
            over.push_str(&format!(", mean over {} tokens", grouped(tokens)));
        }
        ui.weak(format!("{over}; site {}", line.site));
    }

    fn paint(&self, ui: &Ui, lattices: &[Lattice], labels: &[String], view: &View) {
        let streams = self.grids.iter().filter(|g| g.stream.is_some()).count();
        for (at, (grid, lattice)) in self.grids.iter().zip(lattices).enumerate() {
            let mine = view
                .selected
                .filter(|&(_, stream)| grid.stream == Some(stream));
            let row = mine.and_then(|(site, _)| grid.row(site));
            let column = row.and_then(|row| grid.column(row, view.source?));
            let title = title(grid, streams);
            if !title.is_empty() {
                let at = pos2(lattice.min.x, lattice.min.y - 3.0);
                let font = FontId::proportional(FONT);
                let colour = ui.visuals().weak_text_color();
                ui.painter()
                    .text(at, Align2::LEFT_BOTTOM, title, font, colour);
            }
            let value = |row: usize, column: usize| grid.cells[row][column].map(|c| c.value);
            heat::cells(ui, lattice, self.scale(grid), !self.trained, value);
            let names: Vec<String> = grid.columns.iter().map(|n| source_short(n)).collect();
            heat::column_labels(ui, lattice, &names, column);
            if at == 0 {
                let any = view.selected.and_then(|(site, _)| grid.row(site));
                let font = FontId::proportional(FONT);
                let named = heat::row_labels(ui, lattice, &font, labels, any);
                let names = labels.iter().map(String::as_str);
                let left = lattice.min.x - heat::label_width(ui, &font, names);
                for row in named {
                    let y = lattice.rect(row, 0).center().y - 0.5;
                    mark(ui, pos2(left - 0.5 * MARK + 3.0, y), grid.rows[row].kind);
                }
            }
            self.mark_edits(ui, grid, lattice);
            if let Some(row) = row {
                heat::frame(ui, lattice.row(row), 1.0);
                if let Some(column) = column {
                    heat::frame(ui, lattice.rect(row, column), 2.0);
                }
            }
        }
    }

    /// Cut: a cross. Pinned: a disc. Swapped: arrows. Uniform: a line through all.
    fn mark_edits(&self, ui: &Ui, grid: &Grid, lattice: &Lattice) {
        let painter = ui.painter();
        for edit in self.edits {
            let (Some(row), true) = (grid.row(edit.site), grid.stream == Some(edit.stream)) else {
                continue;
            };
            let place = |source: usize| {
                let column = grid.column(row, source)?;
                let value = grid.cells[row][column]?.value;
                let ground = self.scale(grid).colour(value, ui.visuals().dark_mode);
                let rect = lattice.rect(row, column);
                let part = (0.18 * rect.size().min_elem()).max(2.0);
                Some((rect.left_top() + Vec2::splat(part + 2.0), part, ink(ground)))
            };
            match edit.edit {
                RouteEdit::Cut { source } => {
                    if let Some((c, r, ink)) = place(source) {
                        let stroke = Stroke::new(2.0, ink);
                        let (a, b) = (Vec2::splat(r), vec2(r, -r));
                        painter.line_segment([c - a, c + a], stroke);
                        painter.line_segment([c - b, c + b], stroke);
                    }
                }
                RouteEdit::Pin { source } => {
                    if let Some((c, r, ink)) = place(source) {
                        painter.circle_filled(c, r, ink);
                    }
                }
                RouteEdit::Swap { a, b } => {
                    for (source, other) in [(a, b), (b, a)] {
                        if let Some((c, r, ink)) = place(source) {
                            let way = if other > source { 1.0 } else { -1.0 };
                            let arrow = vec2(2.0 * r * way, 0.0);
                            painter.arrow(c - 0.5 * arrow, arrow, Stroke::new(1.5, ink));
                        }
                    }
                }
                RouteEdit::Uniform => {
                    for source in 0..grid.columns.len() {
                        if let Some((c, r, ink)) = place(source) {
                            let stroke = Stroke::new(1.5, ink);
                            for dy in [-1.5, 1.5] {
                                let from = c + vec2(-r, dy);
                                painter.line_segment([from, from + vec2(2.0 * r, 0.0)], stroke);
                            }
                        }
                    }
                }
            }
        }
    }
}
