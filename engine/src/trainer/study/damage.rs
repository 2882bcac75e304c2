//! What states are worth: the damage of replacing those of some streams by their mean, and what the streams that stay clean
//! rescue (section 8 of the routing specification, section 7.2 of the notes on residual mechanisms).
//!
//! ```text
//! D(S)  = mean over tokens of KL(clean prediction || prediction with the states of the streams S replaced)
//! G_j   = 1 - D(all but j) / D(all)       rescue gain: 1 if keeping j alone restores everything
//! M_j   = D({j}) / D(all)                 necessity
//! ```
//!
//! Replaced are, at a boundary and from there on, the history's entries but the embedding, or the running stream. Routing is
//! live, or frozen: depth weights and gates are those of the clean run.

use serde::Serialize;

use super::{Study, Trainer};
use crate::analysis::Estimate;
use crate::analysis::bootstrap::weighted_mean;
use crate::error::{Error, Result};
use crate::executor::Data;
use crate::models::plans;
use crate::nn::residual::Routing;
use crate::nn::residual::states::{frozen_gates_name, substitute_name};
use crate::tape::frozen_name;

/// What is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Number of the boundary.
    pub boundary: usize,
    /// The streams whose states are replaced; none: nothing is.
    pub streams: Vec<u32>,
    /// Whether depth weights and gates stay those of the clean run.
    pub frozen: bool,
}

/// What that did, a number per sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Damage {
    /// Mean divergence of the predictions from the clean ones, nats.
    pub divergence: Vec<f64>,
    /// Held-out loss, nats.
    pub loss: Vec<f64>,
}

/// One boundary, with frozen or live routing.
#[derive(Clone, Debug, Serialize)]
pub struct Rescue {
    /// The site that first reads what was replaced.
    pub site: u32,
    /// The newest state that was replaced.
    pub newest: String,
    /// Whether depth weights and gates were those of the clean run.
    pub frozen: bool,
    /// `D(all)`, nats.
    pub damage: Estimate,
    /// Rise of the held-out loss with all streams replaced, nats.
    pub loss_change: Estimate,
    /// `G_j` of each stream; 1 by construction with one stream.
    pub gain: Vec<Estimate>,
    /// `M_j` of each stream.
    pub necessity: Vec<Estimate>,
    /// `G_0 - G_1`, or the largest gain minus the smallest with more streams.
    pub asymmetry: Option<Estimate>,
    /// `G_0 + G_1 - 1`: above 0 the two streams hold the same, below 0 they are needed together.
    pub redundancy: Option<Estimate>,
}

impl Study {
    /// Sites of the boundaries at which states can be replaced.
    #[must_use]
    pub fn boundaries(&self) -> Vec<u32> {
        self.states
            .boundaries
            .iter()
            .map(|boundary| boundary.site)
            .collect()
    }

    /// Numbers of the boundaries that [`Trainer::rescue`] asks about: all, or the ends of layers where every sublayer is one.
    fn asked(&self) -> Vec<usize> {
        let boundaries = &self.states.boundaries;
        let every = boundaries.len() + 1 >= self.sublayers as usize;
        let asked = |&number: &usize| !every || boundaries[number].site.is_multiple_of(2);
        (0..boundaries.len()).filter(asked).collect()
    }
}

impl Trainer {
    /// The damage of each corruption.
    ///
    /// # Errors
    /// If a boundary or stream does not exist, or the device fails.
    pub async fn damage(
        &mut self,
        study: &Study,
        corruptions: &[Corruption],
    ) -> Result<Vec<Damage>> {
        for corruption in corruptions {
            let known = corruption.boundary < study.states.boundaries.len();
            if !known
                || corruption
                    .streams
                    .iter()
                    .any(|&stream| stream >= study.streams())
            {
                let message = format!(
                    "boundary {} with streams {:?}: the model has {} boundaries and {} streams, both counted from 0",
                    corruption.boundary,
                    corruption.streams,
                    study.states.boundaries.len(),
                    study.streams()
                );
                return Err(Error::Op {
                    op: "damage",
                    message,
                });
            }
        }
        for (number, state) in study.clean.states.iter().enumerate() {
            let name = substitute_name(number);
            if study.plan.places.contains_key(&name) {
                self.runtime
                    .write_input(&study.plan, &name, Data::F64(&state.mean))?;
            }
        }
        let mut found = vec![Damage::default(); corruptions.len()];
        for (index, &count) in study.counts.iter().enumerate() {
            self.keep_clean(study, index).await?;
            for (corruption, damage) in corruptions.iter().zip(&mut found) {
                let site = study.states.boundaries[corruption.boundary].site;
                self.freeze(study, corruption.frozen)?;
                for &stream in &corruption.streams {
                    self.corrupt(study, site, stream, true)?;
                }
                let names = [plans::DIVERGENCE, plans::ROW_LOSSES].map(str::to_owned);
                let read = self.run_study(study, index, &names).await?;
                for &stream in &corruption.streams {
                    self.corrupt(study, site, stream, false)?;
                }
                damage
                    .divergence
                    .extend(study.sequence_means(&read[0].to_f64(), count));
                damage
                    .loss
                    .extend(study.sequence_means(&read[1].to_f64(), count));
            }
            self.freeze(study, false)?;
        }
        Ok(found)
    }

