//! What sites and sources are called, in the window and in the terminal: short in maps, in words elsewhere.

use crate::protocol::SiteKind;

/// `3 attn`, `3 mlp`, `out`: layers are counted from 1.
pub(crate) fn site_label(site: u32, kind: SiteKind) -> String {
    match kind {
        SiteKind::Attn => format!("{} attn", site / 2 + 1),
        SiteKind::Mlp => format!("{} mlp", site / 2 + 1),
        SiteKind::Readout => "out".into(),
    }
}

/// As [`site_label`], for the kinds of records: `attn`, `mlp`, `readout`.
pub(crate) fn record_label(site: u32, kind: &str) -> String {
    let kind = match kind {
        "attn" => SiteKind::Attn,
        "mlp" => SiteKind::Mlp,
        _ => SiteKind::Readout,
    };
    site_label(site, kind)
}

/// `layer 3 attention`, `layer 3 MLP`, `the read-out`
pub(crate) fn site_words(site: u32, kind: SiteKind) -> String {
    match kind {
        SiteKind::Attn => format!("layer {} attention", site / 2 + 1),
        SiteKind::Mlp => format!("layer {} MLP", site / 2 + 1),
        SiteKind::Readout => "the read-out".into(),
    }
}

/// `EMB`, `B3`, `A1`, `M1`, `part`, `null`
pub(crate) fn source_short(name: &str) -> String {
    match name {
        "embed" => "EMB".into(),
        "partial" => "part".into(),
        _ => match name.split_once(' ') {
            Some(("block", number)) => format!("B{number}"),
            Some(("attn", number)) => format!("A{number}"),
            Some(("mlp", number)) => format!("M{number}"),
            Some((word, number)) => {
                let first = word.chars().next().unwrap_or(' ').to_ascii_uppercase();
                format!("{first}{number}")
            }
            None => name.chars().take(4).collect(),
        },
    }
}

/// `the embedding`, `block 3`, `the attention of layer 1`, `the partial sum`
pub(crate) fn source_words(name: &str) -> String {
    match name {
        "embed" => "the embedding".into(),
        "partial" => "the partial sum of its block".into(),
        "null" => "nothing (null)".into(),
        _ => match name.split_once(' ') {
            Some(("attn", number)) => format!("the attention of layer {number}"),
            Some(("mlp", number)) => format!("the MLP of layer {number}"),
            _ => name.into(),
        },
    }
}

/// Columns of the unfolded matrix: `embed`, `attn 1`, `mlp 1`, ..
pub(crate) fn sublayer(column: usize) -> String {
    match column {
        0 => "embed".into(),
        _ => {
            let kind = if column % 2 == 1 { "attn" } else { "mlp" };
            format!("{kind} {}", (column - 1) / 2 + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_and_sources_have_names() {
        assert_eq!(site_label(5, SiteKind::Mlp), "3 mlp");
        assert_eq!(site_words(4, SiteKind::Attn), "layer 3 attention");
        assert_eq!(site_words(8, SiteKind::Readout), "the read-out");
        let short = ["embed", "block 12", "attn 1", "mlp 3", "partial", "null"].map(source_short);
        assert_eq!(short, ["EMB", "B12", "A1", "M3", "part", "null"]);
        assert_eq!(source_words("mlp 2"), "the MLP of layer 2");
        assert_eq!(
            [0, 1, 2, 3].map(sublayer),
            ["embed", "attn 1", "mlp 1", "attn 2"]
        );
    }
}
