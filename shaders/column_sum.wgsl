// out[i] (+)= sum over rows of partial[row, i], rows in order
//
// One invocation per column.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,
    add: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.dim {
        return;
    }
    var sum = select(0.0, out[i], params.add != 0u);
    for (var row = 0u; row < params.rows; row += 1u) {
        sum += partial[row * params.dim + i];
    }
    out[i] = sum;
}
