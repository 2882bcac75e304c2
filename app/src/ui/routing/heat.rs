//! Cells in rows and columns: where they lie, how they are painted, and the legend.

use egui::{
    Align2, Color32, FontId, Mesh, Painter, Pos2, Rect, Response, Role, Sense, Shape, Stroke, Ui,
    Vec2, WidgetInfo, pos2, vec2,
};

use super::scale::{Scale, ink};
use super::signed::signed;

/// Cells are never smaller, so that they can be hit; what does not fit is scrolled.
pub(super) const LEAST: f32 = 3.0;
/// Cells are never larger: a small model is not a poster.
const MOST: f32 = 58.0;
/// Between cells, and around labels.
const GAP: f32 = 1.0;
const MARGIN: f32 = 4.0;
/// From this size on, a cell has room for its number.
const NUMBER: Vec2 = vec2(27.0, 14.0);

/// Size of labels.
pub(super) const FONT: f32 = 11.0;
/// Smaller letters cannot be read.
const SMALLEST: f32 = 8.5;

/// Where cells lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lattice {
    /// Upper left corner.
    pub(super) min: Pos2,
    /// Size of a cell with its gap.
    pub(super) cell: Vec2,
    /// Rows.
    pub(super) rows: usize,
    /// Columns.
    pub(super) columns: usize,
    /// Row 0 is the lowest.
    pub(super) bottom_up: bool,
}

impl Lattice {
    /// Size of cells, about square, so that so many fill the space as well as they can.
    pub(super) fn fit(space: Vec2, rows: usize, columns: usize) -> Vec2 {
        let side = |room: f32, count: usize| {
            let side = (room / count.max(1) as f32).floor();
            side.clamp(LEAST, MOST)
        };
        let (w, h) = (side(space.x, columns), side(space.y, rows));
        vec2(w.min((1.6 * h).floor()), h.min((1.2 * w).floor()))
    }

    /// Size of all cells.
    pub(super) fn size(&self) -> Vec2 {
        self.cell * vec2(self.columns as f32, self.rows as f32)
    }

    /// All cells.
    pub(super) fn bounds(&self) -> Rect {
        Rect::from_min_size(self.min, self.size())
    }

    fn line(&self, row: usize) -> usize {
        if self.bottom_up {
            self.rows.saturating_sub(row + 1)
        } else {
            row
        }
    }

    /// A cell with its gap.
    pub(super) fn rect(&self, row: usize, column: usize) -> Rect {
        let at = vec2(column as f32, self.line(row) as f32);
        Rect::from_min_size(self.min + at * self.cell, self.cell)
    }

    /// A row with its gaps.
    pub(super) fn row(&self, row: usize) -> Rect {
        let last = self.columns.saturating_sub(1);
        self.rect(row, 0).union(self.rect(row, last))
    }

    /// Which cell lies at a position.
    pub(super) fn at(&self, position: Pos2) -> Option<(usize, usize)> {
        let at = (position - self.min) / self.cell;
        if at.x < 0.0 || at.y < 0.0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let (column, line) = (at.x as usize, at.y as usize);
        (column < self.columns && line < self.rows).then(|| (self.line(line), column))
    }

    /// A mark of a row has its place left of the labels; returns the middle of the row's left edge.
    fn left(&self, row: usize) -> Pos2 {
        self.row(row).left_center()
    }
}

/// How numbers in cells are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    /// `61`: percent.
    Percent,
    /// `−0.07`
    Signed,
}

impl Digits {
    fn write(self, value: f64) -> String {
        match self {
            Self::Percent => format!("{:.0}", 100.0 * value),
            Self::Signed => signed(value, 2),
        }
    }

    /// As they belong to a scale.
    fn of(scale: Scale) -> Self {
        if scale.shares() {
            Self::Percent
        } else {
            Self::Signed
        }
    }
}

/// A line across a cell, in both directions as often as they fit: it has no value yet.
fn hatch(painter: &Painter, rect: Rect, stroke: Stroke) {
    let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
    let step = (0.25 * rect.width()).max(5.0);
    let mut x = rect.left() - rect.height();
    while x < rect.right() {
        let from = pos2(x, rect.bottom());
        painter.line_segment([from, from + vec2(rect.height(), -rect.height())], stroke);
        x += step;
    }
}

