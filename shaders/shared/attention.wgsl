// The body of `attention_16`, `attention_32`, ..: `attention` for one dim, with all channels of a row in registers. The
// maths and who owns what is in `attention.wgsl`.
//
// WGSL's matrices are the register blocks: four columns of four channels, added, scaled and passed by value like numbers,
// and no loop over channels is left for a compiler to index dynamically. Each file defines
//
//     Channels: a row as some `mat4x4`s            WIDTH: its length in vec4s
//     inner(x, y) = <x, y>        times(x, c) = c * x        plus(x, c, y) = x + c * y
//     load_q, load_k, load_v, load_d(at): a row of q, k, v, do        store_o, store_dq, store_dk, store_dv(at, x)
//
// from the functions for 16 channels below.

#import shared/grid

struct Params {
    batch: u32,
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    dim: u32,
    add: u32,        // 1: dq += .. or dk += .., 0: store
    add_value: u32,  // the same for dv
    scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;

fn query_row(b: u32, t: u32, h: u32) -> u32 {
    return (b * params.tokens + t) * params.heads + h;
}

fn key_row(b: u32, s: u32, g: u32) -> u32 {
    return (b * params.tokens + s) * params.kv_heads + g;
}

fn heads_per_group() -> u32 {
    return params.heads / params.kv_heads;
}

fn inner_16(x: mat4x4<f32>, y: mat4x4<f32>) -> f32 {
    return dot(x[0], y[0]) + dot(x[1], y[1]) + dot(x[2], y[2]) + dot(x[3], y[3]);
}

fn q_16(at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]);
}

fn k_16(at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(k[at], k[at + 1u], k[at + 2u], k[at + 3u]);
}

fn v_16(at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(v[at], v[at + 1u], v[at + 2u], v[at + 3u]);
}

// ---- forward ----

@group(0) @binding(4) var<storage, read_write> o: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

fn o_16(at: u32, x: mat4x4<f32>) {
    o[at] = x[0];
    o[at + 1u] = x[1];
    o[at + 2u] = x[2];
    o[at + 3u] = x[3];
}

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let t = item % params.tokens;
    let h = item / params.tokens % params.heads;
    let b = item / params.tokens / params.heads;
    if b >= params.batch {
        return;
    }
    let row = query_row(b, t, h);
    let asked = load_q(row * WIDTH);
    var top = -1e30;
    var total = 0.0;
    var sum = Channels();
    for (var s = 0u; s <= t; s += 1u) {
        let at = key_row(b, s, h / heads_per_group()) * WIDTH;
        let score = inner(asked, load_k(at)) * params.scale;
        let higher = max(top, score);
        let keep = exp(max(top - higher, -80.0));
        let p = exp(max(score - higher, -80.0));
        total = total * keep + p;
        sum = plus(times(sum, keep), p, load_v(at));
        top = higher;
    }
    store_o(row * WIDTH, times(sum, 1.0 / total));
    lse[row] = top + log(total);
}

// ---- backward, delta ----

@group(0) @binding(1) var<storage, read> o_in: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> d_o: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> delta_out: array<f32>;

@compute @workgroup_size(WG)
fn backward_delta(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.batch * params.tokens * params.heads {
        return;
    }
    var sum = 0.0;
    for (var c = 0u; c < WIDTH; c += 1u) {
        sum += dot(d_o[row * WIDTH + c], o_in[row * WIDTH + c]);
    }
    delta_out[row] = sum;
}

// ---- backward, q ----

@group(0) @binding(4) var<storage, read> d_out: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> lse_in: array<f32>;
@group(0) @binding(6) var<storage, read> delta: array<f32>;
@group(0) @binding(7) var<storage, read_write> dq: array<vec4<f32>>;

fn d_16(at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(d_out[at], d_out[at + 1u], d_out[at + 2u], d_out[at + 3u]);
}

fn dq_16(at: u32, x: mat4x4<f32>) {
    var old = mat4x4<f32>();
    if params.add != 0u {
        old = mat4x4<f32>(dq[at], dq[at + 1u], dq[at + 2u], dq[at + 3u]);
    }
    let sum = old + x;
    dq[at] = sum[0];
    dq[at + 1u] = sum[1];
    dq[at + 2u] = sum[2];
    dq[at + 3u] = sum[3];
}

@compute @workgroup_size(WG)
fn backward_query(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let t = item % params.tokens;
    let h = item / params.tokens % params.heads;
    let b = item / params.tokens / params.heads;
    if b >= params.batch {
        return;
    }
    let row = query_row(b, t, h);
    let asked = load_q(row * WIDTH);
    let d = load_d(row * WIDTH);
    let log_total = lse_in[row];
    let mean = delta[row];
    var sum = Channels();
    for (var s = 0u; s <= t; s += 1u) {
        let at = key_row(b, s, h / heads_per_group()) * WIDTH;
        let key = load_k(at);
        let p = exp(max(inner(asked, key) * params.scale - log_total, -80.0));
        let ds = p * (inner(d, load_v(at)) - mean) * params.scale;
        sum = plus(sum, ds, key);
    }
    store_dq(row * WIDTH, sum);
}

// ---- backward, k and v ----

@group(0) @binding(7) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> dv: array<vec4<f32>>;

fn dk_16(at: u32, x: mat4x4<f32>) {
    var old = mat4x4<f32>();
    if params.add != 0u {
        old = mat4x4<f32>(dk[at], dk[at + 1u], dk[at + 2u], dk[at + 3u]);
    }
    let sum = old + x;
    dk[at] = sum[0];
    dk[at + 1u] = sum[1];
    dk[at + 2u] = sum[2];
    dk[at + 3u] = sum[3];
}

fn dv_16(at: u32, x: mat4x4<f32>) {
    var old = mat4x4<f32>();
    if params.add_value != 0u {
        old = mat4x4<f32>(dv[at], dv[at + 1u], dv[at + 2u], dv[at + 3u]);
    }
    let sum = old + x;
    dv[at] = sum[0];
    dv[at + 1u] = sum[1];
    dv[at + 2u] = sum[2];
    dv[at + 3u] = sum[3];
}

@compute @workgroup_size(WG)
fn backward_key_value(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let s = item % params.tokens;
    let g = item / params.tokens % params.kv_heads;
    let b = item / params.tokens / params.kv_heads;
    if b >= params.batch {
        return;
    }
    let at = key_row(b, s, g) * WIDTH;
    let key = load_k(at);
    let value = load_v(at);
    var key_sum = Channels();
    var value_sum = Channels();
    for (var member = 0u; member < heads_per_group(); member += 1u) {
        for (var t = params.tokens; t > s; t -= 1u) {
            let row = query_row(b, t - 1u, g * heads_per_group() + member);
            let asked = load_q(row * WIDTH);
            let d = load_d(row * WIDTH);
            let p = exp(max(inner(asked, key) * params.scale - lse_in[row], -80.0));
            let ds = p * (inner(d, value) - delta[row]) * params.scale;
            key_sum = plus(key_sum, ds, asked);
            value_sum = plus(value_sum, p, d);
        }
    }
    store_dk(at, key_sum);
    store_dv(at, value_sum);
}
