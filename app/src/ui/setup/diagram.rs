//! A small picture of each family of mechanisms: streams, sources, and what keys and values come from.

use egui::epaint::QuadraticBezierShape;
use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Sense, Shape, Stroke, Ui, pos2, vec2};

use crate::form::Edits;
use crate::ui::theme;

const HEIGHT: f32 = 112.0;

/// Draw the mechanism of this configuration.
pub(super) fn show(ui: &mut Ui, edits: &Edits) {
    let size = vec2(ui.available_width(), HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let canvas = Canvas {
        painter: ui.painter_at(rect),
        rect: rect.shrink2(vec2(2.0, 4.0)),
        ink: ui.visuals().text_color(),
        weak: ui.visuals().weak_text_color(),
        fill: ui.visuals().extreme_bg_color,
    };
    let words = match edits.residual() {
        "dar" => dual(&canvas, &route(edits)),
        "delta" => depth(&canvas, true, "what it added"),
        "attn_res" | "sep_v" => depth(&canvas, false, "output"),
        "cumulative" => depth(&canvas, false, "state"),
        "hyper_connections" | "mhc" => streams(&canvas, number(edits, "residual.streams"), "mix"),
        "mhc2_matched" => streams(&canvas, 2, "ρ"),
        "dense_former" | "transparent" => layers(&canvas),
        _ => standard(&canvas),
    };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &words));
    response.on_hover_text(words);
}

fn number(edits: &Edits, key: &str) -> usize {
    let value = edits.value(key).and_then(|value| value.as_integer());
    value.and_then(|n| usize::try_from(n).ok()).unwrap_or(2)
}

/// Streams that give keys and values to streams 0 and 1.
struct Route {
    name: String,
    keys: [usize; 2],
    values: [usize; 2],
}

fn route(edits: &Edits) -> Route {
    let value = edits.value("residual.route");
    let name = value
        .as_ref()
        .and_then(|value| value.as_str())
        .unwrap_or("dar");
    let (keys, values) = match name {
        "self_kv" => ([0, 1], [0, 1]),
        "cross_v" => ([0, 1], [1, 0]),
        "fixed_kv" => ([0, 0], [1, 1]),
        _ => ([1, 0], [0, 1]),
    };
    let name = name.to_owned();
    Route { name, keys, values }
}

struct Canvas {
    painter: Painter,
    rect: Rect,
    ink: Color32,
    weak: Color32,
    fill: Color32,
}

const VALUES: Color32 = theme::PARTS[0];
const KEYS: Color32 = theme::PARTS[1];

impl Canvas {
    /// `x` as a share of the width, `y` in points from the top.
    fn at(&self, x: f32, y: f32) -> Pos2 {
        pos2(
            self.rect.left() + x * self.rect.width(),
            self.rect.top() + y,
        )
    }

    fn text(&self, at: Pos2, align: Align2, text: &str, color: Color32) {
        self.painter
            .text(at, align, text, FontId::proportional(10.0), color);
    }

    fn cell(&self, center: Pos2, text: &str) -> Rect {
        let rect =
            Rect::from_center_size(center, vec2((0.125 * self.rect.width()).min(30.0), 17.0));
        self.painter.rect(
            rect,
            2.0,
            self.fill,
            Stroke::new(1.0, self.weak),
            egui::StrokeKind::Inside,
        );
        self.text(center, Align2::CENTER_CENTER, text, self.ink);
        rect
    }

    fn node(&self, center: Pos2, text: &str) {
        self.painter
            .circle(center, 9.5, self.fill, Stroke::new(1.2, self.ink));
        self.text(center, Align2::CENTER_CENTER, text, self.ink);
    }

    fn line(&self, from: Pos2, to: Pos2, color: Color32) {
        self.painter
            .line_segment([from, to], Stroke::new(1.2, color));
    }

