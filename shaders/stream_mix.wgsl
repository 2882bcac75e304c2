// Mixing streams with a matrix of weights per row (hyper-connections, mHC).
//
//   out[row, j, c] (+)= sum_i weight[row, i, j] x[row, i, c]      i < inputs, j < outputs
//
// x is [rows, inputs dim], out is [rows, outputs dim]: the streams of a row lie one after the other. The weights of a row
// begin at row * stride_row (0: all rows have the same) and lie at i stride_in + j stride_out, so both layouts of a matrix
// are read in place. With exchanged strides the same kernel carries the gradient of out back to x.

#import shared/grid

struct Params {
    rows: u32,
    dim: u32,         // length of a stream
    inputs: u32,      // streams of x
    outputs: u32,     // streams of out
    stride_in: u32,
    stride_out: u32,
    stride_row: u32,
    add: u32,         // 1: add to the result, 0: store it
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward: one invocation per element of out ----

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let c = item % params.dim;
    let j = item / params.dim % params.outputs;
    let row = item / params.dim / params.outputs;
    if row >= params.rows {
        return;
    }
    let first_weight = row * params.stride_row + j * params.stride_out;
    let first = row * params.inputs * params.dim + c;
    var sum = 0.0;
    for (var i = 0u; i < params.inputs; i += 1u) {
        sum += weight[first_weight + i * params.stride_in] * x[first + i * params.dim];
    }
    let old = select(0.0, out[item], params.add != 0u);
    out[item] = old + sum;
}

// ---- backward, weights: dweight[row, i, j] (+)= <x[row, i], dout[row, j]>, one invocation per weight ----

@group(0) @binding(2) var<storage, read> dout: array<f32>;
@group(0) @binding(3) var<storage, read_write> dweight: array<f32>;

@compute @workgroup_size(WG)
fn backward_weights(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let j = item % params.outputs;
    let i = item / params.outputs % params.inputs;
    let row = item / params.outputs / params.inputs;
    if row >= params.rows {
        return;
    }
    let start_in = (row * params.inputs + i) * params.dim;
    let start_out = (row * params.outputs + j) * params.dim;
    var sum = 0.0;
    for (var c = 0u; c < params.dim; c += 1u) {
        sum += x[start_in + c] * dout[start_out + c];
    }
    let own = row * params.stride_row + i * params.stride_in + j * params.stride_out;
    let old = select(0.0, dweight[own], params.add != 0u);
    dweight[own] = old + sum;
}
