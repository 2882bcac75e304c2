// r[row] = 1 / sqrt(mean(x[row]^2) + eps)
//
// x is [rows, dim], r is [rows]. What a norm multiplies by, for products that are normalised afterwards.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    add: u32,  // 1: dx += .., 0: dx = ..
    eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;

// ---- forward: one invocation per row ----

@group(0) @binding(2) var<storage, read_write> r_out: array<f32>;

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
    r_out[row] = inverseSqrt(squares / f32(params.dim) + params.eps);
}

// ---- backward: dx -= x r^3 dr / dim, one invocation per element ----

@group(0) @binding(2) var<storage, read> r: array<f32>;
@group(0) @binding(3) var<storage, read> dr: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    let row = i / params.dim;
    if row >= params.rows {
        return;
    }
    let scale = r[row];
    let pull = scale * scale * scale * dr[row] / f32(params.dim);
    let old = select(0.0, dx[i], params.add != 0u);
    dx[i] = old - x[i] * pull;
}
