//! Any residual mechanism as one dense matrix: how much of each earlier output is in what each site reads
//! (`spec/residuals.md` 7.6).
//!
//! Column 0 is the embedding, column `s + 1` the output of sublayer `s`; row `k` is the input of sublayer `k`, the last row
//! the read-out. A mechanism is run once more on vectors of coefficients instead of states, token by token, with the weights
//! and gates that the model published; the rows are means over tokens. The ordinary residual stream is a triangle of ones.
//!
//! Not for `sep_v`, whose value maps are matrices, for `gated` delta, whose gate is a parameter that is not published, and for
//! depth attention with several heads.

use crate::models::config::{ModelConfig, ResidualConfig};
use crate::nn::residual::{DarRoute, DeltaMode, Gate, Granularity, ReadMode, Routing};

/// Coefficients of the embedding and of every sublayer's output.
type Row = Vec<f64>;

/// The published tensors of a batch.
pub struct Published<'a> {
    /// What the weights belong to.
    pub routing: &'a [Routing],
    /// What the gates belong to.
    pub gates: &'a [Gate],
    /// Finds a tensor by name, `[rows, columns]`, row-major.
    pub find: &'a dyn Fn(&str) -> Option<Vec<f64>>,
    /// Tokens to average over, from the first row on.
    pub tokens: usize,
}

impl std::fmt::Debug for Published<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published")
            .field("routing", &self.routing)
            .field("gates", &self.gates)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// The weights of one read, or the values of one gate: some columns of a table.
struct Table {
    site: u32,
    /// Stream of a read.
    stream: u32,
    /// Name of a gate.
    name: &'static str,
    columns: std::ops::Range<usize>,
    width: usize,
    values: Vec<f64>,
}

impl Table {
    fn row(&self, token: usize) -> Option<&[f64]> {
        // One row only: all tokens share it.
        let shared = self.values.len() == self.width;
        let start = if shared { 0 } else { token * self.width };
        self.values
            .get(start + self.columns.start..start + self.columns.end)
    }
}

/// Published tensors, read once.
struct Tables {
    sublayers: usize,
    weights: Vec<Table>,
    gates: Vec<Table>,
}

impl Tables {
    fn weights(&self, token: usize, site: usize, stream: u32) -> Option<&[f64]> {
        let read = |table: &&Table| table.site as usize == site && table.stream == stream;
        self.weights.iter().find(read)?.row(token)
    }

    fn gate(&self, token: usize, site: usize, name: &str) -> Option<&[f64]> {
        let gate = |table: &&Table| table.site as usize == site && table.name == name;
        self.gates.iter().find(gate)?.row(token)
    }
}

fn scaled_add(into: &mut Row, from: &Row, factor: f64) {
    into.iter_mut()
        .zip(from)
        .for_each(|(into, from)| *into += factor * from);
}

fn mix(len: usize, rows: &[Row], weights: &[f64]) -> Row {
    let mut sum = vec![0.0; len];
    for (row, weight) in rows.iter().zip(weights) {
        scaled_add(&mut sum, row, *weight);
    }
    sum
}

/// The vector of one source: the embedding (0) or the output of sublayer `source - 1`.
fn unit(len: usize, source: usize) -> Row {
    let mut row = vec![0.0; len];
    row[source] = 1.0;
    row
}

/// The matrix; `None` where a mechanism cannot be written as one, or something was not published.
#[must_use]
pub fn unfold(model: &ModelConfig, published: &Published<'_>) -> Option<Vec<Vec<f64>>> {
    let sublayers = model.sublayers() as usize;
    let mut tables = Tables {
        sublayers,
        weights: Vec::new(),
        gates: Vec::new(),
    };
    for read in published.routing {
        tables.weights.push(Table {
            site: read.site,
            stream: read.stream,
            name: "",
            columns: 0..read.sources.len(),
            width: read.sources.len(),
            values: (published.find)(&read.tensor())?,
        });
    }
    for gate in published.gates {
        tables.gates.push(Table {
            site: gate.site,
            stream: 0,
            name: gate.name,
            columns: gate.columns.clone(),
            width: gate.width,
            values: (published.find)(&gate.tensor)?,
        });
    }
    let tokens = published.tokens.max(1);
    let mut sum = vec![vec![0.0; sublayers + 1]; sublayers + 1];
    for token in 0..tokens {
        let rows = one_token(&model.residual, &tables, token)?;
        for (into, row) in sum.iter_mut().zip(&rows) {
            scaled_add(into, row, 1.0 / tokens as f64);
        }
    }
    // What does not exist yet is not zero, but absent.
    for (site, row) in sum.iter_mut().enumerate() {
        row.truncate(site + 1);
    }
    Some(sum)
}

