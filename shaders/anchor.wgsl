// Two measures of a device, with which other kernels are compared: how fast it copies, and how fast it computes.
//
//   copy:          y[i] = x[i]
//   multiply_add:  y[i] = sum over k = 1 .. 8 of c_k, where c_k begins as k x[i] and `rounds` times becomes c_k / 2 + x[i] / 4
//
// x and y are vectors of four numbers. The eight chains do not wait for one another, and all they need is in registers:
// 64 operations an invocation and a round. Every chain tends to x[i] / 2. One invocation per vector.

#import shared/grid

struct Params {
    len: u32,     // vectors
    rounds: u32,  // of multiply_add
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(WG)
fn copy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i < params.len {
        y[i] = x[i];
    }
}

@compute @workgroup_size(WG)
fn multiply_add(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.len {
        return;
    }
    let start = x[i];
    let quarter = 0.25 * start;
    let half = vec4(0.5);
    var c1 = start;
    var c2 = 2.0 * start;
    var c3 = 3.0 * start;
    var c4 = 4.0 * start;
    var c5 = 5.0 * start;
    var c6 = 6.0 * start;
    var c7 = 7.0 * start;
    var c8 = 8.0 * start;
    for (var round = 0u; round < params.rounds; round += 1u) {
        c1 = fma(c1, half, quarter);
        c2 = fma(c2, half, quarter);
        c3 = fma(c3, half, quarter);
        c4 = fma(c4, half, quarter);
        c5 = fma(c5, half, quarter);
        c6 = fma(c6, half, quarter);
        c7 = fma(c7, half, quarter);
        c8 = fma(c8, half, quarter);
    }
    y[i] = ((c1 + c2) + (c3 + c4)) + ((c5 + c6) + (c7 + c8));
}
