//! The map as text or picture, to the clipboard or a file.

use std::sync::mpsc::{self, Receiver};

use egui::{ColorImage, Rect, Ui};

use super::grid::Grid;
use crate::names::site_label;
use crate::ui::host::{Purpose, Wish};
use crate::ui::view::View;

/// What is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    CopyCsv,
    CopyJson,
    Csv,
    Json,
    Png,
}

const ITEMS: [(Format, &str); 5] = [
    (Format::CopyCsv, "Copy CSV"),
    (Format::CopyJson, "Copy JSON"),
    (Format::Csv, "Save CSV"),
    (Format::Json, "Save JSON"),
    (Format::Png, "Save picture (PNG)"),
];

/// A picture that is on its way.
#[derive(Debug, Default)]
pub(super) struct Export {
    waiting: Option<Receiver<Option<Vec<u8>>>>,
    step: u64,
}

/// A line for each weight: step, site, kind, stream, source, weight.
pub(super) fn csv(grids: &[Grid], step: u64) -> String {
    let mut text = "step,site,name,stream,source,weight\n".to_owned();
    for grid in grids {
        let Some(stream) = grid.stream else { continue };
        for (row, cells) in grid.rows.iter().zip(&grid.cells) {
            for (name, cell) in grid.columns.iter().zip(cells) {
                if let Some(cell) = cell {
                    let label = site_label(row.site, row.kind);
                    let line = format!(
                        "{step},{},{label},{},{name},{}\n",
                        row.site, stream, cell.value
                    );
                    text.push_str(&line);
                }
            }
        }
    }
    text
}

/// The same as nested lists; a source that a site cannot read is null.
pub(super) fn json(grids: &[Grid], step: u64, tokens: u64) -> String {
    let stream = |grid: &Grid| {
        let rows = grid.rows.iter().zip(&grid.cells).map(|(row, cells)| {
            serde_json::json!({
                "site": row.site,
                "kind": row.kind,
                "weight": cells.iter().map(|cell| cell.map(|c| c.value)).collect::<Vec<_>>(),
            })
        });
        serde_json::json!({ "sources": grid.columns, "rows": rows.collect::<Vec<_>>() })
    };
    let streams = grids.iter().filter(|g| g.stream.is_some()).map(stream);
    let all = serde_json::json!({
        "step": step,
        "tokens": tokens,
        "streams": streams.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

/// A PNG of a picture; `None` if it is empty.
fn png(image: &ColorImage) -> Option<Vec<u8>> {
    let [width, height] = image.size.map(|side| u32::try_from(side).ok());
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width?, height?);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(image.as_raw()).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

impl Export {
    /// The button with its list.
    pub(super) fn menu(ui: &mut Ui) -> Option<Format> {
        let mut asked = None;
        ui.menu_button("Export", |ui| {
            for (format, name) in ITEMS {
                if ui.button(name).clicked() {
                    asked = Some(format);
                    ui.close();
                }
            }
        });
        asked
    }

    /// Hand it out; `picture` is where the map lies.
    pub(super) fn give(
        &mut self,
        ui: &Ui,
        format: Format,
        grids: &[Grid],
        (step, tokens): (u64, u64),
        picture: Rect,
        view: &mut View,
    ) {
        match format {
            Format::CopyCsv => ui.copy_text(csv(grids, step)),
            Format::CopyJson => ui.copy_text(json(grids, step, tokens)),
            Format::Csv => view
                .dialogs
                .save_text(&format!("routing-{step}.csv"), &csv(grids, step)),
            Format::Json => view
                .dialogs
                .save_text(&format!("routing-{step}.json"), &json(grids, step, tokens)),
            Format::Png => {
                let (send, receive) = mpsc::channel();
                self.waiting = Some(receive);
                self.step = step;
                let visible = picture.expand(6.0).intersect(ui.ctx().content_rect());
                let scale = ui.pixels_per_point();
                let context = ui.ctx().clone();
                ui.ctx().request_screenshot(move |image| {
                    let part = image.region(&visible, Some(scale));
                    // Nobody listens any more if the window was closed.
                    let _ = send.send(png(&part));
                    context.request_repaint();
                });
            }
        }
    }

    /// Pass a picture on that has arrived.
    pub(super) fn poll(&mut self, ui: &Ui, view: &mut View) {
        let Some(receive) = &self.waiting else { return };
        match receive.try_recv() {
            Ok(Some(bytes)) => {
                let name = format!("routing-{}.png", self.step);
                view.dialogs
                    .ask(Purpose::Export, Wish::Save { name, bytes });
                ui.ctx().request_repaint();
            }
            Err(mpsc::TryRecvError::Empty) => return,
            Ok(None) | Err(mpsc::TryRecvError::Disconnected) => {}
        }
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SiteKind;
    use crate::ui::routing::grid::{Cell, Row};

    fn grid() -> Grid {
        let cell = |value, source| Some(Cell { value, source });
        Grid {
            stream: Some(1),
            rows: vec![Row {
                site: 3,
                kind: SiteKind::Mlp,
            }],
            columns: vec!["embed".into(), "block 1".into(), "partial".into()],
            cells: vec![vec![cell(0.25, 0), None, cell(0.75, 1)]],
        }
    }

    #[test]
    fn only_sources_that_exist_have_a_line() {
        let text = csv(&[grid()], 40);
        let expected = "step,site,name,stream,source,weight\n\
            40,3,2 mlp,1,embed,0.25\n40,3,2 mlp,1,partial,0.75\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_keeps_the_shape() {
        let text = json(&[grid()], 40, 128);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let weight = &value["streams"][0]["rows"][0]["weight"];
        assert_eq!(weight, &serde_json::json!([0.25, null, 0.75]));
        assert_eq!(value["streams"][0]["rows"][0]["kind"], "mlp");
    }

    #[test]
    fn a_picture_is_a_png() {
        let image = ColorImage::filled([3, 2], egui::Color32::RED);
        let bytes = png(&image).expect("a picture");
        assert_eq!(&bytes[1..4], b"PNG");
        assert_eq!(png(&ColorImage::filled([0, 0], egui::Color32::RED)), None);
    }
}
