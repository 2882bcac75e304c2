//! The engine's reports as tables.

use braid_engine::trainer::study::{
    DepthReport, Rescue, RoutesReport, RoutingReport, Similarity, SpreadReport,
};

use super::table::{Cell, Table};
use crate::names::record_label;
use crate::row;

/// A site as the map calls it: `3 mlp`.
fn site(site: u32, kind: &str) -> Cell {
    Cell::Text(record_label(site, kind))
}

/// Reads, their weights, the divergence of streams, gates and experts; what a model has not got is left out.
#[must_use]
pub fn routing(report: &RoutingReport) -> Vec<Table> {
    let columns = [
        "site",
        "stream",
        "sources",
        "sharpness+",
        "floor",
        "entropy / ln n+",
        "effective sources+",
        "distance+",
    ];
    let mut reads = Table::new(
        "routing",
        "reads: largest weight, entropy, sources between the heaviest and the newest",
        &columns,
    );
    let columns = ["site", "stream", "source", "weight+"];
    let mut weights = Table::new("weights", "mean weight of every source", &columns);
    weights.shown = 0;
    for read in &report.reads {
        reads.rows.push(row![
            site(read.site, read.kind),
            read.stream,
            read.sources.len(),
            read.sharpness,
            read.floor,
            read.normalised_entropy,
            read.effective_sources,
            read.distance,
        ]);
        for (source, weight) in read.sources.iter().zip(&read.weights) {
            weights.rows.push(row![
                site(read.site, read.kind),
                read.stream,
                source.clone(),
                *weight
            ]);
        }
    }
    let title = "how differently the streams read: Jensen-Shannon divergence, nats (at most 0.693)";
    let mut divergences = Table::new("divergence", title, &["site", "divergence+"]);
    for at in &report.divergences {
        divergences
            .rows
            .push(row![site(at.site, at.kind), at.divergence]);
    }
    let mut gates = Table::new(
        "gates",
        "gates: mean and standard deviation over tokens",
        &["site", "gate", "number", "mean+", "deviation+"],
    );
    gates.shown = 0;
    for gate in &report.gates {
        gates.rows.push(row![
            site(gate.site, gate.kind),
            gate.gate,
            gate.index,
            gate.mean,
            gate.deviation
        ]);
    }
    let mut experts = Table::new(
        "experts",
        "experts: max / mean - 1 of their shares, and entropy of the router, nats",
        &["layer", "violation+", "entropy+"],
    );
    let mut loads = Table::new(
        "expert-load",
        "share of each expert",
        &["layer", "expert", "share+"],
    );
    loads.shown = 0;
    for layer in &report.experts {
        experts
            .rows
            .push(row![layer.layer + 1, layer.max_violation, layer.entropy]);
        for (expert, share) in layer.load.iter().enumerate() {
            loads.rows.push(row![layer.layer + 1, expert, *share]);
        }
    }
    let mut tables = vec![reads, weights, divergences, gates, experts, loads];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Norms along depth.
#[must_use]
pub fn depth(report: &[DepthReport]) -> Vec<Table> {
    let title = "norms: of what a site reads, of what it gives, of the loss's gradient with respect to that";
    let mut table = Table::new("depth", title, &["site", "input+", "output+", "gradient+"]);
    for at in report {
        table.rows.push(row![
            site(at.site, at.kind),
            at.input,
            at.output,
            at.gradient
        ]);
    }
    vec![table]
}

/// Ranks, and how different the sources of a token are.
#[must_use]
pub fn states(report: &SpreadReport) -> Vec<Table> {
    let columns = [
        "state",
        "stream",
        "erank+",
        "erank2+",
        "participation+",
        "stable rank+",
    ];
    let title = format!("directions that states use, of {} tokens", report.tokens);
    let mut ranks = Table::new("ranks", title, &columns);
    for at in &report.ranks {
        ranks.rows.push(row![
            at.state.name.clone(),
            at.state.stream,
            at.erank,
            at.erank2,
            at.participation,
            at.stable
        ]);
    }
    let mut sources = Table::new(
        "sources",
        "effective rank of the states of a token",
        &["stream", "states", "effective rank+"],
    );
    let columns = [
        "stream",
        "state",
        "cosine with the one before+",
        "difference from stream 0+",
    ];
    let mut neighbours = Table::new("neighbours", "states and their neighbours", &columns);
    for stream in &report.sources {
        sources.rows.push(row![
            stream.stream,
            stream.names.len(),
            stream.effective_rank
        ]);
        for (at, name) in stream.names.iter().enumerate() {
            let cosine = at
                .checked_sub(1)
                .map(|before| stream.adjacent_cosine[before]);
            let difference = stream.difference.as_ref().map(|each| each[at]);
            neighbours
                .rows
                .push(row![stream.stream, name.clone(), cosine, difference]);
        }
    }
    vec![ranks, sources, neighbours]
}

/// Similarity along streams and across them, and of every pair.
#[must_use]
pub fn similarity(report: &Similarity) -> Vec<Table> {
    let title = format!(
        "similarity along a stream (unbiased linear CKA, {} minibatches of {} tokens)",
        report.minibatches, report.tokens
    );
    let mut within = Table::new(
        "similarity",
        title,
        &[
            "stream",
            "neighbours+",
            "a quarter of the depth apart or more+",
        ],
    );
    for stream in &report.within {
        within
            .rows
            .push(row![stream.stream, stream.adjacent, stream.far]);
    }
    let columns = [
        "streams",
        "same depth+",
        "other depths+",
        "a quarter apart or more+",
        "same - a quarter apart+",
    ];
    let mut across = Table::new(
        "cross-similarity",
        "similarity across streams, the embedding left out",
        &columns,
    );
    for at in &report.across {
        let streams = format!("{} and {}", at.first, at.second);
        across.rows.push(row![
            streams,
            at.matched,
            at.mismatched,
            at.far,
            at.difference
        ]);
    }
    let mut pairs = Table::new(
        "pairs",
        "similarity of every two states",
        &["stream", "state", "other stream", "other state", "cka+"],
    );
    pairs.shown = 0;
    for pair in &report.pairs {
        let (a, b) = (&report.states[pair.a], &report.states[pair.b]);
        pairs.rows.push(row![
            a.stream,
            a.name.clone(),
            b.stream,
            b.name.clone(),
            pair.cka
        ]);
    }
    let mut tables = vec![within, across, pairs];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Damage, rescue gain and necessity.
#[must_use]
pub fn rescue(report: &[Rescue]) -> Vec<Table> {
    let columns = [
        "from site",
        "replaced up to",
        "routing",
        "damage+",
        "loss change+",
        "asymmetry+",
        "redundancy+",
    ];
    let title =
        "states replaced by their mean: divergence of the predictions and rise of the loss, nats";
    let mut damage = Table::new("damage", title, &columns);
    let columns = [
        "from site",
        "routing",
        "stream",
        "rescue gain+",
        "necessity+",
    ];
    let title =
        "what a stream is worth: 1 is all, 0 is nothing (one stream alone has 1 by construction)";
    let mut streams = Table::new("rescue", title, &columns);
    for at in report {
        let routing = if at.frozen { "frozen" } else { "live" };
        damage.rows.push(row![
            at.site,
            at.newest.clone(),
            routing,
            at.damage,
            at.loss_change,
            at.asymmetry,
            at.redundancy
        ]);
        for (stream, (gain, necessity)) in at.gain.iter().zip(&at.necessity).enumerate() {
            streams
                .rows
                .push(row![at.site, routing, stream, *gain, *necessity]);
        }
    }
    let mut tables = vec![damage, streams];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Routes by what editing them does.
#[must_use]
pub fn routes(report: &RoutesReport) -> Vec<Table> {
    let title = match &report.weight_correlation {
        Some(correlation) => format!(
            "routes by the change of the held-out loss, nats (weight and change of a cut: rank correlation {:.2} [{:.2}, {:.2}])",
            correlation.value, correlation.low, correlation.high
        ),
        None => "routes by the change of the held-out loss, nats".to_owned(),
    };
    let columns = [
        "site",
        "stream",
        "edit",
        "source",
        "weight+",
        "loss change+",
    ];
    let mut table = Table::new("routes", title, &columns);
    table.shown = 12;
    for route in &report.routes {
        table.rows.push(row![
            site(route.site, route.kind),
            route.stream,
            route.edit,
            route.sources.join(" and "),
            route.weight,
            route.loss_change,
        ]);
    }
    if table.rows.is_empty() {
        Vec::new()
    } else {
        vec![table]
    }
}
