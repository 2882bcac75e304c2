// history[out] = history[in] + y,   history is [slots, rows, dim] in slots of `stride` elements
//
// A read-only and a writable range of one buffer may not meet in one dispatch, so the history is bound once, writable,
// and indexed. One invocation per element.

#import shared/grid

struct Params {
    len: u32,     // rows * dim
    stride: u32,  // elements from one slot to the next
    slot_in: u32, // slot that is read
    slot_out: u32, // slot that is written
    old_add: u32, // backward: 1: d_history[old] += .., 0: = ..
    y_add: u32,   // backward: 1: dy += .., 0: = ..
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward ----

@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> history: array<f32>;

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
    history[params.slot_out * params.stride + i] = history[params.slot_in * params.stride + i] + y[i];
}

// ---- backward: both inputs get the gradient of the new slot ----

@group(0) @binding(1) var<storage, read_write> d_history: array<f32>;
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;

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
    let d = d_history[params.slot_out * params.stride + i];
    let old = params.slot_in * params.stride + i;
    d_history[old] = select(0.0, d_history[old], params.old_add != 0u) + d;
    dy[i] = select(0.0, dy[i], params.y_add != 0u) + d;
}