/// Paint all cells. A `None` stays empty.
pub(super) fn cells(
    ui: &Ui,
    lattice: &Lattice,
    scale: Scale,
    hatched: bool,
    value: impl Fn(usize, usize) -> Option<f64>,
) {
    let (painter, dark) = (ui.painter(), ui.visuals().dark_mode);
    // Small cells are told apart by a pixel, others by a point.
    let pixel = 1.0 / ui.pixels_per_point();
    let gap = if lattice.cell.y < 6.0 {
        pixel
    } else {
        pixel.max(GAP)
    };
    let digits = Digits::of(scale);
    let numbers = lattice.cell.x >= NUMBER.x && lattice.cell.y >= NUMBER.y && !hatched;
    let font = FontId::proportional((0.42 * lattice.cell.y).clamp(9.0, 13.0));
    let mut mesh = Mesh::default();
    let mut texts = Vec::new();
    let quiet = ui.visuals().weak_text_color();
    for row in 0..lattice.rows {
        for column in 0..lattice.columns {
            let Some(value) = value(row, column) else {
                continue;
            };
            let mut rect = lattice.rect(row, column);
            rect.max -= Vec2::splat(gap);
            if hatched {
                mesh.add_colored_rect(rect, ui.visuals().faint_bg_color);
                hatch(painter, rect, Stroke::new(1.0, quiet.gamma_multiply(0.6)));
                continue;
            }
            let colour = scale.colour(value, dark);
            mesh.add_colored_rect(rect, colour);
            if numbers {
                texts.push((rect.center(), digits.write(value), ink(colour)));
            }
        }
    }
    painter.add(Shape::mesh(mesh));
    for (center, text, colour) in texts {
        painter.text(center, Align2::CENTER_CENTER, text, font.clone(), colour);
    }
}

/// Width that labels of rows need.
pub(super) fn label_width<'a>(
    ui: &Ui,
    font: &FontId,
    labels: impl Iterator<Item = &'a str>,
) -> f32 {
    let width = |text: &str| {
        let painter = ui.painter();
        let galley = painter.layout_no_wrap(text.into(), font.clone(), Color32::WHITE);
        galley.size().x
    };
    labels.map(width).fold(0.0, f32::max) + 2.0 * MARGIN
}

/// Names left of the rows, as many as have room, right-aligned. Returns the rows that have theirs.
pub(super) fn row_labels(
    ui: &Ui,
    lattice: &Lattice,
    font: &FontId,
    labels: &[String],
    strong: Option<usize>,
) -> Vec<usize> {
    let every = (10.5 / lattice.cell.y).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let every = every as usize;
    // An odd step, so that attention and MLP take turns.
    let every = every + usize::from(every > 1 && every.is_multiple_of(2));
    let mut named = Vec::new();
    for (row, label) in labels.iter().enumerate() {
        let is_strong = strong == Some(row);
        let crowded = strong.is_some_and(|at| at != row && at.abs_diff(row) < every);
        if !is_strong && (!row.is_multiple_of(every) || crowded) {
            continue;
        }
        let colour = if is_strong {
            ui.visuals().strong_text_color()
        } else {
            ui.visuals().text_color()
        };
        let at = lattice.left(row) - vec2(MARGIN, 0.5);
        ui.painter()
            .text(at, Align2::RIGHT_CENTER, label, font.clone(), colour);
        named.push(row);
    }
    named
}

/// The size at which all names fit their columns, if it can be read; else the usual one.
fn fitting(ui: &Ui, lattice: &Lattice, names: &[String]) -> f32 {
    let font = FontId::proportional(FONT);
    let widest = label_width(ui, &font, names.iter().map(String::as_str)) - 2.0 * MARGIN;
    let size = FONT * (lattice.cell.x - 2.0) / widest.max(1.0);
    if (SMALLEST..FONT).contains(&size) {
        size
    } else {
        FONT
    }
}

/// Names under the columns.
pub(super) fn column_labels(ui: &Ui, lattice: &Lattice, names: &[String], strong: Option<usize>) {
    names_at(ui, lattice, names, strong, lattice.bounds().bottom() + 2.0);
}

/// Names of the columns with this upper edge, as many as have room; first and last before others.
pub(super) fn names_at(
    ui: &Ui,
    lattice: &Lattice,
    names: &[String],
    strong: Option<usize>,
    top: f32,
) {
    let size = fitting(ui, lattice, names);
    let font = FontId::proportional(size);
    let gap = if size < FONT { 1.0 } else { 2.0 };
    let last = names.len().saturating_sub(1);
    let mut order: Vec<usize> = strong.into_iter().chain([0, last]).collect();
    order.extend(1..last);
    let mut taken: Vec<(f32, f32)> = Vec::new();
    let mut done = Vec::new();
    for column in order {
        let Some(name) = names.get(column).filter(|_| !done.contains(&column)) else {
            continue;
        };
        done.push(column);
        let colour = if strong == Some(column) {
            ui.visuals().strong_text_color()
        } else {
            ui.visuals().text_color()
        };
        let galley = ui
            .painter()
            .layout_no_wrap(name.clone(), font.clone(), colour);
        let center = lattice.rect(0, column).center().x;
        let half = 0.5 * galley.size().x;
        let (from, to) = (center - half - gap, center + half + gap);
        if taken.iter().any(|&(a, b)| from < b && a < to) {
            continue;
        }
        taken.push((from, to));
        ui.painter()
            .galley(pos2(center - half, top), galley, colour);
    }
}

