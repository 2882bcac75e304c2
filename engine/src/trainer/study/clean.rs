//! The clean run: everything that is published, reduced to a number a sequence as it arrives.

use super::{Study, Trainer};
use crate::analysis::distance::{jensen_shannon, top1_distance};
use crate::error::{Error, Result};
use crate::executor::Values;
use crate::models::{norms, plans};
use crate::nn::experts::Routed;
use crate::nn::residual::{Gate, Routing};

/// One number per sequence.
pub(super) type Series = Vec<f64>;

/// One read.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSeries {
    /// Of each source.
    pub(super) weights: Vec<Series>,
    pub(super) max: Series,
    pub(super) entropy: Series,
    pub(super) distance: Series,
}

/// One state.
#[derive(Clone, Debug, Default)]
pub(super) struct StateValues {
    /// Over all tokens of all sequences, `[dim]`.
    pub(super) mean: Vec<f64>,
    /// The kept tokens, `[sequences, kept, dim]`.
    pub(super) tokens: Vec<f32>,
}

/// What the clean run gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Clean {
    pub(super) losses: Series,
    pub(super) reads: Vec<ReadSeries>,
    /// Divergence of the weights of streams 0 and 1, by site.
    pub(super) divergences: Vec<(u32, Series)>,
    /// Mean and mean square of each column of each gate.
    pub(super) gates: Vec<Vec<[Series; 2]>>,
    /// Norms of what each site reads, the read-out last, and of what each sublayer gives.
    pub(super) inputs: Vec<Series>,
    pub(super) outputs: Vec<Series>,
    pub(super) states: Vec<StateValues>,
    /// Statistics of each batch, by layer.
    pub(super) experts: Vec<Vec<Vec<f64>>>,
}

impl Trainer {
    pub(super) async fn look_clean(&mut self, study: &Study) -> Result<Clean> {
        let names = names(study);
        let mut clean = Clean {
            reads: vec![ReadSeries::default(); study.routing.len()],
            gates: study
                .gates
                .iter()
                .map(|gate| vec![Default::default(); gate.columns.len()])
                .collect(),
            inputs: vec![Series::new(); study.sublayers as usize + 1],
            outputs: vec![Series::new(); study.sublayers as usize],
            states: vec![
                StateValues {
                    mean: vec![0.0; study.dim],
                    tokens: Vec::new(),
                };
                study.states.states.len()
            ],
            experts: vec![Vec::new(); study.experts.len()],
            ..Clean::default()
        };
        for index in 0..study.batches.len() {
            let values = self.run_study(study, index, &names).await?;
            let read = Read {
                names: &names,
                values: &values,
            };
            clean.add(study, study.counts[index], &read)?;
        }
        let rows = (study.sequences() * study.context) as f64;
        for state in &mut clean.states {
            state.mean.iter_mut().for_each(|mean| *mean /= rows);
        }
        Ok(clean)
    }
}

/// Names of all that the clean run reads, each once.
fn names(study: &Study) -> Vec<String> {
    let mut names = vec![plans::ROW_LOSSES.to_owned()];
    names.extend(study.routing.iter().map(Routing::tensor));
    names.extend(study.gates.iter().map(|gate| gate.tensor.clone()));
    names.extend(study.experts.iter().map(Routed::statistics));
    names.extend((0..=study.sublayers).map(|site| norms::rows_name(&norms::input_name(site))));
    names.extend((0..study.sublayers).map(|site| norms::rows_name(&norms::output_name(site))));
    names.extend(study.states.states.iter().map(|state| state.tensor.clone()));
    names.sort();
    names.dedup();
    names
}

/// What came back of one batch.
struct Read<'a> {
    names: &'a [String],
    values: &'a [Values],
}

impl Read<'_> {
    fn get(&self, name: &str) -> Result<Vec<f64>> {
        let at = self.names.iter().position(|known| known == name);
        at.map(|at| self.values[at].to_f64())
            .ok_or_else(|| Error::Op {
                op: "study",
                message: format!("`{name}` was not read"),
            })
    }
}

