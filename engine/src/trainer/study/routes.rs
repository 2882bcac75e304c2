//! What routes are worth: every source of every read cut, and every read evened out, pinned and swapped, ranked by what that
//! does to the held-out loss, beside the weight that the route had. Weight is not importance.

use serde::Serialize;

use super::{Study, Trainer};
use crate::analysis::bootstrap::weighted_mean;
use crate::analysis::{Estimate, site_kind};
use crate::error::Result;
use crate::models::plans;
use crate::ops::edit_weights::RouteEdit;

/// One edit.
#[derive(Clone, Debug, Serialize)]
pub struct RouteReport {
    /// The site whose read is edited; `L` is the read-out.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// Which stream.
    pub stream: u32,
    /// `cut`, `pin`, `swap` or `uniform`.
    pub edit: &'static str,
    /// The source that was cut or pinned, or the two that were swapped.
    pub sources: Vec<String>,
    /// Mean weight of the source that was cut or pinned.
    pub weight: Option<Estimate>,
    /// Change of the held-out loss, nats.
    pub loss_change: Estimate,
}

/// All edits, the largest change first.
#[derive(Clone, Debug, Serialize)]
pub struct RoutesReport {
    /// Edit by edit.
    pub routes: Vec<RouteReport>,
    /// Rank correlation (Spearman) of weight and change, over everything that was cut; absent with fewer than three cuts.
    pub weight_correlation: Option<Estimate>,
}

/// An edit of read `read`.
struct Ask {
    read: usize,
    name: &'static str,
    edit: RouteEdit,
    columns: Vec<usize>,
}

/// The edits of one read: each source cut, all even, the heaviest pinned, the two heaviest swapped.
fn asks(read: usize, weights: &[f64]) -> Vec<Ask> {
    let n = weights.len();
    if n < 2 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let ask = |name, edit, columns: &[usize]| Ask {
        read,
        name,
        edit,
        columns: columns.to_vec(),
    };
    let mut all: Vec<Ask> = (0..n)
        .map(|c| ask("cut", RouteEdit::Cut(c), &[c]))
        .collect();
    all.push(ask("pin", RouteEdit::Pin(order[0]), &order[..1]));
    all.push(ask(
        "swap",
        RouteEdit::Swap(order[0], order[1]),
        &order[..2],
    ));
    all.push(ask("uniform", RouteEdit::Uniform, &[]));
    all
}

impl Trainer {
    /// The change of the held-out loss of every edit.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn routes(&mut self, study: &Study) -> Result<RoutesReport> {
        let whole = vec![1.0; study.sequences()];
        let asks: Vec<Ask> = (0..study.routing.len())
            .flat_map(|read| {
                let weights = study.clean.reads[read].weights.iter();
                asks(
                    read,
                    &weights
                        .map(|series| weighted_mean(series, &whole))
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        let mut changes = vec![Vec::new(); asks.len()];
        let names = [plans::ROW_LOSSES.to_owned()];
        for (ask, changes) in asks.iter().zip(&mut changes) {
            self.edit(study, ask.read, &[ask.edit])?;
            for (index, &count) in study.counts.iter().enumerate() {
                let read = self.run_study(study, index, &names).await?;
                let losses = study.sequence_means(&read[0].to_f64(), count);
                let clean = &study.clean.losses[changes.len()..];
                changes.extend(
                    losses
                        .iter()
                        .zip(clean)
                        .map(|(edited, clean)| edited - clean)
                        .collect::<Vec<f64>>(),
                );
            }
            self.edit(study, ask.read, &[])?;
        }
        Ok(report(study, &asks, &changes))
    }
}

fn report(study: &Study, asks: &[Ask], changes: &[Vec<f64>]) -> RoutesReport {
    let bootstrap = &study.bootstrap;
    let weight = |ask: &Ask| match ask.columns[..] {
        [column] => Some(&study.clean.reads[ask.read].weights[column]),
        _ => None,
    };
    let route = |(ask, changes): (&Ask, &Vec<f64>)| {
        let read = &study.routing[ask.read];
        RouteReport {
            site: read.site,
            kind: site_kind(read.site, study.sublayers),
            stream: read.stream,
            edit: ask.name,
            sources: ask
                .columns
                .iter()
                .map(|&column| read.sources[column].clone())
                .collect(),
            weight: weight(ask).map(|series| bootstrap.mean(series)),
            loss_change: bootstrap.mean(changes),
        }
    };
    let mut routes: Vec<RouteReport> = asks.iter().zip(changes).map(route).collect();
    routes.sort_by(|a, b| b.loss_change.value.total_cmp(&a.loss_change.value));
    let cuts: Vec<_> = asks
        .iter()
        .zip(changes)
        .filter(|(ask, _)| ask.name == "cut")
        .filter_map(|(ask, changes)| Some((weight(ask)?, changes)))
        .collect();
    let correlation = |counts: &[f64]| {
        let of = |pick: &dyn Fn(usize) -> f64| (0..cuts.len()).map(pick).collect::<Vec<f64>>();
        let weights = of(&|at| weighted_mean(cuts[at].0, counts));
        spearman(&weights, &of(&|at| weighted_mean(cuts[at].1, counts)))
    };
    RoutesReport {
        routes,
        weight_correlation: (cuts.len() > 2).then(|| bootstrap.estimate(correlation)),
    }
}

/// Rank correlation; equal numbers share the mean of their ranks.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (midranks(a), midranks(b));
    let centre = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter()
            .zip(y)
            .map(|(x, y)| (x - centre) * (y - centre))
            .sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

fn midranks(values: &[f64]) -> Vec<f64> {
    let rank = |&value: &f64| {
        let below = values.iter().filter(|&&other| other < value).count();
        let equal = values.iter().filter(|&&other| other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
