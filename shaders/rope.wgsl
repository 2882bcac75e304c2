// Rotary position embedding, half-split pairs. With h = head_dim / 2 and position t of the row:
//
//   y[c]     = x[c] cos[t, c] - sign x[c + h] sin[t, c]
//   y[c + h] = x[c + h] cos[t, c] + sign x[c] sin[t, c]          c < h
//
// sign = 1 rotates, sign = -1 rotates back: the gradient. x and y are [batch, seq_len, heads, head_dim]; cos and sin are
// [seq_len, h], made on the host. One invocation per pair.

#import shared/grid

struct Params {
    rows: u32,     // batch * seq_len * heads
    heads: u32,
    seq_len: u32,
    half_dim: u32, // h
    add: u32,      // 1: y += .., 0: y = ..
    sign: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> cosines: array<f32>;
@group(0) @binding(3) var<storage, read> sines: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn rotate(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.half_dim;
    let channel = item % params.half_dim;
    if row >= params.rows {
        return;
    }
    let angle = row / params.heads % params.seq_len * params.half_dim + channel;
    let low = row * 2u * params.half_dim + channel;
    let high = low + params.half_dim;
    let c = cosines[angle];
    let s = sines[angle] * params.sign;
    let keep = params.add != 0u;
    y[low] = select(0.0, y[low], keep) + x[low] * c - x[high] * s;
    y[high] = select(0.0, y[high], keep) + x[high] * c + x[low] * s;
}
