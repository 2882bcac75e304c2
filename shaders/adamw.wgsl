// AdamW on a range of the parameter arena.
//
//   g = scale dp                                        scale from clipping
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   p = p - rate decay p
//   p = p - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps),   rate = lr lr_mult
//
// dp, p, m, v are the same range of four arenas. scalars are lr, 1 - beta1^t, 1 - beta2^t, computed on the host in double
// precision: for small t they would lose all digits here. status[0]: stop, status[2]: scale (see clip.wgsl).
// One invocation per element.

#import shared/grid

struct Params {
    len: u32,
    lr_mult: f32,
    beta1: f32,
    rest1: f32,  // 1 - beta1
    beta2: f32,
    rest2: f32,  // 1 - beta2
    eps: f32,
    decay: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scalars: array<f32>;
@group(0) @binding(2) var<storage, read> status: array<f32>;
@group(0) @binding(3) var<storage, read> dp: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;
@group(0) @binding(5) var<storage, read_write> m: array<f32>;
@group(0) @binding(6) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(WG)
fn update(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.len || status[0] != 0.0 {
        return;
    }
    let rate = scalars[0] * params.lr_mult;
    let g = status[2] * dp[i];
    let m_new = params.beta1 * m[i] + params.rest1 * g;
    let v_new = params.beta2 * v[i] + params.rest2 * g * g;
    m[i] = m_new;
    v[i] = v_new;
    let decayed = p[i] - rate * params.decay * p[i];
    p[i] = decayed - rate * (m_new / scalars[1]) / (sqrt(v_new / scalars[2]) + params.eps);
}