    /// Run a batch clean, and hand its predictions, weights and gates back as what to compare with and to freeze.
    async fn keep_clean(&mut self, study: &Study, index: usize) -> Result<()> {
        let mut kept = vec![(plans::LOGITS.to_owned(), plans::CLEAN_LOGITS.to_owned())];
        let reads = study.routing.iter().enumerate();
        kept.extend(reads.map(|(number, read)| (Routing::tensor(read), frozen_name(number))));
        for gate in &study.gates {
            let pair = (gate.tensor.clone(), frozen_gates_name(&gate.tensor));
            if !kept.contains(&pair) {
                kept.push(pair);
            }
        }
        // Weights that all tokens share need no freezing.
        kept.retain(|(_, into)| study.plan.places.contains_key(into));
        let names: Vec<String> = kept.iter().map(|(name, _)| name.clone()).collect();
        let values = self.run_study(study, index, &names).await?;
        for ((_, into), values) in kept.iter().zip(values) {
            let values = values.to_f64();
            self.runtime
                .write_input(&study.plan, into, Data::F64(&values))?;
        }
        Ok(())
    }

    /// Damage, gains and necessities at the boundaries, with frozen and with live routing.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn rescue(&mut self, study: &Study) -> Result<Vec<Rescue>> {
        let n = study.streams();
        let all: Vec<u32> = (0..n).collect();
        // All; each alone; all but each. With two streams, all but one is the other alone.
        let mut sets = vec![all.clone()];
        if n > 1 {
            sets.extend(all.iter().map(|&stream| vec![stream]));
        }
        if n > 2 {
            let without = |&stream: &u32| {
                all.iter()
                    .copied()
                    .filter(|&other| other != stream)
                    .collect()
            };
            sets.extend(all.iter().map(without));
        }
        let mut asked = Vec::new();
        for boundary in study.asked() {
            for frozen in [true, false] {
                asked.push((boundary, frozen));
            }
        }
        let corruptions: Vec<Corruption> = asked
            .iter()
            .flat_map(|&(boundary, frozen)| {
                sets.iter().map(move |streams| Corruption {
                    boundary,
                    streams: streams.clone(),
                    frozen,
                })
            })
            .collect();
        let damages = self.damage(study, &corruptions).await?;
        let each = asked.iter().zip(damages.chunks_exact(sets.len()));
        Ok(each
            .map(|(&(boundary, frozen), damages)| {
                report(study, boundary, frozen, n as usize, damages)
            })
            .collect())
    }
}

/// The figures of one boundary from the damages of the sets in the order of [`Trainer::rescue`].
fn report(study: &Study, boundary: usize, frozen: bool, n: usize, damages: &[Damage]) -> Rescue {
    let boundary = &study.states.boundaries[boundary];
    let bootstrap = &study.bootstrap;
    let mean = |set: usize, counts: &[f64]| weighted_mean(&damages[set].divergence, counts);
    let gain = |stream: usize, counts: &[f64]| match n {
        1 => 1.0,
        // The set without stream j is the other one.
        2 => 1.0 - mean(2 - stream, counts) / mean(0, counts),
        n => 1.0 - mean(1 + n + stream, counts) / mean(0, counts),
    };
    let necessity = |stream: usize, counts: &[f64]| match n {
        1 => 1.0,
        _ => mean(1 + stream, counts) / mean(0, counts),
    };
    let gains =
        |counts: &[f64]| -> Vec<f64> { (0..n).map(|stream| gain(stream, counts)).collect() };
    let spread = |counts: &[f64]| {
        let gains = gains(counts);
        match gains[..] {
            [first, second] => first - second,
            _ => {
                let largest = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                largest - gains.iter().copied().fold(f64::INFINITY, f64::min)
            }
        }
    };
    let loss_change: Vec<f64> = damages[0]
        .loss
        .iter()
        .zip(&study.clean.losses)
        .map(|(a, b)| a - b)
        .collect();
    let newest = boundary
        .states
        .last()
        .map(|&state| study.states.states[state].name.clone());
    Rescue {
        site: boundary.site,
        newest: newest.unwrap_or_default(),
        frozen,
        damage: bootstrap.mean(&damages[0].divergence),
        loss_change: bootstrap.mean(&loss_change),
        gain: (0..n)
            .map(|stream| bootstrap.estimate(|counts| gain(stream, counts)))
            .collect(),
        necessity: (0..n)
            .map(|stream| bootstrap.estimate(|counts| necessity(stream, counts)))
            .collect(),
        asymmetry: (n > 1).then(|| bootstrap.estimate(spread)),
        redundancy: (n == 2)
            .then(|| bootstrap.estimate(|counts| gains(counts).iter().sum::<f64>() - 1.0)),
    }
}
