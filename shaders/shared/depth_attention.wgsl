// The body of `depth_attention` and `depth_attention_vec4`, which differ in the type `Value` only: one channel, or four.
// Each defines Value, CHANNELS (in a Value) and inner (the inner product of two Values). The maths is in
// `depth_attention.wgsl`.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    count: u32,        // sources
    columns: u32,      // of weights: count, and one more for the null source
    stride: u32,       // channels from one slot to the next
    query_row: u32,    // row of the query parameter
    query_rows: u32,
    centered: u32,
    null_source: u32,
    chunk: u32,        // rows per block of backward_query
    add_query: u32,    // 1: add to the gradient of the query, 0: store it
    add_gain: u32,
    eps: f32,
    null_logit: f32,
    key_slots: array<vec4<u32>, 16>,
    value_slots: array<vec4<u32>, 16>,
    key_update: array<vec4<u32>, 16>,    // what to do with the gradient of each key: SKIP, STORE or ADD
    value_update: array<vec4<u32>, 16>,
}

const SKIP = 0u;
const STORE = 1u;
const ADD = 2u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> history: array<Value>;

fn width() -> u32 {
    return params.dim / CHANNELS;
}

fn key_slot(i: u32) -> u32 {
    return params.key_slots[i / 4u][i % 4u];
}

fn value_slot(i: u32) -> u32 {
    return params.value_slots[i / 4u][i % 4u];
}

// Where a row of a slot starts.
fn start(slot: u32, row: u32) -> u32 {
    return slot * (params.stride / CHANNELS) + row * width();
}

// ---- forward, logits: scores[row, i] = (z, r) ----
//
// One invocation per row and source.

@group(0) @binding(2) var<storage, read> query: array<Value>;
@group(0) @binding(3) var<storage, read> gain: array<Value>;
@group(0) @binding(4) var<storage, read_write> scores_out: array<f32>;

@compute @workgroup_size(WG)
fn scores(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.count;
    if row >= params.rows {
        return;
    }
    let key = start(key_slot(item % params.count), row);
    let asked = params.query_row * width();
    var squares = 0.0;
    var along = 0.0;
    for (var c = 0u; c < width(); c += 1u) {
        let k = history[key + c];
        squares += inner(k, k);
        along += inner(k, query[asked + c] * gain[c]);
    }
    let r = inverseSqrt(squares / f32(params.dim) + params.eps);
    scores_out[item * 2u] = along * r;
    scores_out[item * 2u + 1u] = r;
}

// ---- forward, weights ----
//
// One invocation per row.

@group(0) @binding(1) var<storage, read> scores_in: array<f32>;
@group(0) @binding(2) var<storage, read_write> weights_out: array<f32>;

@compute @workgroup_size(WG)
fn softmax(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let z = row * params.count * 2u;
    let a = row * params.columns;
    var top = select(-1e30, params.null_logit, params.null_source != 0u);
    for (var i = 0u; i < params.count; i += 1u) {
        top = max(top, scores_in[z + i * 2u]);
    }
    var total = 0.0;
    for (var i = 0u; i < params.count; i += 1u) {
        let e = exp(max(scores_in[z + i * 2u] - top, -80.0));
        weights_out[a + i] = e;
        total += e;
    }
    if params.null_source != 0u {
        let e = exp(max(params.null_logit - top, -80.0));
        weights_out[a + params.count] = e;
        total += e;
    }
    for (var i = 0u; i < params.columns; i += 1u) {
        weights_out[a + i] /= total;
    }
}

// What is taken from every weight when values are mixed.
fn mean_weight() -> f32 {
    return select(0.0, 1.0 / f32(params.count), params.centered != 0u);
}

// ---- forward, mix ----
//
// One invocation per row and Value.

@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> mixed: array<Value>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / width();
    let c = item % width();
    if row >= params.rows {
        return;
    }
    var sum = Value();
    for (var i = 0u; i < params.count; i += 1u) {
        let w = weights[row * params.columns + i] - mean_weight();
        sum += w * history[start(value_slot(i), row) + c];
    }
    mixed[item] = sum;
}

// ---- backward, p: slopes[row, i] = (<g, v[i]>, unused) ----
//
// One invocation per row and source.

@group(0) @binding(2) var<storage, read> d_mixed: array<Value>;
@group(0) @binding(3) var<storage, read_write> products: array<f32>;

@compute @workgroup_size(WG)
fn backward_scores(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.count;
    if row >= params.rows {
        return;
    }
    let value = start(value_slot(item % params.count), row);
    var p = 0.0;
    for (var c = 0u; c < width(); c += 1u) {
        p += inner(d_mixed[row * width() + c], history[value + c]);
    }
    products[item * 2u] = p;
    products[item * 2u + 1u] = 0.0;
}