impl Clean {
    /// Add `count` sequences.
    fn add(&mut self, study: &Study, count: usize, read: &Read<'_>) -> Result<()> {
        let rows = count * study.context;
        let losses = read.get(plans::ROW_LOSSES)?;
        self.losses.extend(study.sequence_means(&losses, count));
        for (routing, series) in study.routing.iter().zip(&mut self.reads) {
            series.add(study, routing, count, &read.get(&routing.tensor())?);
        }
        self.add_divergences(study, count, read)?;
        for (gate, series) in study.gates.iter().zip(&mut self.gates) {
            add_gate(study, gate, count, &read.get(&gate.tensor)?, series);
        }
        for (layer, routed) in study.experts.iter().enumerate() {
            self.experts[layer].push(read.get(&routed.statistics())?);
        }
        let norm = |name: String| -> Result<Series> {
            let factors = read.get(&norms::rows_name(&name))?;
            let scale = (study.dim as f64).sqrt();
            let norms: Vec<f64> = factors
                .iter()
                .map(|&r| scale * norms::size_of_row(r))
                .collect();
            Ok(study.sequence_means(&norms, count))
        };
        for (site, series) in self.inputs.iter_mut().enumerate() {
            series.extend(norm(norms::input_name(site as u32))?);
        }
        for (site, series) in self.outputs.iter_mut().enumerate() {
            series.extend(norm(norms::output_name(site as u32))?);
        }
        for (state, into) in study.states.states.iter().zip(&mut self.states) {
            let values = read.get(&state.tensor)?;
            for (row, values) in values.chunks_exact(state.width).take(rows).enumerate() {
                let values = &values[state.columns.clone()];
                into.mean
                    .iter_mut()
                    .zip(values)
                    .for_each(|(sum, v)| *sum += v);
                if study.kept.contains(&(row % study.context)) {
                    // What the devices compute in is single precision.
                    into.tokens.extend(values.iter().map(|&v| v as f32));
                }
            }
        }
        Ok(())
    }

    fn add_divergences(&mut self, study: &Study, count: usize, read: &Read<'_>) -> Result<()> {
        let of = |site: u32, stream: u32| {
            let mut reads = study.routing.iter();
            reads.find(|read| (read.site, read.stream) == (site, stream))
        };
        for site in 0..=study.sublayers {
            let (Some(first), Some(second)) = (of(site, 0), of(site, 1)) else {
                continue;
            };
            let n = first.sources.len();
            if n < 2 {
                continue;
            }
            let (a, b) = (read.get(&first.tensor())?, read.get(&second.tensor())?);
            let rows = a.chunks_exact(n).zip(b.chunks_exact(n));
            let rows: Vec<f64> = rows.map(|(a, b)| jensen_shannon(a, b)).collect();
            let means = study.sequence_means(&rows, count);
            match self
                .divergences
                .iter_mut()
                .find(|(known, _)| *known == site)
            {
                Some((_, series)) => series.extend(means),
                None => self.divergences.push((site, means)),
            }
        }
        Ok(())
    }
}

impl ReadSeries {
    fn add(&mut self, study: &Study, routing: &Routing, count: usize, values: &[f64]) {
        let n = routing.sources.len();
        self.weights.resize(n, Series::new());
        let rows: Vec<&[f64]> = values.chunks_exact(n).collect();
        // Heads of a token lie one after the other; a shared row stands for every token.
        let each = match routing.shared {
            true => rows.len(),
            false => rows.len() / (study.batches[0].ids.len() / study.context),
        };
        let real = n - usize::from(routing.sources.last().is_some_and(|name| name == "null"));
        for sequence in 0..count {
            let start = if routing.shared { 0 } else { sequence * each };
            let rows = &rows[start..start + each];
            let mean = |of: &dyn Fn(&[f64]) -> f64| {
                rows.iter().map(|row| of(row)).sum::<f64>() / each as f64
            };
            for (source, series) in self.weights.iter_mut().enumerate() {
                series.push(mean(&|row| row[source]));
            }
            self.max.push(mean(&|row| {
                row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            }));
            self.entropy.push(mean(&|row| {
                let positive = row.iter().filter(|&&a| a > 0.0);
                -positive.map(|a| a * a.ln()).sum::<f64>()
            }));
            self.distance
                .push(mean(&|row| top1_distance(&row[..real]) as f64));
        }
    }
}

fn add_gate(study: &Study, gate: &Gate, count: usize, values: &[f64], series: &mut [[Series; 2]]) {
    let rows: Vec<&[f64]> = values.chunks_exact(gate.width).collect();
    for (series, column) in series.iter_mut().zip(gate.columns.clone()) {
        for sequence in rows.chunks_exact(study.context).take(count) {
            let mean = |power: i32| {
                let values = sequence.iter().map(|row| row[column].powi(power));
                values.sum::<f64>() / study.context as f64
            };
            series[0].push(mean(1));
            series[1].push(mean(2));
        }
    }
}