fn one_token(residual: &ResidualConfig, tables: &Tables, token: usize) -> Option<Vec<Row>> {
    match *residual {
        ResidualConfig::Standard {} => Some(standard(tables)),
        // With several heads, a source has a weight for each group of channels.
        ResidualConfig::AttnRes(options) if options.depth_heads > 1 => None,
        ResidualConfig::AttnRes(options) => {
            let (block, window) = (options.sublayers_per_block, options.window);
            attn_res(tables, token, block as usize, window as usize)
        }
        ResidualConfig::Delta {
            granularity,
            sublayers_per_block,
            mode,
            ..
        } => {
            let block = match granularity {
                Granularity::Sublayer => 1,
                Granularity::Block => sublayers_per_block as usize,
            };
            delta(tables, token, block, mode)
        }
        ResidualConfig::Dar {
            layers_per_block,
            route,
            ..
        } => dar(tables, token, 2 * layers_per_block as usize, route),
        ResidualConfig::Mhc2Matched {} => mhc2_matched(tables, token),
        ResidualConfig::HyperConnections { streams, .. } => {
            streams_of(tables, token, streams as usize, false)
        }
        ResidualConfig::Mhc { streams, .. } => streams_of(tables, token, streams as usize, true),
        ResidualConfig::Cumulative { read } => cumulative(tables, token, read),
        ResidualConfig::DenseFormer { dilation, .. } => {
            whole_layers(tables, token, dilation as usize)
        }
        ResidualConfig::Transparent { .. } => whole_layers(tables, token, 1),
        ResidualConfig::SepV { .. } => None,
    }
}

fn standard(tables: &Tables) -> Vec<Row> {
    let len = tables.sublayers + 1;
    (0..len)
        .map(|site| (0..len).map(|source| f64::from(source <= site)).collect())
        .collect()
}

/// `window`: the newest so many sources and the embedding; 0: all.
fn attn_res(tables: &Tables, token: usize, block: usize, window: usize) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut entries = vec![unit(len, 0)];
    let mut partial: Option<Row> = None;
    let mut rows = Vec::new();
    for site in 0..len {
        let mut sources: Vec<Row> = entries.iter().chain(&partial).cloned().collect();
        if window > 0 {
            let old = sources.len().saturating_sub(window);
            sources.drain(1..old.max(1));
        }
        let weights = tables.weights(token, site, 0)?;
        rows.push(mix(len, &sources, weights));
        if site < tables.sublayers {
            let partial_row = partial.get_or_insert_with(|| vec![0.0; len]);
            partial_row[site + 1] += 1.0;
            if (site + 1).is_multiple_of(block) {
                entries.extend(partial.take());
            }
        }
    }
    Some(rows)
}

fn delta(tables: &Tables, token: usize, block: usize, mode: DeltaMode) -> Option<Vec<Row>> {
    if mode == DeltaMode::Gated {
        return None;
    }
    let len = tables.sublayers + 1;
    let mut stream = unit(len, 0);
    let mut sources: Vec<Row> = Vec::new();
    let mut partial = vec![0.0; len];
    let mut rows = Vec::new();
    for site in 0..tables.sublayers {
        let mut row = stream.clone();
        if !sources.is_empty() {
            let weights = tables.weights(token, site, 0)?;
            let shift = match mode {
                DeltaMode::Centered => 1.0 / sources.len() as f64,
                _ => 0.0,
            };
            // The null source, last if there is one, has the value zero.
            for (source, weight) in sources.iter().zip(weights) {
                scaled_add(&mut row, source, weight - shift);
            }
        }
        rows.push(row);
        if site == 0 {
            sources.push(unit(len, 0));
        }
        (stream[site + 1], partial[site + 1]) = (1.0, 1.0);
        if (site + 1).is_multiple_of(block) {
            sources.push(std::mem::replace(&mut partial, vec![0.0; len]));
        }
    }
    rows.push(stream);
    Some(rows)
}

/// `P^j <- rho P^j + (1 - rho) P^(1-j) + beta^j y`, or `beta^j y` at the start of a block.
fn transport(
    old: Option<&[Row; 2]>,
    rho: f64,
    beta: &[f64],
    output: usize,
    len: usize,
) -> [Row; 2] {
    [0, 1].map(|stream| {
        let mut row = vec![0.0; len];
        if let Some(old) = old {
            scaled_add(&mut row, &old[stream], rho);
            scaled_add(&mut row, &old[1 - stream], 1.0 - rho);
        }
        row[output] += beta[stream];
        row
    })
}

