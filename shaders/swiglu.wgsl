// y = silu(gate) * up,   silu(g) = g s,   s = 1 / (1 + exp(-g))
//
// All arrays have the same shape. One invocation per element.

#import shared/grid
#import shared/sigmoid

struct Params {
    len: u32,
    add_gate: u32,  // 1: d_gate += .., 0: d_gate = ..
    add_up: u32,    // the same for d_up
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;

// ---- forward ----

@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.len {
        return;
    }
    let g = gate[i];
    y[i] = g * sigmoid(g) * up[i];
}

// ---- backward ----
//
//   silu'(g) = s (1 + g (1 - s)):   d_gate += dy up silu'(gate),   d_up += dy silu(gate)

@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> d_gate: array<f32>;
@group(0) @binding(5) var<storage, read_write> d_up: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.len {
        return;
    }
    let g = gate[i];
    let s = sigmoid(g);
    let slope = s * (1.0 + g * (1.0 - s));
    d_gate[i] = select(0.0, d_gate[i], params.add_gate != 0u) + dy[i] * up[i] * slope;
    d_up[i] = select(0.0, d_up[i], params.add_up != 0u) + dy[i] * g * s;
}
