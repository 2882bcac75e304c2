// x = h + scale * o,   scale a parameter [1]
//
// h, o, x have the same shape of len elements. One invocation per element.

#import shared/grid

struct Params {
    len: u32,
    count: u32,  // partial sums of backward_scale
    add: u32,    // 1: add to the gradient, 0: store it
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward ----

@group(0) @binding(1) var<storage, read> h: array<f32>;
@group(0) @binding(2) var<storage, read> o: array<f32>;
@group(0) @binding(3) var<storage, read> scale: array<f32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i < params.len {
        x[i] = h[i] + scale[0] * o[i];
    }
}

// ---- backward, h: dh += dx ----

@group(0) @binding(1) var<storage, read> dx: array<f32>;
@group(0) @binding(2) var<storage, read_write> dh: array<f32>;

@compute @workgroup_size(WG)
fn backward_h(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i < params.len {
        dh[i] = select(0.0, dh[i], params.add != 0u) + dx[i];
    }
}

// ---- backward, o: do += scale dx ----

@group(0) @binding(2) var<storage, read> scale_in: array<f32>;
@group(0) @binding(3) var<storage, read_write> do_out: array<f32>;

@compute @workgroup_size(WG)
fn backward_o(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i < params.len {
        do_out[i] = select(0.0, do_out[i], params.add != 0u) + scale_in[0] * dx[i];
    }
}

// ---- backward, scale: partial[part] = sum of dx o over the elements part, part + count, part + 2 count, .. ----
//
// One invocation per element of partial, so that neighbours read neighbours; `column_sum` adds the parts in order.

@group(0) @binding(3) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(WG)
fn backward_scale(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let part = flat_index(group, groups, lane);
    if part >= params.count {
        return;
    }
    var sum = 0.0;
    for (var i = part; i < params.len; i += params.count) {
        sum += dx[i] * o[i];
    }
    partial[part] = sum;
}