fn dar(tables: &Tables, token: usize, block: usize, route: DarRoute) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut entries = [vec![unit(len, 0)], vec![unit(len, 0)]];
    let mut partial: Option<[Row; 2]> = None;
    let mut rows = Vec::new();
    for site in 0..len {
        let alpha = tables.gate(token, site, "alpha")?;
        let mut x = vec![0.0; len];
        for (stream, alpha) in alpha.iter().enumerate() {
            let values = route.value_stream(stream);
            let weights = tables.weights(token, site, stream as u32)?;
            let mut sources = entries[values].clone();
            // Without partials as sources, there is no weight for it and `mix` leaves it out.
            sources.extend(partial.as_ref().map(|partial| partial[values].clone()));
            scaled_add(&mut x, &mix(len, &sources, weights), *alpha);
        }
        rows.push(x);
        if site < tables.sublayers {
            let (rho, beta) = (
                tables.gate(token, site, "rho")?,
                tables.gate(token, site, "beta")?,
            );
            let new = transport(partial.as_ref(), rho[0], beta, site + 1, len);
            if (site + 1).is_multiple_of(block) {
                let [first, second] = new;
                entries[0].push(first);
                entries[1].push(second);
                partial = None;
            } else {
                partial = Some(new);
            }
        }
    }
    Some(rows)
}

fn mhc2_matched(tables: &Tables, token: usize) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut streams = [unit(len, 0), unit(len, 0)];
    let mut rows = Vec::new();
    for site in 0..tables.sublayers {
        rows.push(mix(len, &streams, tables.gate(token, site, "alpha")?));
        let (rho, beta) = (
            tables.gate(token, site, "rho")?,
            tables.gate(token, site, "beta")?,
        );
        streams = transport(Some(&streams), rho[0], beta, site + 1, len);
    }
    rows.push(mix(len, &streams, &[0.5, 0.5]));
    Some(rows)
}

/// Hyper-connections (`mix` from row to column, the read-out a sum) and mHC (`mix` to row from column, a mean).
fn streams_of(tables: &Tables, token: usize, n: usize, mhc: bool) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut streams = vec![unit(len, 0); n];
    let mut rows = Vec::new();
    for site in 0..tables.sublayers {
        rows.push(mix(len, &streams, tables.gate(token, site, "read")?));
        let (write, matrix) = (
            tables.gate(token, site, "write")?,
            tables.gate(token, site, "mix")?,
        );
        streams = (0..n)
            .map(|to| {
                let mut row = vec![0.0; len];
                for (from, old) in streams.iter().enumerate() {
                    let weight = if mhc {
                        matrix[to * n + from]
                    } else {
                        matrix[from * n + to]
                    };
                    scaled_add(&mut row, old, weight);
                }
                row[site + 1] += write[to];
                row
            })
            .collect();
    }
    let weight = if mhc { 1.0 / n as f64 } else { 1.0 };
    rows.push(mix(len, &streams, &vec![weight; n]));
    Some(rows)
}

/// A choice among running states, instead of the newest or beside it.
fn cumulative(tables: &Tables, token: usize, read: ReadMode) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut states = vec![unit(len, 0)];
    let mut rows = Vec::new();
    for site in 0..tables.sublayers {
        let state = states[site].clone();
        rows.push(match (read, site) {
            (ReadMode::Add, 0) => state.clone(),
            (ReadMode::Replace, _) => mix(len, &states, tables.weights(token, site, 0)?),
            (ReadMode::Add, _) => {
                let mut row = mix(len, &states, tables.weights(token, site, 0)?);
                scaled_add(&mut row, &state, 1.0);
                row
            }
        });
        let mut next = state;
        next[site + 1] += 1.0;
        states.push(next);
    }
    rows.extend(states.pop());
    Some(rows)
}

/// DenseFormer and Transparent Attention: where a mix was published, the stream becomes a mix of every `dilation`th layer
/// output, the newest included.
fn whole_layers(tables: &Tables, token: usize, dilation: usize) -> Option<Vec<Row>> {
    let len = tables.sublayers + 1;
    let mut stream = unit(len, 0);
    let mut outputs = vec![stream.clone()];
    let mut rows = Vec::new();
    for site in 0..len {
        if let Some(weights) = tables.weights(token, site, 0) {
            let newest = outputs.len() - 1;
            let sources: Vec<Row> = outputs
                .iter()
                .enumerate()
                .filter(|(layer, _)| (newest - layer).is_multiple_of(dilation))
                .map(|(_, output)| output.clone())
                .collect();
            stream = mix(len, &sources, weights);
        }
        rows.push(stream.clone());
        if site < tables.sublayers {
            stream[site + 1] += 1.0;
            if site % 2 == 1 {
                outputs.push(stream.clone());
            }
        }
    }
    Some(rows)
}
