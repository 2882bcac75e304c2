//! What reads do: weights, sharpness, entropy, how far back they look, and how the streams differ.

use serde::Serialize;

use super::Study;
use crate::analysis::bootstrap::weighted_mean;
use crate::analysis::{Bootstrap, Estimate, expert_load, site_kind};
use crate::nn::residual::Weighting;

/// One read.
#[derive(Clone, Debug, Serialize)]
pub struct ReadReport {
    /// The site; `L` is the read-out.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// Which stream.
    pub stream: u32,
    /// What it can read, the oldest first.
    pub sources: Vec<String>,
    /// Mean weight of each.
    pub weights: Vec<Estimate>,
    /// Mean of the largest weight; not for signed weights.
    pub sharpness: Option<Estimate>,
    /// What it would be if all weighed the same; distributions only, here and below.
    pub floor: Option<f64>,
    /// Mean entropy, nats.
    pub entropy: Option<Estimate>,
    /// The same as a share of its largest value, `ln` of the number of sources; not with one source.
    pub normalised_entropy: Option<Estimate>,
    /// `exp` of the mean entropy.
    pub effective_sources: Option<Estimate>,
    /// Mean number of sources between the one with the largest weight and the newest.
    pub distance: Estimate,
}

/// How differently two streams read at one site.
#[derive(Clone, Debug, Serialize)]
pub struct StreamDivergence {
    /// The site.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// Mean Jensen-Shannon divergence of the weights of streams 0 and 1, nats.
    pub divergence: Estimate,
}

/// One number of a gate.
#[derive(Clone, Debug, Serialize)]
pub struct GateReport {
    /// The site.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// `alpha`, `rho`, `beta`, `read`, `write` or `mix`.
    pub gate: &'static str,
    /// Its position: a stream, or row-major in a matrix.
    pub index: usize,
    /// Mean over tokens.
    pub mean: Estimate,
    /// Standard deviation over tokens.
    pub deviation: Estimate,
}

/// The use of one layer's experts. Intervals are over batches, which is what the router counts.
#[derive(Clone, Debug, Serialize)]
pub struct ExpertReport {
    /// The layer, from 0.
    pub layer: u32,
    /// Share of all choices that each expert got.
    pub load: Vec<Estimate>,
    /// `max / mean - 1` of the shares.
    pub max_violation: Estimate,
    /// Entropy of the router's mean probabilities, nats.
    pub entropy: Estimate,
}

/// Everything about reads.
#[derive(Clone, Debug, Serialize)]
pub struct RoutingReport {
    /// Held-out loss of the clean model on these sequences, nats.
    pub loss: Estimate,
    /// Every read.
    pub reads: Vec<ReadReport>,
    /// Where two streams read the same number of sources.
    pub divergences: Vec<StreamDivergence>,
    /// Every gate.
    pub gates: Vec<GateReport>,
    /// Every layer with experts.
    pub experts: Vec<ExpertReport>,
}

impl Study {
    /// What the clean run says about routing.
    #[must_use]
    pub fn routing_report(&self, seed: u64) -> RoutingReport {
        let bootstrap = &self.bootstrap;
        let kind = |site| site_kind(site, self.sublayers);
        let reads = self.routing.iter().zip(&self.clean.reads);
        let reads = reads.map(|(read, series)| {
            let n = read.sources.len();
            let softmax = read.weighting == Weighting::Softmax;
            let choice = softmax && n > 1;
            let entropy = |scale: f64| {
                bootstrap.estimate(|counts| weighted_mean(&series.entropy, counts) / scale)
            };
            ReadReport {
                site: read.site,
                kind: kind(read.site),
                stream: read.stream,
                sources: read.sources.clone(),
                weights: series
                    .weights
                    .iter()
                    .map(|weight| bootstrap.mean(weight))
                    .collect(),
                sharpness: (read.weighting != Weighting::Signed)
                    .then(|| bootstrap.mean(&series.max)),
                floor: softmax.then_some(1.0 / n as f64),
                entropy: softmax.then(|| entropy(1.0)),
                normalised_entropy: choice.then(|| entropy((n as f64).ln())),
                effective_sources: softmax.then(|| {
                    bootstrap.estimate(|counts| weighted_mean(&series.entropy, counts).exp())
                }),
                distance: bootstrap.mean(&series.distance),
            }
        });
        let divergences = self
            .clean
            .divergences
            .iter()
            .map(|(site, series)| StreamDivergence {
                site: *site,
                kind: kind(*site),
                divergence: bootstrap.mean(series),
            });
        let gates = self
            .gates
            .iter()
            .zip(&self.clean.gates)
            .flat_map(|(gate, columns)| {
                columns
                    .iter()
                    .enumerate()
                    .map(move |(index, [mean, square])| GateReport {
                        site: gate.site,
                        kind: kind(gate.site),
                        gate: gate.name,
                        index,
                        mean: bootstrap.mean(mean),
                        deviation: bootstrap.estimate(|counts| {
                            let mean = weighted_mean(mean, counts);
                            (weighted_mean(square, counts) - mean * mean)
                                .max(0.0)
                                .sqrt()
                        }),
                    })
            });
        RoutingReport {
            loss: bootstrap.mean(&self.clean.losses),
            reads: reads.collect(),
            divergences: divergences.collect(),
            gates: gates.collect(),
            experts: self.expert_reports(seed),
        }
    }

    fn expert_reports(&self, seed: u64) -> Vec<ExpertReport> {
        let draws = Bootstrap::new(self.batches.len(), self.bootstrap.draws(), seed);
        let report = |(routed, batches): (&crate::nn::experts::Routed, &Vec<Vec<f64>>)| {
            // Counts and probabilities are sums and means over a batch; batches are equally large.
            let load = |counts: &[f64]| {
                let len = batches.first().map_or(0, Vec::len);
                let column = |at: usize| -> f64 {
                    let column: Vec<f64> = batches.iter().map(|batch| batch[at]).collect();
                    weighted_mean(&column, counts)
                };
                let sums: Vec<f64> = (0..len).map(column).collect();
                expert_load(routed.layer, &sums)
            };
            let experts = batches.first().map_or(0, |batch| batch.len() / 2);
            ExpertReport {
                layer: routed.layer,
                load: (0..experts)
                    .map(|expert| draws.estimate(|counts| load(counts).load[expert]))
                    .collect(),
                max_violation: draws.estimate(|counts| load(counts).max_violation),
                entropy: draws.estimate(|counts| load(counts).entropy),
            }
        };
        self.experts
            .iter()
            .zip(&self.clean.experts)
            .map(report)
            .collect()
    }
}
