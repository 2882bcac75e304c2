//! Numbers that are not finite, in JSON: they are written as `null`, and `null` is read as NaN. A model that breaks gives such
//! numbers in its last frame, and that frame is the one that shows where.

use serde::{Deserialize, Deserializer};

fn nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn nans(values: Vec<Option<f64>>) -> Vec<f64> {
    values.into_iter().map(nan).collect()
}

/// A number.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::deserialize(from).map(nan)
}

/// A list of numbers.
pub(super) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    Vec::deserialize(from).map(nans)
}

/// A list of numbers that may be absent.
pub(super) fn some_list<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<f64>>, D::Error> {
    let values: Option<Vec<Option<f64>>> = Option::deserialize(from)?;
    Ok(values.map(nans))
}

/// Rows of numbers.
pub(super) fn table<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rows: Vec<Vec<Option<f64>>> = Vec::deserialize(from)?;
    Ok(rows.into_iter().map(nans).collect())
}

/// Rows of numbers that may be absent.
pub(super) fn some_table<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<Vec<f64>>>, D::Error> {
    let rows: Option<Vec<Vec<Option<f64>>>> = Option::deserialize(from)?;
    Ok(rows.map(|rows| rows.into_iter().map(nans).collect()))
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Depth, Effect, Frame, Site, SiteKind, Stream, Unfolded};

    #[test]
    fn a_broken_frame_survives_being_written() {
        let bad = [f64::NAN, f64::INFINITY, 0.25];
        let frame = Frame {
            sites: vec![Site {
                site: 0,
                kind: SiteKind::Attn,
                streams: vec![Stream {
                    sources: vec!["embed".into(); 3],
                    weight: bad.to_vec(),
                    max: Some(f64::NAN),
                    entropy: None,
                    floor: None,
                }],
                alpha: Some(bad.to_vec()),
                rho: None,
                beta: Some(bad.to_vec()),
                read: Some(bad.to_vec()),
                write: Some(bad.to_vec()),
                mix: Some(vec![bad.to_vec()]),
            }],
            depth: vec![Depth {
                site: 0,
                input: f64::NAN,
                output: f64::INFINITY,
                gradient: None,
            }],
            unfolded: Some(Unfolded {
                rows: vec![bad.to_vec()],
            }),
            ..Frame::default()
        };
        let text = serde_json::to_string(&frame).expect("frames are JSON");
        let read: Frame = serde_json::from_str(&text).expect("a frame");
        let site = &read.sites[0];
        let rows = &read.unfolded.as_ref().expect("a matrix").rows;
        let lists = [
            &site.streams[0].weight,
            site.alpha.as_ref().expect("gates"),
            site.beta.as_ref().expect("gates"),
            site.read.as_ref().expect("weights"),
            site.write.as_ref().expect("weights"),
            &site.mix.as_ref().expect("a matrix")[0],
            &rows[0],
        ];
        for list in lists {
            assert!(list[0].is_nan() && list[1].is_nan());
            assert_eq!(list[2].to_bits(), 0.25_f64.to_bits());
        }
        assert!(read.depth[0].input.is_nan() && read.depth[0].output.is_nan());
    }

    #[test]
    fn a_broken_effect_survives_being_written() {
        let effect = Effect {
            step: 1,
            edits: Vec::new(),
            clean: 2.0,
            edited: f64::INFINITY,
            error: f64::NAN,
            batches: 4,
        };
        let text = serde_json::to_string(&effect).expect("effects are JSON");
        let read: Effect = serde_json::from_str(&text).expect("an effect");
        assert!(read.edited.is_nan() && read.error.is_nan());
    }
}
