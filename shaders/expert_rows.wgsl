// Between tokens and the rows of their experts (see expert_sort.wgsl): takes tokens to rows, and adds the rows up again.
//
//   gather:   xs[r] = x[token of r], 0 for padding
//   combine:  y[t] = sum over slots, in order, of gates[t, e] u[row of (t, slot)],  e = chosen[t, slot]
//
// x, y are [tokens, dim]; xs, u are [rows, dim]; gates are [tokens, experts]; chosen and slot_row are [tokens, top_k];
// row_pair is [rows], a pair is t top_k + slot.

#import shared/grid

const NONE: u32 = 0xffffffffu;

struct Params {
    tokens: u32,
    rows: u32,
    dim: u32,
    top_k: u32,
    experts: u32,
    add: u32,  // 1: the gradient is added to, 0: stored
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- gather: one invocation per element of xs ----

@group(0) @binding(1) var<storage, read> row_pair: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> xs: array<f32>;

@compute @workgroup_size(WG)
fn forward_gather(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    if row >= params.rows {
        return;
    }
    let pair = row_pair[row];
    var value = 0.0;
    if pair != NONE {
        value = x[pair / params.top_k * params.dim + item % params.dim];
    }
    xs[item] = value;
}

// ---- gather, backward: dx[t] (+)= sum over slots of dxs[row], one invocation per element of dx ----

@group(0) @binding(1) var<storage, read> slot_row: array<u32>;
@group(0) @binding(2) var<storage, read> dxs: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(WG)
fn backward_gather(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let token = item / params.dim;
    if token >= params.tokens {
        return;
    }
    var sum = select(0.0, dx[item], params.add != 0u);
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        sum += dxs[slot_row[token * params.top_k + slot] * params.dim + item % params.dim];
    }
    dx[item] = sum;
}

// ---- combine: one invocation per element of y ----

@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read> gates: array<f32>;
@group(0) @binding(4) var<storage, read> u: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn forward_combine(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let token = item / params.dim;
    if token >= params.tokens {
        return;
    }
    var sum = 0.0;
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        let pair = token * params.top_k + slot;
        let gate = gates[token * params.experts + chosen[pair]];
        sum += gate * u[slot_row[pair] * params.dim + item % params.dim];
    }
    y[item] = sum;
}

// ---- combine, backward: du[r] (+)= gate dy[t], 0 for padding, one invocation per element of du ----

@group(0) @binding(4) var<storage, read> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> du: array<f32>;

@compute @workgroup_size(WG)
fn backward_combine_rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    if row >= params.rows {
        return;
    }
    let pair = row_pair[row];
    var value = 0.0;
    if pair != NONE {
        let token = pair / params.top_k;
        let gate = gates[token * params.experts + chosen[pair]];
        value = gate * dy[token * params.dim + item % params.dim];
    }
    du[item] = select(0.0, du[item], params.add != 0u) + value;
}

// ---- combine, backward: dgates[t, e] (+)= <dy[t], u[row]>, 0 where e was not chosen, one invocation per token ----

@group(0) @binding(3) var<storage, read> u_in: array<f32>;
@group(0) @binding(5) var<storage, read_write> dgates: array<f32>;

@compute @workgroup_size(WG)
fn backward_combine_gates(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let token = flat_index(group, groups, lane);
    if token >= params.tokens {
        return;
    }
    let start = token * params.experts;
    if params.add == 0u {
        for (var e = 0u; e < params.experts; e += 1u) {
            dgates[start + e] = 0.0;
        }
    }
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        let pair = token * params.top_k + slot;
        let row = slot_row[pair] * params.dim;
        var along = 0.0;
        for (var i = 0u; i < params.dim; i += 1u) {
            along += dy[token * params.dim + i] * u_in[row + i];
        }
        dgates[start + chosen[pair]] += along;
    }
}
