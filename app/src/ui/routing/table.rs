//! A heat map with named rows and columns, for everything that is not the map itself.

use egui::emath::GuiRounding;
use egui::scroll_area::ScrollBarVisibility;
use egui::{FontId, Rect, Role, ScrollArea, Sense, Ui, Vec2, WidgetInfo, vec2};

use super::heat::{self, FONT, Lattice};
use super::scale::Scale;
use super::signed::signed;

/// Height of the names of columns.
const NAMES: f32 = 17.0;

/// Size of a cell whose row is a token, at least: its number can be read.
const TOKEN: Vec2 = vec2(28.0, 15.0);

/// What is drawn.
pub(super) struct Table<'a> {
    /// For screen readers, and to tell tables apart.
    pub(super) name: &'a str,
    /// Names of the rows.
    pub(super) rows: &'a [String],
    /// Whether rows are tokens of a text: monospace, which has signs for blanks; many rows, so that names of columns stay in
    /// sight above them.
    pub(super) tokens: bool,
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
        let font = if self.tokens {
            FontId::monospace(FONT)
        } else {
            FontId::proportional(FONT)
        };
        let left = heat::label_width(ui, &font, self.rows.iter().map(String::as_str));
        let names = if self.columns.is_empty() { 2.0 } else { NAMES };
        let bar = ui.spacing().scroll.bar_width + ui.spacing().scroll.bar_inner_margin;
        let room = space - vec2(left + 10.0 + bar, names + 4.0);
        let columns = self.columns.len().max(1);
        let mut cell = Lattice::fit(room, self.rows.len(), columns);
        if self.tokens {
            let width = (room.x / columns as f32).floor();
            cell = vec2(width.clamp(TOKEN.x, 1.6 * TOKEN.x), cell.y.max(TOKEN.y));
        }
        let size = vec2(
            left + columns as f32 * cell.x + 2.0,
            self.rows.len() as f32 * cell.y + names,
        );
        let mut clicked = None;
        let fits = size.y <= space.y && size.x + bar <= space.x;
        ScrollArea::both()
            .id_salt(self.name)
            .scroll_bar_visibility(if fits {
                ScrollBarVisibility::AlwaysHidden
            } else {
                ScrollBarVisibility::VisibleWhenNeeded
            })
            .max_width(space.x)
            .max_height(space.y)
            .show(ui, |ui| {
                let (rect, response) = ui.allocate_exact_size(size, Sense::click());
                response.widget_info(|| WidgetInfo::labeled(Role::Image, true, self.name));
                let lattice = Lattice {
                    min: (rect.min + vec2(left, if self.tokens { names } else { 0.0 }))
                        .round_to_pixels(ui.pixels_per_point()),
                    cell,
                    rows: self.rows.len(),
                    columns,
                    bottom_up: self.bottom_up,
                };
                heat::cells(ui, &lattice, self.scale, false, &value);
                heat::row_labels(ui, &lattice, &font, self.rows, self.strong);
                if self.tokens {
                    // Above the rows that are in sight, wherever they are scrolled to.
                    let top = ui.clip_rect().top().max(rect.top());
                    let strip = Rect::from_min_size(rect.min, vec2(rect.width(), names));
                    let strip = strip.translate(vec2(0.0, top - rect.top()));
                    ui.painter()
                        .rect_filled(strip, 0.0, ui.visuals().panel_fill);
                    heat::names_at(ui, &lattice, self.columns, None, strip.top() + 2.0);
                } else {
                    heat::column_labels(ui, &lattice, self.columns, None);
                }
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