// ---- backward, softmax: slopes[row, i] = (dz * r, dz * r * r * z / dim) ----
//
// One invocation per row. The null source has p = 0.

@group(0) @binding(1) var<storage, read> scores_kept: array<f32>;
@group(0) @binding(3) var<storage, read_write> slopes_out: array<f32>;

@compute @workgroup_size(WG)
fn backward_softmax(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let first = row * params.count * 2u;
    let a = row * params.columns;
    var mean = 0.0;
    for (var i = 0u; i < params.count; i += 1u) {
        mean += weights[a + i] * slopes_out[first + i * 2u];
    }
    for (var i = 0u; i < params.count; i += 1u) {
        let at = first + i * 2u;
        let z = scores_kept[at];
        let r = scores_kept[at + 1u];
        let slope = weights[a + i] * (slopes_out[at] - mean) * r;
        slopes_out[at] = slope;
        slopes_out[at + 1u] = slope * r * z / f32(params.dim);
    }
}

// ---- backward, sources ----
//
// One invocation per row and Value. It goes through the sources in order; a slot may be key and value at once, or come
// twice, and `*_update` is made for this order: the value of a source first, then its key.

@group(0) @binding(4) var<storage, read> weights_kept: array<f32>;
@group(0) @binding(5) var<storage, read> slopes: array<f32>;
@group(0) @binding(6) var<storage, read> d_mixed_in: array<Value>;
@group(0) @binding(7) var<storage, read_write> d_history: array<Value>;

fn update(at: u32, how: u32, change: Value) {
    if how != SKIP {
        d_history[at] = select(Value(), d_history[at], how == ADD) + change;
    }
}

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / width();
    let c = item % width();
    if row >= params.rows {
        return;
    }
    let g = d_mixed_in[item];
    let u = query[params.query_row * width() + c] * gain[c];
    for (var i = 0u; i < params.count; i += 1u) {
        let key = start(key_slot(i), row) + c;
        let value = start(value_slot(i), row) + c;
        let slope = (row * params.count + i) * 2u;
        let w = weights_kept[row * params.columns + i] - mean_weight();
        let d_value = w * g;
        let d_key = slopes[slope] * u - slopes[slope + 1u] * history[key];
        let value_update = params.value_update[i / 4u][i % 4u];
        let same = key == value;
        update(value, value_update, d_value + select(Value(), d_key, same));
        if !same {
            update(key, params.key_update[i / 4u][i % 4u], d_key);
        }
    }
}

// ---- backward, query and gain: partial[block, c] = sum over the block's rows and all sources of dz * r * k ----
//
// One invocation per block and Value.

@group(0) @binding(2) var<storage, read> slopes_in: array<f32>;
@group(0) @binding(3) var<storage, read_write> partial: array<Value>;

@compute @workgroup_size(WG)
fn backward_query(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let c = item % width();
    let first = item / width() * params.chunk;
    if first >= params.rows {
        return;
    }
    let end = min(first + params.chunk, params.rows);
    var sum = Value();
    for (var i = 0u; i < params.count; i += 1u) {
        let slot = key_slot(i);
        for (var row = first; row < end; row += 1u) {
            sum += slopes_in[(row * params.count + i) * 2u] * history[start(slot, row) + c];
        }
    }
    partial[item] = sum;
}

// ---- backward, query and gain: du = sum over blocks of partial, dq += gain * du, dgain += q * du ----
//
// One invocation per Value. The other rows of a query of several rows are cleared if nothing has been stored yet.

@group(0) @binding(1) var<storage, read> partial_in: array<Value>;
@group(0) @binding(4) var<storage, read_write> d_query: array<Value>;
@group(0) @binding(5) var<storage, read_write> d_gain: array<Value>;

@compute @workgroup_size(WG)
fn backward_query_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let c = flat_index(group, groups, lane);
    if c >= width() {
        return;
    }
    let blocks = (params.rows + params.chunk - 1u) / params.chunk;
    var du = Value();
    for (var block = 0u; block < blocks; block += 1u) {
        du += partial_in[block * width() + c];
    }
    if params.add_query == 0u {
        for (var row = 0u; row < params.query_rows; row += 1u) {
            d_query[row * width() + c] = Value();
        }
    }
    if params.add_gain == 0u {
        d_gain[c] = Value();
    }
    let asked = params.query_row * width() + c;
    d_query[asked] += gain[c] * du;
    d_gain[c] += query[asked] * du;
}
