//! The paper of a mechanism, as a link where it can be read on the web.

use egui::{RichText, Ui};

/// The place of the number in `DenseFormer, arXiv 2402.02622`, with the word before it: what can be followed.
fn link(paper: &str) -> Option<std::ops::Range<usize>> {
    const WORD: &str = "arXiv ";
    let start = paper.find(WORD)?;
    let number = start + WORD.len();
    let length = paper[number..]
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(paper.len() - number);
    (length > 0).then_some(start..number + length)
}

/// Draw it.
pub(super) fn show(ui: &mut Ui, paper: &str) {
    let small = |text: &str| RichText::new(text).small();
    if paper.is_empty() {
        ui.label(small("No paper is followed here."));
        return;
    }
    let Some(range) = link(paper) else {
        ui.label(small(paper));
        return;
    };
    let number = paper[range.clone()].trim_start_matches("arXiv ");
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 0.0;
        ui.label(small(&paper[..range.start]));
        let address = format!("https://arxiv.org/abs/{number}");
        let text = small(&paper[range.clone()]);
        ui.hyperlink_to(text, &address).on_hover_text(&address);
        ui.label(small(&paper[range.end..]));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_what_is_followed() {
        let of = |paper: &str| link(paper).map(|range| paper[range].to_owned());
        let paper = "a control arm of Delta Attention Residuals, arXiv 2605.18855";
        assert_eq!(of(paper).as_deref(), Some("arXiv 2605.18855"));
        assert_eq!(
            of("arXiv 1808.07561, eq. 1").as_deref(),
            Some("arXiv 1808.07561")
        );
        assert_eq!(of("a book"), None);
        assert_eq!(of("arXiv"), None);
    }
}
