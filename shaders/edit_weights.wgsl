// Depth weights as somebody wants them, for asking what a route is worth. Each row of weights w is mapped, and brought back to
// the sum 1 if asked:
//
//   b_c = shift_c + sum over a of w_a map[a, c]
//   w_c = b_c / sum b      if the flag is set and the sum is positive, else b_c
//
// One invocation per row. For evaluation only: there is no gradient.

#import shared/grid

struct Params {
    rows: u32,
    columns: u32,  // at most 65: 64 sources and the null source
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> edit: array<f32>;  // map [columns, columns], shift [columns], flag [1]
@group(0) @binding(2) var<storage, read_write> weights: array<f32>;

@compute @workgroup_size(WG)
fn apply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let n = params.columns;
    var old: array<f32, 65>;
    for (var a = 0u; a < n; a += 1u) {
        old[a] = weights[row * n + a];
    }
    var sum = 0.0;
    for (var c = 0u; c < n; c += 1u) {
        var b = edit[n * n + c];
        for (var a = 0u; a < n; a += 1u) {
            b += old[a] * edit[a * n + c];
        }
        sum += b;
        weights[row * n + c] = b;
    }
    if edit[n * n + n] == 0.0 || sum <= 0.0 {
        return;
    }
    for (var c = 0u; c < n; c += 1u) {
        weights[row * n + c] /= sum;
    }
}