/// A frame around a cell or a row that is seen on every colour.
pub(super) fn frame(ui: &Ui, rect: Rect, width: f32) {
    let mut rect = rect;
    rect.max -= Vec2::splat(GAP);
    let (out, line) = if ui.visuals().dark_mode {
        (Color32::BLACK, Color32::WHITE)
    } else {
        (Color32::WHITE, Color32::BLACK)
    };
    let outside = egui::StrokeKind::Outside;
    ui.painter()
        .rect_stroke(rect, 0.0, Stroke::new(width + 1.0, out), outside);
    ui.painter()
        .rect_stroke(rect, 0.0, Stroke::new(width, line), outside);
}

/// The scale with numbers.
pub(super) fn legend(ui: &mut Ui, scale: Scale, title: &str) -> Response {
    const BAR: Vec2 = vec2(150.0, 9.0);
    let font = FontId::proportional(FONT);
    let colour = ui.visuals().text_color();
    let title_galley = ui
        .painter()
        .layout_no_wrap(title.into(), font.clone(), colour);
    let title_width = title_galley.size().x;
    let size = vec2(title_width + BAR.x + 30.0, BAR.y + 16.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let ticks = scale.ticks();
    let words = format!(
        "{title}: colours from {} to {}",
        ticks.first().map_or("", |tick| &tick.1),
        ticks.last().map_or("", |tick| &tick.1)
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &words));
    let bar = Rect::from_min_size(rect.min + vec2(title_width + 14.0, 1.0), BAR);
    let painter = ui.painter();
    let title_at = pos2(rect.left(), bar.center().y - 0.5 * title_galley.size().y);
    painter.galley(title_at, title_galley, colour);
    let mut mesh = Mesh::default();
    let steps = 64;
    let dark = ui.visuals().dark_mode;
    for step in 0..steps {
        let (from, to) = (step as f32 / steps as f32, (step + 1) as f32 / steps as f32);
        let part = Rect::from_min_max(
            pos2(bar.left() + from * bar.width(), bar.top()),
            pos2(bar.left() + to * bar.width(), bar.bottom()),
        );
        mesh.add_colored_rect(part, scale.colour_at(0.5 * (from + to), dark));
    }
    painter.add(Shape::mesh(mesh));
    for (value, text) in ticks {
        let x = bar.left() + scale.position(value) * bar.width();
        painter.vline(
            x,
            bar.bottom()..=bar.bottom() + 2.0,
            Stroke::new(1.0, colour),
        );
        let at = pos2(x, bar.bottom() + 2.0);
        painter.text(at, Align2::CENTER_TOP, text, font.clone(), colour);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_cells_agree() {
        for bottom_up in [false, true] {
            let lattice = Lattice {
                min: pos2(10.0, 20.0),
                cell: vec2(8.0, 6.0),
                rows: 5,
                columns: 7,
                bottom_up,
            };
            for row in 0..5 {
                for column in 0..7 {
                    let center = lattice.rect(row, column).center();
                    assert_eq!(lattice.at(center), Some((row, column)));
                }
            }
            assert_eq!(lattice.at(pos2(9.0, 21.0)), None);
            assert_eq!(lattice.at(lattice.bounds().max + vec2(1.0, 0.0)), None);
        }
    }

    #[test]
    fn the_first_site_is_at_the_bottom() {
        let lattice = Lattice {
            min: Pos2::ZERO,
            cell: vec2(10.0, 10.0),
            rows: 3,
            columns: 1,
            bottom_up: true,
        };
        assert!(lattice.rect(0, 0).top() > lattice.rect(2, 0).top());
    }

    #[test]
    fn cells_are_about_square_and_never_vanish() {
        let cases = [
            (vec2(400.0, 300.0), 9, 4),
            (vec2(300.0, 120.0), 64, 64),
            (vec2(90.0, 800.0), 12, 30),
        ];
        for (space, rows, columns) in cases {
            let cell = Lattice::fit(space, rows, columns);
            assert!(cell.x >= LEAST && cell.y >= LEAST, "{cell:?}");
            assert!(
                cell.x <= 1.6 * cell.y && cell.y <= 1.25 * cell.x,
                "{cell:?}"
            );
        }
    }
}
