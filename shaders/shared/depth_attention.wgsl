// The body of `depth_attention` and `depth_attention_vec4`, which differ in the type `Value` only: one channel, or four.
// Each defines Value, CHANNELS (in a Value) and inner (the inner product of two Values). The maths is in
// `depth_attention.wgsl`.

#import shared/grid
#import shared/sigmoid

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
    heads: u32,        // parts of the channels, each with weights of its own
    key_norm: u32,     // 0: r = 1
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

// Values of a head.
fn head_width() -> u32 {
    return width() / params.heads;
}

// Whether `head_row`, which is row * heads + head, does not exist.
fn beyond(head_row: u32) -> bool {
    return head_row >= params.rows * params.heads;
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

// ---- forward, logits: scores[row, head, i] = (z, r) ----
//
// One invocation per row, head and source. The norm is over all channels of the key, the product over those of the head.

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
    let head_row = item / params.count;
    if beyond(head_row) {
        return;
    }
    let key = start(key_slot(item % params.count), head_row / params.heads);
    let asked = params.query_row * width();
    let first = head_row % params.heads * head_width();
    let end = first + head_width();
    var squares = 0.0;
    var along = 0.0;
    for (var c = first; c < end; c += 1u) {
        let k = history[key + c];
        squares += inner(k, k);
        along += inner(k, query[asked + c] * gain[c]);
    }
    var r = 1.0;
    if params.key_norm != 0u {
        for (var c = 0u; c < first; c += 1u) {
            let k = history[key + c];
            squares += inner(k, k);
        }
        for (var c = end; c < width(); c += 1u) {
            let k = history[key + c];
            squares += inner(k, k);
        }
        r = inverseSqrt(squares / f32(params.dim) + params.eps);
    }
    scores_out[item * 2u] = along * r;
    scores_out[item * 2u + 1u] = r;
}

// ---- forward, weights: the softmax over the sources ----
//
// One invocation per row and head.

@group(0) @binding(1) var<storage, read> scores_in: array<f32>;
@group(0) @binding(2) var<storage, read_write> weights_out: array<f32>;

@compute @workgroup_size(WG)
fn softmax(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if beyond(row) {
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

// ---- forward, weights: the sigmoid of each score ----
//
// One invocation per row, head and source.

@compute @workgroup_size(WG)
fn sigmoid_weights(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if beyond(item / params.count) {
        return;
    }
    weights_out[item] = sigmoid(scores_in[item * 2u]);
}

// ---- forward: lse[row, head] = logarithm of the softmax's sum ----
//
// From the largest logit z and its weight a, which is at least 1 / n: z - log(a). One invocation per row and head.

@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> lse_out: array<f32>;

@compute @workgroup_size(WG)
fn log_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if beyond(row) {
        return;
    }
    var at = row * params.count;
    for (var i = at + 1u; i < (row + 1u) * params.count; i += 1u) {
        if scores_in[i * 2u] > scores_in[at * 2u] {
            at = i;
        }
    }
    lse_out[row] = scores_in[at * 2u] - log(weights[at]);
}

// What is taken from every weight when values are mixed.
fn mean_weight() -> f32 {
    return select(0.0, 1.0 / f32(params.count), params.centered != 0u);
}

// ---- forward, mix ----
//
// One invocation per row and Value.

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
    let first = (row * params.heads + c / head_width()) * params.columns;
    var sum = Value();
    for (var i = 0u; i < params.count; i += 1u) {
        let w = weights[first + i] - mean_weight();
        sum += w * history[start(value_slot(i), row) + c];
    }
    mixed[item] = sum;
}

// ---- backward, p: slopes[row, head, i] = (<g, v[i]>, unused) ----
//
// One invocation per row, head and source. The product is over the channels of the head.

@group(0) @binding(2) var<storage, read> d_mixed: array<Value>;
@group(0) @binding(3) var<storage, read_write> products: array<f32>;

@compute @workgroup_size(WG)
fn backward_scores(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let head_row = item / params.count;
    if beyond(head_row) {
        return;
    }
    let row = head_row / params.heads;
    let value = start(value_slot(item % params.count), row);
    let first = head_row % params.heads * head_width();
    var p = 0.0;
    for (var c = first; c < first + head_width(); c += 1u) {
        p += inner(d_mixed[row * width() + c], history[value + c]);
    }
    products[item * 2u] = p;
    products[item * 2u + 1u] = 0.0;
}

// ---- backward, softmax: slopes[row, head, i] = (dz * r, dz * r * r * z / dim), the second 0 without a norm of keys ----
//
// One invocation per row and head. The null source has p = 0.

@group(0) @binding(1) var<storage, read> scores_kept: array<f32>;
@group(0) @binding(3) var<storage, read_write> slopes_out: array<f32>;

// The second slope of a source, from the first: what pulls the key towards zero.
fn bend(slope: f32, r: f32, z: f32) -> f32 {
    return select(0.0, slope * r * z / f32(params.dim), params.key_norm != 0u);
}

@compute @workgroup_size(WG)
fn backward_softmax(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if beyond(row) {
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
        slopes_out[at + 1u] = bend(slope, r, z);
    }
}

// ---- backward, sigmoid: as above with dz = a * (1 - a) * p ----
//
// One invocation per row, head and source.

@compute @workgroup_size(WG)
fn backward_sigmoid(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if beyond(item / params.count) {
        return;
    }
    let at = item * 2u;
    let a = weights[item];
    let r = scores_kept[at + 1u];
    let slope = a * (1.0 - a) * slopes_out[at] * r;
    slopes_out[at] = slope;
    slopes_out[at + 1u] = bend(slope, r, scores_kept[at]);
}

// ---- backward, logarithm of the sum: dz += a * dlse ----
//
// One invocation per row, head and source.

@group(0) @binding(4) var<storage, read> d_lse: array<f32>;

@compute @workgroup_size(WG)
fn backward_log_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.count;
    if beyond(row) {
        return;
    }
    let at = item * 2u;
    let r = scores_kept[at + 1u];
    let slope = weights[item] * d_lse[row] * r;
    slopes_out[at] += slope;
    slopes_out[at + 1u] += bend(slope, r, scores_kept[at]);
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
    let first = row * params.heads;
    let own = first + c / head_width();
    for (var i = 0u; i < params.count; i += 1u) {
        let key = start(key_slot(i), row) + c;
        let value = start(value_slot(i), row) + c;
        let w = weights_kept[own * params.columns + i] - mean_weight();
        let d_value = w * g;
        // All heads pull at the length of the whole key.
        var pull = 0.0;
        for (var head = first; head < first + params.heads; head += 1u) {
            pull += slopes[(head * params.count + i) * 2u + 1u];
        }
        let d_key = slopes[(own * params.count + i) * 2u] * u - pull * history[key];
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
    let head = c / head_width();
    var sum = Value();
    for (var i = 0u; i < params.count; i += 1u) {
        let slot = key_slot(i);
        for (var row = first; row < end; row += 1u) {
            let slope = ((row * params.heads + head) * params.count + i) * 2u;
            sum += slopes_in[slope] * history[start(slot, row) + c];
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
