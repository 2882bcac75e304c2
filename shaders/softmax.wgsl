// a[i] = exp(z[i] - max z) / sum over j of exp(z[j] - max z)        for one short vector of `len` logits
//
// Gradient: dz[i] = a[i] * (da[i] - sum over j of a[j] * da[j]). For weights that all tokens share, da is already a sum over
// the tokens. One invocation per element; each goes through the whole vector, in the same order.

#import shared/grid

struct Params {
    len: u32,
    add: u32,    // 1: dz += .., 0: dz = ..
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward ----

@group(0) @binding(1) var<storage, read> z: array<f32>;
@group(0) @binding(2) var<storage, read_write> a_out: array<f32>;

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
    var top = -1e30;
    for (var j = 0u; j < params.len; j += 1u) {
        top = max(top, z[j]);
    }
    var total = 0.0;
    for (var j = 0u; j < params.len; j += 1u) {
        total += exp(max(z[j] - top, -80.0));
    }
    a_out[i] = exp(max(z[i] - top, -80.0)) / total;
}

// ---- backward ----

@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> da: array<f32>;
@group(0) @binding(3) var<storage, read_write> dz: array<f32>;

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
    var mean = 0.0;
    for (var j = 0u; j < params.len; j += 1u) {
        mean += a[j] * da[j];
    }
    dz[i] = select(0.0, dz[i], params.add != 0u) + a[i] * (da[i] - mean);
}
