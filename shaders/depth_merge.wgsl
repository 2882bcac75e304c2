// The end of a `depth_attention` whose sum was left open: one more source, the partial P, joins the mix o1 of the others.
//
//     share = sigmoid(z - lse)        mixed = (1 - share) * o1 + share * P
//
// z and r are the score of P, from `depth_attention::scores`; lse is the logarithm of the sum of exp(score) over the other
// sources. The result is the softmax over all of them. Gradient, with g = d mixed and dz = share * (1 - share) * <g, P - o1>:
//
//     do1 += (1 - share) * g        dlse += -dz        dP, du as in `depth_attention`, with weight share and this dz
//
// o1, mixed are [rows, dim], lse and share [rows], a [rows, count], weights [rows, count + 1], scores (z, r) [rows, 2].

#import shared/grid
#import shared/sigmoid

struct Params {
    rows: u32,
    dim: u32,
    count: u32,       // sources of the open sum
    partial: u32,     // where P starts in the history
    key_norm: u32,    // 0: r = 1
    add: u32,         // 1: add to the gradient, 0: store it
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward, weights: share, and all weights of the finished softmax ----
//
// One invocation per row.

@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read> lse: array<f32>;
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read_write> share_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> weights: array<f32>;

@compute @workgroup_size(WG)
fn share(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let last = sigmoid(scores[row * 2u] - lse[row]);
    share_out[row] = last;
    let first = row * (params.count + 1u);
    for (var i = 0u; i < params.count; i += 1u) {
        weights[first + i] = (1.0 - last) * a[row * params.count + i];
    }
    weights[first + params.count] = last;
}

// ---- forward, mix ----
//
// One invocation per element.

@group(0) @binding(1) var<storage, read> o1: array<f32>;
@group(0) @binding(2) var<storage, read> history: array<f32>;
@group(0) @binding(3) var<storage, read> share_in: array<f32>;
@group(0) @binding(4) var<storage, read_write> mixed: array<f32>;

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
    let last = share_in[row];
    mixed[item] = (1.0 - last) * o1[item] + last * history[params.partial + item];
}

// ---- backward, share: slopes = (dz * r, dz * r * r * z / dim), the second 0 without a norm of keys; dlse += -dz ----
//
// One invocation per row.

@group(0) @binding(4) var<storage, read> scores_in: array<f32>;
@group(0) @binding(5) var<storage, read> d_mixed: array<f32>;
@group(0) @binding(6) var<storage, read_write> slopes: array<f32>;
@group(0) @binding(7) var<storage, read_write> d_lse: array<f32>;

@compute @workgroup_size(WG)
fn backward_share(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    var along = 0.0;
    for (var item = row * params.dim; item < (row + 1u) * params.dim; item += 1u) {
        along += d_mixed[item] * (history[params.partial + item] - o1[item]);
    }
    let last = share_in[row];
    let dz = last * (1.0 - last) * along;
    let z = scores_in[row * 2u];
    let r = scores_in[row * 2u + 1u];
    slopes[row * 2u] = dz * r;
    slopes[row * 2u + 1u] = select(0.0, dz * r * r * z / f32(params.dim), params.key_norm != 0u);
    d_lse[row] = select(0.0, d_lse[row], params.add != 0u) - dz;
}

// ---- backward, o1 ----
//
// One invocation per element.

@group(0) @binding(1) var<storage, read> share_kept: array<f32>;
@group(0) @binding(2) var<storage, read> g: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_o1: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    if row >= params.rows {
        return;
    }
    d_o1[item] = select(0.0, d_o1[item], params.add != 0u) + (1.0 - share_kept[row]) * g[item];
}
