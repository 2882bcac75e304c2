// y[row, i] = sum[row, i] + gates[row, expert] u[row, i]
//
// One expert of a mixture that computes every expert for every token. sum, u, y are [rows, dim], gates are [rows, experts].

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    experts: u32,
    expert: u32,
    first: u32,  // 1: there is no sum yet
    add: u32,    // 1: the gradient is added to, 0: stored
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward: one invocation per element ----

@group(0) @binding(1) var<storage, read> gates: array<f32>;
@group(0) @binding(2) var<storage, read> u: array<f32>;
@group(0) @binding(3) var<storage, read> sum: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

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
    let old = select(sum[item], 0.0, params.first != 0u);
    y[item] = old + gates[row * params.experts + params.expert] * u[item];
}

// ---- backward: du (+)= gate dy, one invocation per element ----

@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> du: array<f32>;

@compute @workgroup_size(WG)
fn backward_u(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.dim;
    if row >= params.rows {
        return;
    }
    let old = select(0.0, du[item], params.add != 0u);
    du[item] = old + gates[row * params.experts + params.expert] * dy[item];
}

// ---- backward: dgates[row, expert] (+)= <dy[row], u[row]>, one invocation per row ----
//
// The first contribution to the gradient clears the other experts of the row.

@group(0) @binding(1) var<storage, read> u_in: array<f32>;
@group(0) @binding(3) var<storage, read_write> dgates: array<f32>;

@compute @workgroup_size(WG)
fn backward_gates(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    var along = 0.0;
    for (var i = row * params.dim; i < (row + 1u) * params.dim; i += 1u) {
        along += dy[i] * u_in[i];
    }
    let start = row * params.experts;
    if params.add == 0u {
        for (var e = 0u; e < params.experts; e += 1u) {
            dgates[start + e] = 0.0;
        }
    }
    dgates[start + params.expert] += along;
}
