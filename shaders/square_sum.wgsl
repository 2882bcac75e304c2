// Sum of squares of a long list, in levels of fixed order, and whether all of it is finite.
//
//   squares: partial[p] = sum of grads[i]^2 over i = p, p + count, p + 2 count, ..
//   sums:    the same of partial sums, without the squares
//
// One invocation per partial sum, so that neighbours read neighbours. Beside each sum stands a flag: 1 if something in it
// was not finite, 0 otherwise. Buffers of partial sums are [2, total]: sums, then flags.
// No NaN has to survive an addition: what is loaded is tested by its bits.

#import shared/grid
#import shared/finite

struct Params {
    len: u32,    // numbers to add
    count: u32,  // partial sums of this dispatch
    first: u32,  // the first of them in the buffer
    total: u32,  // partial sums in the buffer
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(WG)
fn squares(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let part = flat_index(group, groups, lane);
    if part >= params.count {
        return;
    }
    var sum = 0.0;
    var broken = false;
    for (var i = part; i < params.len; i += params.count) {
        let value = input[i];
        broken = broken || is_non_finite(value);
        sum += value * value;
    }
    partial[params.first + part] = sum;
    partial[params.total + params.first + part] = select(0.0, 1.0, broken);
}

// input is [2, len] here: sums, then flags

@compute @workgroup_size(WG)
fn sums(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let part = flat_index(group, groups, lane);
    if part >= params.count {
        return;
    }
    var sum = 0.0;
    var broken = false;
    for (var i = part; i < params.len; i += params.count) {
        let value = input[i];
        broken = broken || is_non_finite(value) || input[params.len + i] != 0.0;
        sum += value;
    }
    partial[params.first + part] = sum;
    partial[params.total + params.first + part] = select(0.0, 1.0, broken);
}
