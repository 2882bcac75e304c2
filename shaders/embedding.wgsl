// y[row, i] = table[ids[row], i]
//
// ids is [rows], table is [vocab, dim], y is [rows, dim]. The host has checked the ids; larger ones read the last row.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    vocab: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> ids: array<u32>;

fn id(row: u32) -> u32 {
    return min(ids[row], params.vocab - 1u);
}

// ---- forward: one invocation per element of y ----

@group(0) @binding(2) var<storage, read> table: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    if row >= params.rows {
        return;
    }
    y[item] = table[id(row) * params.dim + item % params.dim];
}

// ---- backward: d_table[v] += sum over rows with ids[row] = v of dy[row] ----
//
// Rows with the same id form a chain in rising order. The first row of a chain adds up the whole chain, so every row of
// d_table has one owner and its sum a fixed order. Cost: what the links take, plus one pass over dy, whatever vocab is.
//
// next[row] is the next row with the same id, or `rows`; first[row] is 1 if no earlier row has it. One invocation per row.

@group(0) @binding(2) var<storage, read_write> next_out: array<u32>;
@group(0) @binding(3) var<storage, read_write> first_out: array<u32>;

@compute @workgroup_size(WG)
fn backward_links(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let own = id(row);
    var later = row + 1u;
    while later < params.rows && id(later) != own {
        later += 1u;
    }
    // `earlier` counts down from row to 0: row `earlier - 1` is looked at.
    var earlier = row;
    while earlier > 0u && id(earlier - 1u) != own {
        earlier -= 1u;
    }
    next_out[row] = later;
    first_out[row] = select(0u, 1u, earlier == 0u);
}

// d_table = 0, for a table whose gradient nothing has written yet. One invocation per element.

@group(0) @binding(1) var<storage, read_write> d_table_out: array<f32>;

@compute @workgroup_size(WG)
fn backward_clear(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if item < params.vocab * params.dim {
        d_table_out[item] = 0.0;
    }
}

// One invocation per element of dy; those whose row is first in its chain have work.

@group(0) @binding(2) var<storage, read> next: array<u32>;
@group(0) @binding(3) var<storage, read> first: array<u32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> d_table: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    let i = item % params.dim;
    if row >= params.rows {
        return;
    }
    if first[row] == 0u {
        return;
    }
    var sum = 0.0;
    for (var at = row; at < params.rows; at = next[at]) {
        sum += dy[at * params.dim + i];
    }
    d_table[id(row) * params.dim + i] += sum;
}
