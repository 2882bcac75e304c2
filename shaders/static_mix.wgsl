// mixed = sum over i of w[i] * x[i]        w a vector of `count` numbers that all tokens share
//
// x[i] are slots of a history [slots, rows, dim], each `len = rows * dim` elements; a slot may come twice. Gradient, with
// g = d mixed:
//
//     dx[i] += w[i] * g        dw[i] += sum over all elements of g * x[i]

#import shared/grid

struct Params {
    len: u32,
    count: u32,    // sources
    stride: u32,   // elements from one slot to the next
    parts: u32,    // partial sums of backward_weights, for each source
    slots: array<vec4<u32>, 16>,
    update: array<vec4<u32>, 16>,    // what to do with the gradient of each source: SKIP, STORE or ADD
}

const SKIP = 0u;
const ADD = 2u;

@group(0) @binding(0) var<uniform> params: Params;

fn start(i: u32) -> u32 {
    return params.slots[i / 4u][i % 4u] * params.stride;
}

// ---- forward ----
//
// One invocation per element.

@group(0) @binding(1) var<storage, read> history: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> mixed: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if item >= params.len {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < params.count; i += 1u) {
        sum += weights[i] * history[start(i) + item];
    }
    mixed[item] = sum;
}

// ---- backward, sources ----
//
// One invocation per element. It goes through the sources in order, and `update` is made for this order.

@group(0) @binding(1) var<storage, read> weights_in: array<f32>;
@group(0) @binding(2) var<storage, read> d_mixed: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_history: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if item >= params.len {
        return;
    }
    let g = d_mixed[item];
    for (var i = 0u; i < params.count; i += 1u) {
        let how = params.update[i / 4u][i % 4u];
        if how != SKIP {
            let at = start(i) + item;
            d_history[at] = select(0.0, d_history[at], how == ADD) + weights_in[i] * g;
        }
    }
}

// ---- backward, weights: partial[part, i] = sum of g x[i] over the elements part, part + parts, part + 2 parts, .. ----
//
// One invocation per element of partial, numbered so that neighbours read neighbours; `column_sum` adds the parts in order.

@group(0) @binding(3) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(WG)
fn backward_weights(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let i = item / params.parts;
    let part = item % params.parts;
    if i >= params.count {
        return;
    }
    let source = start(i);
    var sum = 0.0;
    for (var at = part; at < params.len; at += params.parts) {
        sum += d_mixed[at] * history[source + at];
    }
    partial[part * params.count + i] = sum;
}
