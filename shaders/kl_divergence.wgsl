// divergence[row] = sum over v of P[v] (ln P[v] - ln Q[v]),   P = softmax(p[row]),  Q = softmax(q[row])
//
// p and q are logits [rows, vocab]. With largest logits Mp, Mq and sums Sp, Sq of exp(logit - M), the bracket is
// (p[v] - Mp) - (q[v] - Mq) - (ln Sp - ln Sq): exactly 0 for equal rows. One invocation per row. For evaluation only: there is no
// gradient.

#import shared/grid

struct Params {
    rows: u32,
    vocab: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> p: array<f32>;
@group(0) @binding(2) var<storage, read> q: array<f32>;
@group(0) @binding(3) var<storage, read_write> divergence: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.vocab;
    var largest_p = -1e30;
    var largest_q = -1e30;
    for (var v = 0u; v < params.vocab; v += 1u) {
        largest_p = max(largest_p, p[start + v]);
        largest_q = max(largest_q, q[start + v]);
    }
    var sum_p = 0.0;
    var sum_q = 0.0;
    for (var v = 0u; v < params.vocab; v += 1u) {
        sum_p += exp(p[start + v] - largest_p);
        sum_q += exp(q[start + v] - largest_q);
    }
    let shift = log(sum_p) - log(sum_q);
    var sum = 0.0;
    for (var v = 0u; v < params.vocab; v += 1u) {
        let a = p[start + v] - largest_p;
        let b = q[start + v] - largest_q;
        sum += exp(a) / sum_p * (a - b - shift);
    }
    divergence[row] = sum;
}
