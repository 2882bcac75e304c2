//! A heat map with named rows and columns, for everything that is not the map itself.

use egui::emath::GuiRounding;
use egui::{FontId, Role, ScrollArea, Sense, Ui, Vec2, WidgetInfo, vec2};

use super::heat::{self, FONT, Lattice};
use super::names::signed;
use super::scale::Scale;

/// What is drawn.
pub(super) struct Table<'a> {
    /// For screen readers, and to tell tables apart.
    pub(super) name: &'a str,
    /// Names of the rows.
    pub(super) rows: &'a [String],
    /// Whether rows are named by text that a model reads: monospace, which has signs for blanks.
    pub(super) mono: bool,
    /// Names of the columns.
    pub(super) columns: &'a [String],
    /// Row 0 is the lowest.
    pub(super) bottom_up: bool,
    /// The colours.
    pub(super) scale: Scale,
    /// A row that stands out.
    pub(super) strong: Option<usize>,
}

impl Table<'_> {
    /// Draw it into at most `space`; returns the row that was clicked.
    pub(super) fn show(
        &self,
        ui: &mut Ui,
        space: Vec2,
        value: impl Fn(usize, usize) -> Option<f64>,
    ) -> Option<usize> {
        let font = if self.mono {
            FontId::monospace(FONT)
        } else {
            FontId::proportional(FONT)
        };
        let left = heat::label_width(ui, &font, self.rows.iter().map(String::as_str));
        let under = if self.columns.is_empty() { 2.0 } else { 17.0 };
        let room = space - vec2(left + 10.0, under + 4.0);
        let columns = self.columns.len().max(1);
        let mut cell = Lattice::fit(room, self.rows.len(), columns);
        // Rows with a name of their own are worth scrolling for.
        cell.y = cell.y.max(12.0_f32.min(1.2 * cell.x));
        let size = vec2(
            left + columns as f32 * cell.x + 2.0,
            self.rows.len() as f32 * cell.y + under,
        );
        let mut clicked = None;
        ScrollArea::both()
            .id_salt(self.name)
            .max_width(space.x)
            .max_height(space.y)
            .show(ui, |ui| {
                let (rect, response) = ui.allocate_exact_size(size, Sense::click());
                response.widget_info(|| WidgetInfo::labeled(Role::Image, true, self.name));
                let lattice = Lattice {
                    min: (rect.min + vec2(left, 0.0)).round_to_pixels(ui.pixels_per_point()),
                    cell,
                    rows: self.rows.len(),
                    columns,
                    bottom_up: self.bottom_up,
                };
                heat::cells(ui, &lattice, self.scale, false, &value);
                heat::row_labels(ui, &lattice, &font, self.rows, self.strong);
                heat::column_labels(ui, &lattice, self.columns, None);
                let at = |position| lattice.at(position);
                if response.clicked() {
                    let hit = response.interact_pointer_pos().and_then(at);
                    clicked = hit.map(|(row, _)| row);
                }
                if let Some((row, column)) = response.hover_pos().and_then(at)
                    && let Some(number) = value(row, column)
                {
                    let of = self.columns.get(column).map_or("", String::as_str);
                    let text = format!("{}, {of}: {}", self.rows[row], signed(number, 4));
                    response.on_hover_text_at_pointer(text);
                }
            });
        clicked
    }
}
