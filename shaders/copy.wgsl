// y = x;   dx (+)= dy
//
// One invocation per element; forward and backward are the same kernel.

#import shared/grid

struct Params {
    len: u32,
    add: u32,  // 1: y += x, 0: y = x
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

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
    y[i] = select(0.0, y[i], params.add != 0u) + x[i];
}
