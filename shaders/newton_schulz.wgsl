// Newton-Schulz iteration on a stack of matrices: all singular values go to about 1. x is [count, rows, cols].
//
//   squares:     partial[b, c] = sum of x[b, i]^2 over i = c, c + chunks, c + 2 chunks, ..
//   norms:       factor[b] = 1 / (sqrt(sum over c of partial[b, c]) + 1e-7)
//   normalise:   x[b] = factor[b] x[b]
//   transpose:   y[b] = x[b]^T
//   polynomial:  y[b] = alpha I + beta x[b] + gamma z[b],   rows = cols
//
// The products between them are those of `matmul.wgsl` (tn). One invocation per partial sum, per matrix, per element.

#import shared/grid

struct Params {
    count: u32,
    rows: u32,
    cols: u32,
    chunks: u32,  // partial sums of a matrix
    alpha: f32,
    beta: f32,
    gamma: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- squares ----

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> partial_out: array<f32>;

@compute @workgroup_size(WG)
fn squares(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let part = flat_index(group, groups, lane);
    if part >= params.count * params.chunks {
        return;
    }
    let size = params.rows * params.cols;
    let start = part / params.chunks * size;
    var sum = 0.0;
    for (var i = part % params.chunks; i < size; i += params.chunks) {
        let value = x[start + i];
        sum += value * value;
    }
    partial_out[part] = sum;
}

// ---- norms ----

@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read_write> factor_out: array<f32>;

@compute @workgroup_size(WG)
fn norms(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let matrix = flat_index(group, groups, lane);
    if matrix >= params.count {
        return;
    }
    var sum = 0.0;
    for (var c = 0u; c < params.chunks; c += 1u) {
        sum += partial[matrix * params.chunks + c];
    }
    factor_out[matrix] = 1.0 / (sqrt(sum) + 1.0e-7);
}

// ---- normalise ----

@group(0) @binding(1) var<storage, read> factor: array<f32>;
@group(0) @binding(2) var<storage, read_write> scaled: array<f32>;

@compute @workgroup_size(WG)
fn normalise(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    let size = params.rows * params.cols;
    if i >= params.count * size {
        return;
    }
    scaled[i] *= factor[i / size];
}

// ---- transpose ----

@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn transpose(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    let size = params.rows * params.cols;
    if i >= params.count * size {
        return;
    }
    let at = i % size;
    // y[b] is [cols, rows].
    let row = at / params.rows;
    let column = at % params.rows;
    y[i] = x[i - at + column * params.cols + row];
}

// ---- polynomial ----

@group(0) @binding(2) var<storage, read> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> mixed: array<f32>;

@compute @workgroup_size(WG)
fn polynomial(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    let size = params.rows * params.cols;
    if i >= params.count * size {
        return;
    }
    // Elements of the diagonal are cols + 1 apart.
    let diagonal = select(0.0, params.alpha, i % size % (params.cols + 1u) == 0u);
    mixed[i] = diagonal + params.beta * x[i] + params.gamma * z[i];
}