    fn arrow(&self, from: Pos2, to: Pos2, color: Color32) {
        self.line(from, to, color);
        self.head(to, to - from, color);
    }

    fn dashed(&self, from: Pos2, to: Pos2, color: Color32) {
        let stroke = Stroke::new(1.2, color);
        self.painter
            .extend(Shape::dashed_line(&[from, to], stroke, 3.0, 2.5));
        self.head(to, to - from, color);
    }

    /// An arrow that bends over `bend`.
    fn arc(&self, from: Pos2, bend: Pos2, to: Pos2, color: Color32) {
        let stroke = Stroke::new(1.2, color);
        self.painter.add(QuadraticBezierShape::from_points_stroke(
            [from, bend, to],
            false,
            Color32::TRANSPARENT,
            stroke,
        ));
        self.head(to, to - bend, color);
    }

    fn head(&self, tip: Pos2, direction: egui::Vec2, color: Color32) {
        let along = direction.normalized() * 5.0;
        let across = along.rot90() * 0.5;
        let corners = vec![tip, tip - along + across, tip - along - across];
        self.painter
            .add(Shape::convex_polygon(corners, color, Stroke::NONE));
    }

    fn legend(&self, keys: bool) {
        let y = self.rect.height() - 5.0;
        let x = self.rect.left();
        let base = self.rect.top() + y;
        self.arrow(pos2(x, base), pos2(x + 18.0, base), VALUES);
        self.text(
            pos2(x + 22.0, base),
            Align2::LEFT_CENTER,
            "values",
            self.weak,
        );
        if keys {
            self.dashed(pos2(x + 62.0, base), pos2(x + 80.0, base), KEYS);
            self.text(pos2(x + 84.0, base), Align2::LEFT_CENTER, "keys", self.weak);
        }
        let right = pos2(self.rect.right(), base);
        self.text(right, Align2::RIGHT_CENTER, "depth →", self.weak);
    }
}

fn standard(canvas: &Canvas) -> String {
    let y = 66.0;
    canvas.arrow(canvas.at(0.02, y), canvas.at(0.98, y), canvas.ink);
    for (x, name) in [(0.32, "attn"), (0.72, "mlp")] {
        let (leave, join) = (canvas.at(x - 0.15, y), canvas.at(x + 0.13, y));
        let cell = canvas.cell(canvas.at(x, 26.0), name);
        canvas.arc(
            leave,
            pos2(leave.x, 26.0 + canvas.rect.top()),
            cell.left_center(),
            canvas.ink,
        );
        let end = join - vec2(0.0, 9.5);
        canvas.arc(
            cell.right_center(),
            pos2(join.x, 26.0 + canvas.rect.top()),
            end,
            VALUES,
        );
        canvas.node(join, "+");
    }
    let base = canvas.at(0.0, 99.0);
    canvas.text(base, Align2::LEFT_CENTER, "one stream", canvas.weak);
    canvas.text(
        canvas.at(1.0, 99.0),
        Align2::RIGHT_CENTER,
        "depth →",
        canvas.weak,
    );
    "One stream runs through the depth; attention and feed-forward each read it and add their output.".into()
}

