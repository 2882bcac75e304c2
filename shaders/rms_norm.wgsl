// y[row, i] = x[row, i] * r[row] * gain[i],   r[row] = 1 / sqrt(mean(x[row]^2) + eps)
//
// x, y are [rows, dim], gain is [dim]; r is kept for the gradient. One invocation per row.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    chunk: u32,  // rows per block of backward_gain
    add: u32,    // 1: dx += .., 0: dx = ..
    eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> gain: array<f32>;

// ---- forward ----

@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> r_out: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.dim;
    var squares = 0.0;
    for (var i = 0u; i < params.dim; i += 1u) {
        let v = x[start + i];
        squares += v * v;
    }
    let r = inverseSqrt(squares / f32(params.dim) + params.eps);
    r_out[row] = r;
    for (var i = 0u; i < params.dim; i += 1u) {
        y[start + i] = x[start + i] * r * gain[i];
    }
}

// ---- backward, x ----
//
//   dx += r * (dy * gain - x * r^2 * mean(dy * gain * x))

@group(0) @binding(3) var<storage, read> r: array<f32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.dim;
    var along = 0.0;
    for (var i = 0u; i < params.dim; i += 1u) {
        along += dy[start + i] * gain[i] * x[start + i];
    }
    let scale = r[row];
    let pull = along * scale * scale / f32(params.dim);
    for (var i = 0u; i < params.dim; i += 1u) {
        let old = select(0.0, dx[start + i], params.add != 0u);
        dx[start + i] = old + scale * (dy[start + i] * gain[i] - x[start + i] * pull);
    }
}

// ---- backward, gain: partial[block, i] = sum over the block's rows of dy * x * r ----
//
// One invocation per element of partial; `column_sum` adds the blocks in order.

@group(0) @binding(2) var<storage, read> r_in: array<f32>;
@group(0) @binding(3) var<storage, read> dy_in: array<f32>;
@group(0) @binding(4) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(WG)
fn backward_gain(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let block = item / params.dim;
    let i = item % params.dim;
    let first = block * params.chunk;
    if first >= params.rows {
        return;
    }
    let end = min(first + params.chunk, params.rows);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        sum += dy_in[row * params.dim + i] * x[row * params.dim + i] * r_in[row];
    }
    partial[item] = sum;
}
