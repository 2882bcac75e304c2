//! Depth weights and gates of a batch, reduced to what a person looks at (section 8 of the routing specification).
//!
//! Sharpness is the mean over tokens of the largest weight; its floor is `1/n`. The papers do not say whether they plot
//! this or the largest mean weight; this is our choice. Entropy is in nats, not normalised. Weights that are no distribution
//! have no entropy and no floor, and signed ones no largest weight either.

use serde::Serialize;

use crate::nn::residual::{Gate, Routing, Weighting};

/// One stream's read at one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamStats {
    /// What the weights belong to: `embed`, `block 1`, .., `partial`.
    pub sources: Vec<String>,
    /// Mean weight of each source over all tokens.
    pub weight: Vec<f64>,
    /// What the weights are.
    #[serde(skip_serializing_if = "is_softmax")]
    pub weighting: Weighting,
    /// Mean over tokens of the largest weight; not for signed weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Mean over tokens of `-sum a ln a`, in nats; softmax weights only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// What `max` would be if all sources weighed the same; softmax weights only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_softmax(weighting: &Weighting) -> bool {
    *weighting == Weighting::Softmax
}

/// One site: its streams and gates. Gates are means over tokens; absent where a mechanism has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteStats {
    /// Number, `L` for the read-out.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// One entry per stream.
    pub streams: Vec<StreamStats>,
    /// Weights of the two streams in the branch input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Vec<f64>>,
    /// Share of a stream's own partial sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// Write gates of the two streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<Vec<f64>>,
    /// Weight of each stream in the branch input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<f64>>,
    /// Factor with which the branch output is added to each stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<f64>>,
    /// Weights with which the streams are mixed, a list for each row of the matrix that the checkpoint format defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<Vec<Vec<f64>>>,
}

/// What kind of sublayer a site is, in a model of `sublayers` sublayers.
#[must_use]
pub fn site_kind(site: u32, sublayers: u32) -> &'static str {
    match (site == sublayers, site.is_multiple_of(2)) {
        (true, _) => "readout",
        (false, true) => "attn",
        (false, false) => "mlp",
    }
}

/// Reduce one matrix of weights `[rows, n]`; a shared vector is a matrix of one row.
#[must_use]
pub fn stream_stats(sources: &[String], weighting: Weighting, weights: &[f64]) -> StreamStats {
    let n = sources.len();
    let rows = (weights.len() / n).max(1) as f64;
    let mut weight = vec![0.0; n];
    let (mut max, mut entropy) = (0.0, 0.0);
    for row in weights.chunks_exact(n) {
        weight
            .iter_mut()
            .zip(row)
            .for_each(|(sum, a)| *sum += a / rows);
        max += row.iter().copied().fold(0.0, f64::max) / rows;
        entropy -= row
            .iter()
            .filter(|&&a| a > 0.0)
            .map(|a| a * a.ln())
            .sum::<f64>()
            / rows;
    }
    let softmax = weighting == Weighting::Softmax;
    StreamStats {
        sources: sources.to_vec(),
        weight,
        weighting,
        max: (weighting != Weighting::Signed).then_some(max),
        entropy: softmax.then_some(entropy),
        floor: softmax.then_some(1.0 / n as f64),
    }
}

/// Means of the columns of a gate tensor.
fn means(gate: &Gate, values: &[f64]) -> Vec<f64> {
    let rows = (values.len() / gate.width).max(1) as f64;
    let mut sums = vec![0.0; gate.columns.len()];
    for row in values.chunks_exact(gate.width) {
        sums.iter_mut()
            .zip(&row[gate.columns.clone()])
            .for_each(|(sum, v)| *sum += v / rows);
    }
    sums
}

/// Reduce everything that a watching plan has published. `values` finds a tensor by name.
pub fn site_stats(
    sublayers: u32,
    routing: &[Routing],
    gates: &[Gate],
    values: impl Fn(&str) -> Option<Vec<f64>>,
) -> Vec<SiteStats> {
    let mut sites: Vec<SiteStats> = Vec::new();
    let at = |sites: &mut Vec<SiteStats>, site: u32| -> usize {
        sites
            .iter()
            .position(|stats| stats.site == site)
            .unwrap_or_else(|| {
                let kind = site_kind(site, sublayers);
                sites.push(SiteStats {
                    site,
                    kind,
                    streams: Vec::new(),
                    alpha: None,
                    rho: None,
                    beta: None,
                    read: None,
                    write: None,
                    mix: None,
                });
                sites.len() - 1
            })
    };
    for read in routing {
        if let Some(weights) = values(&read.tensor()) {
            let position = at(&mut sites, read.site);
            sites[position]
                .streams
                .push(stream_stats(&read.sources, read.weighting, &weights));
        }
    }
    for gate in gates {
        let Some(values) = values(&gate.tensor) else {
            continue;
        };
        let position = at(&mut sites, gate.site);
        let means = means(gate, &values);
        match gate.name {
            "alpha" => sites[position].alpha = Some(means),
            "rho" => sites[position].rho = means.first().copied(),
            "beta" => sites[position].beta = Some(means),
            "read" => sites[position].read = Some(means),
            "write" => sites[position].write = Some(means),
            "mix" => {
                let row = gate.shape.last().copied().unwrap_or(1).max(1);
                sites[position].mix = Some(means.chunks(row).map(<[f64]>::to_vec).collect());
            }
            _ => {}
        }
    }
    sites.sort_by_key(|stats| stats.site);
    sites
}