/// A mix over earlier sources; with `stream`, added to an ordinary stream.
fn depth(canvas: &Canvas, stream: bool, source: &str) -> String {
    let mix = canvas.at(0.74, 30.0);
    let row = 76.0;
    let names = ["emb", "1", "2", "…", "now"];
    for (index, name) in names.into_iter().enumerate() {
        let center = canvas.at(0.07 + 0.145 * index as f32, row);
        if name == "…" {
            canvas.text(center, Align2::CENTER_CENTER, name, canvas.ink);
            continue;
        }
        let cell = canvas.cell(center, name);
        let toward = (mix - cell.center_top()).normalized();
        canvas.arrow(cell.center_top(), mix - toward * 10.5, VALUES);
        canvas.dashed(
            cell.center_top() + vec2(5.0, 0.0),
            mix - toward * 10.5 + vec2(3.0, 2.0),
            KEYS,
        );
    }
    canvas.text(
        mix - vec2(0.0, 12.0),
        Align2::CENTER_BOTTOM,
        "query",
        canvas.weak,
    );
    canvas.node(mix, "Σ");
    let cell = canvas.cell(canvas.at(0.91, 30.0), "F");
    canvas.arrow(mix + vec2(9.5, 0.0), cell.left_center(), canvas.ink);
    let new = canvas.cell(canvas.at(0.91, row), "new");
    canvas.arrow(cell.center_bottom(), new.center_top(), VALUES);
    if stream {
        let y = 8.0;
        canvas.line(canvas.at(0.02, y), canvas.at(0.91, y), canvas.ink);
        canvas.arrow(canvas.at(0.91, y), cell.center_top(), canvas.ink);
        canvas.text(
            canvas.at(0.02, y + 2.0),
            Align2::LEFT_TOP,
            "stream",
            canvas.weak,
        );
    }
    canvas.legend(true);
    let added = if stream {
        ", added to an ordinary stream"
    } else {
        ""
    };
    format!(
        "A sublayer F reads a weighted sum over earlier sources{added}. A query of its own meets a key of each source; \
         a source is the embedding or the {source} of a sublayer or block."
    )
}

fn dual(canvas: &Canvas, route: &Route) -> String {
    let rows = [24.0, 72.0];
    let mixes = rows.map(|y| canvas.at(0.72, y));
    let mut ends = [Pos2::ZERO; 2];
    for (stream, y) in rows.into_iter().enumerate() {
        let mut all = Rect::NOTHING;
        for (index, name) in ["EMB", "B1", "B2", "part"].into_iter().enumerate() {
            let center = canvas.at(0.07 + 0.145 * index as f32, y);
            all = all.union(canvas.cell(center, name));
        }
        // All of them are read.
        let all = all.expand(3.0);
        let grey = Stroke::new(1.0, canvas.weak.gamma_multiply(0.6));
        canvas
            .painter
            .rect_stroke(all, 4.0, grey, egui::StrokeKind::Inside);
        ends[stream] = all.right_center();
        let label = all.left_top() - vec2(0.0, 1.0);
        canvas.text(
            label,
            Align2::LEFT_BOTTOM,
            &format!("stream {stream}"),
            canvas.weak,
        );
    }
    for stream in 0..2 {
        let mix = mixes[stream];
        let (values, keys) = (ends[route.values[stream]], ends[route.keys[stream]]);
        let near = |from: Pos2| mix - (mix - from).normalized() * 10.5;
        let shift = if route.keys[stream] == route.values[stream] {
            4.0
        } else {
            0.0
        };
        canvas.arrow(values, near(values), VALUES);
        canvas.dashed(keys + vec2(0.0, shift), near(keys) + vec2(0.0, shift), KEYS);
        canvas.node(mix, if stream == 0 { "h⁰" } else { "h¹" });
    }
    let cell = canvas.cell(canvas.at(0.91, 48.0), "F");
    for mix in mixes {
        let from = mix + (cell.left_center() - mix).normalized() * 9.5;
        canvas.arrow(from, cell.left_center(), canvas.ink);
    }
    canvas.text(
        canvas.at(0.815, 30.0),
        Align2::CENTER_BOTTOM,
        "α",
        canvas.weak,
    );
    for (y, from) in [
        (rows[0], cell.center_top()),
        (rows[1], cell.center_bottom()),
    ] {
        let to = pos2(from.x, canvas.at(0.0, y).y);
        canvas.arrow(from, to, VALUES);
        canvas.text(to + vec2(6.0, 0.0), Align2::LEFT_CENTER, "β", canvas.weak);
    }
    canvas.legend(true);
    let from = |streams: [usize; 2]| format!("stream {} and {}", streams[0], streams[1]);
    format!(
        "Two streams, each with sources: the embedding, finished blocks, and the sum of the unfinished one. Route {}: streams \
         0 and 1 take keys from {}, values from {}. Gates α join what both read; gates β say how much of the output each \
         stream gets.",
        route.name,
        from(route.keys),
        from(route.values)
    )
}

