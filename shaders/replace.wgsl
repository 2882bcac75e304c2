// y[row, first + c] = by[row * stride + c]   if the switch is not 0; else y stays as it is
//
// Puts other numbers in the place of some columns of y: of a state, to ask what it is worth, or of weights and gates, to keep
// them as they were. y is [rows, width], by is [rows, columns] with stride = columns, or [columns] with stride = 0 for the same
// numbers in every row. One invocation per element of the columns. For evaluation only: there is no gradient.

#import shared/grid

struct Params {
    rows: u32,
    width: u32,
    first: u32,
    columns: u32,
    stride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> on: array<f32>;  // [1]
@group(0) @binding(2) var<storage, read> by: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn apply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.columns;
    let c = item % params.columns;
    if row >= params.rows || on[0] == 0.0 {
        return;
    }
    y[row * params.width + params.first + c] = by[row * params.stride + c];
}
