// o[b, t, h] = sum over s <= t of p[t, s] * v[b, s, g]        p = softmax over s of scale * <q[b, t, h], k[b, s, g]>
//
// q, o are [batch, tokens, heads, dim]; k, v are [batch, tokens, kv_heads, dim]; head h reads key/value head
// g = h / (heads / kv_heads). lse[b, t, h] = log sum over s of exp(score) is kept: with it, the gradient computes each p
// again instead of storing tokens^2 of them.
//
// Gradient, with delta[b, t, h] = <do, o>:
//
//     dp[t, s] = <do[t], v[s]>        ds[t, s] = scale * p[t, s] * (dp[t, s] - delta[t])
//     dq[t] = sum over s <= t of ds[t, s] * k[s]
//     dk[s] = sum over t >= s of ds[t, s] * q[t]        dv[s] = sum over t >= s of p[t, s] * do[t]
//
// This is the plain form, for any dim up to 128. `attention_16`, `attention_32`, .. compute the same for one dim.

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
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;

// Number of row (b, t, h) of q, o, lse and delta.
fn query_row(b: u32, t: u32, h: u32) -> u32 {
    return (b * params.tokens + t) * params.heads + h;
}

// Number of row (b, s, g) of k and v.
fn key_row(b: u32, s: u32, g: u32) -> u32 {
    return (b * params.tokens + s) * params.kv_heads + g;
}

fn heads_per_group() -> u32 {
    return params.heads / params.kv_heads;
}

// ---- forward ----
//
// One invocation per (b, h, t), t fastest: neighbours read the same keys at the same time. One walk over the keys with the
// largest score so far; what was summed before is scaled down when it grows.

@group(0) @binding(4) var<storage, read_write> o: array<f32>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

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
    let asked = row * params.dim;
    var top = -1e30;
    var total = 0.0;
    var sum: array<f32, 128>;
    for (var s = 0u; s <= t; s += 1u) {
        let at = key_row(b, s, h / heads_per_group()) * params.dim;
        var score = 0.0;
        for (var c = 0u; c < params.dim; c += 1u) {
            score += q[asked + c] * k[at + c];
        }
        score *= params.scale;
        let higher = max(top, score);
        let keep = exp(max(top - higher, -80.0));
        let p = exp(max(score - higher, -80.0));
        total = total * keep + p;
        for (var c = 0u; c < params.dim; c += 1u) {
            sum[c] = sum[c] * keep + p * v[at + c];
        }
        top = higher;
    }
    for (var c = 0u; c < params.dim; c += 1u) {
        o[asked + c] = sum[c] / total;
    }
    lse[row] = top + log(total);
}

// ---- backward, delta ----
//
// One invocation per (b, t, h).

@group(0) @binding(1) var<storage, read> o_in: array<f32>;
@group(0) @binding(2) var<storage, read> d_o: array<f32>;
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
    for (var c = 0u; c < params.dim; c += 1u) {
        sum += d_o[row * params.dim + c] * o_in[row * params.dim + c];
    }
    delta_out[row] = sum;
}

// ---- backward, q ----
//
// One invocation per (b, h, t), t fastest.

@group(0) @binding(4) var<storage, read> d_out: array<f32>;
@group(0) @binding(5) var<storage, read> lse_in: array<f32>;
@group(0) @binding(6) var<storage, read> delta: array<f32>;
@group(0) @binding(7) var<storage, read_write> dq: array<f32>;

// p and ds of one pair of rows; the arguments are the starts of the rows of q and k.
fn pair(row: u32, asked: u32, at: u32) -> vec2<f32> {
    var score = 0.0;
    var dp = 0.0;
    for (var c = 0u; c < params.dim; c += 1u) {
        score += q[asked + c] * k[at + c];
        dp += d_out[asked + c] * v[at + c];
    }
    let p = exp(max(score * params.scale - lse_in[row], -80.0));
    return vec2<f32>(p, p * (dp - delta[row]) * params.scale);
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
    let asked = row * params.dim;
    var sum: array<f32, 128>;
    for (var s = 0u; s <= t; s += 1u) {
        let at = key_row(b, s, h / heads_per_group()) * params.dim;
        let ds = pair(row, asked, at).y;
        for (var c = 0u; c < params.dim; c += 1u) {
            sum[c] += ds * k[at + c];
        }
    }
    for (var c = 0u; c < params.dim; c += 1u) {
        dq[asked + c] = select(0.0, dq[asked + c], params.add != 0u) + sum[c];
    }
}

// ---- backward, k and v ----
//
// One invocation per (b, g, s), s fastest. It walks over the heads of its group in order, and over the queries from the
// last down to s, so that neighbours read the same query at the same time.

@group(0) @binding(7) var<storage, read_write> dk: array<f32>;
@group(0) @binding(8) var<storage, read_write> dv: array<f32>;

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
    let at = key_row(b, s, g) * params.dim;
    var key_sum: array<f32, 128>;
    var value_sum: array<f32, 128>;
    for (var member = 0u; member < heads_per_group(); member += 1u) {
        for (var t = params.tokens; t > s; t -= 1u) {
            let row = query_row(b, t - 1u, g * heads_per_group() + member);
            let asked = row * params.dim;
            let weight = pair(row, asked, at);
            for (var c = 0u; c < params.dim; c += 1u) {
                key_sum[c] += weight.y * q[asked + c];
                value_sum[c] += weight.x * d_out[asked + c];
            }
        }
    }
    for (var c = 0u; c < params.dim; c += 1u) {
        dk[at + c] = select(0.0, dk[at + c], params.add != 0u) + key_sum[c];
        dv[at + c] = select(0.0, dv[at + c], params.add_value != 0u) + value_sum[c];
    }
}