fn streams(canvas: &Canvas, count: usize, mix: &str) -> String {
    let shown = count.clamp(1, 4);
    let (top, gap) = (54.0, 36.0 / (shown.max(2) - 1) as f32);
    let y = |stream: usize| top + gap * stream as f32;
    let cell = canvas.cell(canvas.at(0.5, 14.0), "F");
    let (read, write) = (canvas.at(0.24, 14.0), canvas.at(0.76, 14.0));
    for stream in 0..shown {
        canvas.arrow(
            canvas.at(0.03, y(stream)),
            canvas.at(0.97, y(stream)),
            canvas.ink,
        );
        let (from, to) = (canvas.at(0.14, y(stream)), canvas.at(0.86, y(stream)));
        canvas.line(from, read, VALUES);
        canvas.arrow(write, to, VALUES);
    }
    canvas.arrow(read, cell.left_center(), VALUES);
    canvas.line(cell.right_center(), write, VALUES);
    let square = Rect::from_min_max(
        canvas.at(0.44, top - 10.0),
        canvas.at(0.56, y(shown - 1) + 10.0),
    );
    let stroke = Stroke::new(1.0, canvas.ink);
    canvas
        .painter
        .rect(square, 2.0, canvas.fill, stroke, egui::StrokeKind::Inside);
    canvas.text(square.center(), Align2::CENTER_CENTER, mix, canvas.ink);
    canvas.text(
        read - vec2(4.0, 0.0),
        Align2::RIGHT_CENTER,
        "read",
        canvas.weak,
    );
    canvas.text(
        write + vec2(4.0, 0.0),
        Align2::LEFT_CENTER,
        "write",
        canvas.weak,
    );
    let more = if count > shown {
        format!("{count} streams, {shown} shown")
    } else {
        format!("{count} streams")
    };
    canvas.text(
        canvas.at(0.0, 102.0),
        Align2::LEFT_CENTER,
        &more,
        canvas.weak,
    );
    canvas.text(
        canvas.at(1.0, 102.0),
        Align2::RIGHT_CENTER,
        "depth →",
        canvas.weak,
    );
    format!(
        "{count} streams. A sublayer F reads a weighted sum of them; they are mixed with one another, and the output is written \
         to each with a weight of its own."
    )
}

fn layers(canvas: &Canvas) -> String {
    let y = 60.0;
    let mut cells = Vec::new();
    for (index, name) in ["emb", "1", "2", "3"].into_iter().enumerate() {
        cells.push(canvas.cell(canvas.at(0.08 + 0.2 * index as f32, y), name));
    }
    let mix = canvas.at(0.87, y);
    for pair in cells.windows(2) {
        canvas.arrow(pair[0].right_center(), pair[1].left_center(), canvas.ink);
    }
    for (index, cell) in cells.iter().enumerate() {
        let from = cell.center_top();
        if index == cells.len() - 1 {
            canvas.arrow(cell.right_center(), mix - vec2(9.5, 0.0), VALUES);
        } else {
            let bend = pos2(
                0.5 * (from.x + mix.x),
                canvas.rect.top() - 8.0 + 16.0 * index as f32,
            );
            canvas.arc(from, bend, mix - vec2(3.0 - index as f32, 10.0), VALUES);
        }
    }
    canvas.node(mix, "Σ");
    canvas.arrow(mix + vec2(9.5, 0.0), canvas.at(1.0, y), canvas.ink);
    canvas.legend(false);
    "After a layer, a weighted sum over the embedding and all layers so far goes on. The weights are learned, and the same for \
     all tokens."
        .into()
}
