// Gates of mHC from raw coefficients: read, write, and a mixing matrix that is (nearly) doubly stochastic.
//
//   pre_j  = sigmoid(raw[j])                          j < n
//   post_j = 2 sigmoid(raw[n + j])
//   L[i,j] = clamp(raw[2 n + i n + j], -30, 30)
//   R      = Sinkhorn(L):  M = exp(L - max L), then iterations times: divide each column by its sum, then each row
//   R      = [[a, 1 - a], [1 - a, a]],   a = sigmoid((L00 + L11 - L01 - L10) / 2)       if iterations = 0 (n = 2 only)
//
// raw is [rows, n^2 + 2 n], pre and post are [rows, n], mix = R is [rows, n n], row-major: R[i,j] is the weight of the old
// stream j in the new stream i. n is at most 8. The maximum is that of the whole matrix: with one per row the first
// operation, which divides columns, would give something else. No sum can underflow, since M >= exp(-60).

#import shared/grid
#import shared/sigmoid

struct Params {
    rows: u32,
    streams: u32,     // n
    iterations: u32,  // 0: the closed form
    has_pre: u32,     // of backward: whether there are gradients of pre, post, mix
    has_post: u32,
    has_mix: u32,
    add: u32,         // 1: draw += .., 0: draw = ..
}

const LIMIT: f32 = 30.0;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> raw: array<f32>;

/// A matrix of one row, row-major.
var<private> tile: array<f32, 64>;

fn first_raw(row: u32) -> u32 {
    return row * params.streams * (params.streams + 2u);
}

/// Element k of L.
fn limited(row: u32, k: u32) -> f32 {
    return clamp(raw[first_raw(row) + 2u * params.streams + k], -LIMIT, LIMIT);
}

/// a of the closed form.
fn share(row: u32) -> f32 {
    return sigmoid(0.5 * (limited(row, 0u) + limited(row, 3u) - limited(row, 1u) - limited(row, 2u)));
}

fn largest(row: u32) -> f32 {
    var most = -LIMIT;
    for (var k = 0u; k < params.streams * params.streams; k += 1u) {
        most = max(most, limited(row, k));
    }
    return most;
}

fn column_sum(j: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < params.streams; i += 1u) {
        sum += tile[i * params.streams + j];
    }
    return sum;
}

fn row_sum(i: u32) -> f32 {
    var sum = 0.0;
    for (var j = 0u; j < params.streams; j += 1u) {
        sum += tile[i * params.streams + j];
    }
    return sum;
}

fn scale_column(j: u32, factor: f32) {
    for (var i = 0u; i < params.streams; i += 1u) {
        tile[i * params.streams + j] *= factor;
    }
}

fn scale_row(i: u32, factor: f32) {
    for (var j = 0u; j < params.streams; j += 1u) {
        tile[i * params.streams + j] *= factor;
    }
}

// ---- forward: one invocation per row ----

@group(0) @binding(2) var<storage, read_write> pre: array<f32>;
@group(0) @binding(3) var<storage, read_write> post: array<f32>;
@group(0) @binding(4) var<storage, read_write> mix_out: array<f32>;

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
    let n = params.streams;
    for (var j = 0u; j < n; j += 1u) {
        pre[row * n + j] = sigmoid(raw[first_raw(row) + j]);
        post[row * n + j] = 2.0 * sigmoid(raw[first_raw(row) + n + j]);
    }
    if params.iterations == 0u {
        let a = share(row);
        mix_out[row * 4u] = a;
        mix_out[row * 4u + 1u] = 1.0 - a;
        mix_out[row * 4u + 2u] = 1.0 - a;
        mix_out[row * 4u + 3u] = a;
        return;
    }
    let most = largest(row);
    for (var k = 0u; k < n * n; k += 1u) {
        tile[k] = exp(limited(row, k) - most);
    }
    for (var t = 0u; t < params.iterations; t += 1u) {
        for (var j = 0u; j < n; j += 1u) {
            scale_column(j, 1.0 / column_sum(j));
        }
        for (var i = 0u; i < n; i += 1u) {
            scale_row(i, 1.0 / row_sum(i));
        }
    }
    for (var k = 0u; k < n * n; k += 1u) {
        mix_out[row * n * n + k] = tile[k];
    }
}

// ---- backward: one invocation per row ----
//
//   draw = dpre pre (1 - pre) | dpost post (1 - post / 2) | dL
//
// Sinkhorn: with g the gradient of a matrix B whose rows were divided by their sums, g <- (g - rowsum(g B)) / sum; the same
// for columns; from the last operation to the first. The matrices are rebuilt by multiplying with the sums, which the
// forward iterations, done again, leave in sums [2 iterations, n, rows]. Then dL = g M, the maximum counting as a constant;
// the columns of dL sum to zero, so it has no effect. Where L was clamped, dL is zero.

@group(0) @binding(2) var<storage, read> dpre: array<f32>;
@group(0) @binding(3) var<storage, read> dpost: array<f32>;
@group(0) @binding(4) var<storage, read> dmix: array<f32>;
@group(0) @binding(5) var<storage, read_write> sums: array<f32>;
@group(0) @binding(6) var<storage, read_write> draw: array<f32>;

/// The gradient that belongs to `tile`.
var<private> slope: array<f32, 64>;

fn sum_index(operation: u32, number: u32, row: u32) -> u32 {
    return (operation * params.streams + number) * params.rows + row;
}

/// Store or add the gradient of a raw coefficient.
fn put(at: u32, value: f32) {
    let old = select(0.0, draw[at], params.add != 0u);
    draw[at] = old + value;
}

/// Store or add the gradient of an element of L.
fn put_limited(row: u32, k: u32, value: f32) {
    let at = first_raw(row) + 2u * params.streams + k;
    put(at, select(0.0, value, abs(raw[at]) <= LIMIT));
}

fn backward_sinkhorn(row: u32) {
    let n = params.streams;
    let most = largest(row);
    for (var k = 0u; k < n * n; k += 1u) {
        tile[k] = exp(limited(row, k) - most);
        slope[k] = dmix[row * n * n + k];
    }
    for (var t = 0u; t < params.iterations; t += 1u) {
        for (var j = 0u; j < n; j += 1u) {
            let sum = column_sum(j);
            sums[sum_index(2u * t, j, row)] = sum;
            scale_column(j, 1.0 / sum);
        }
        for (var i = 0u; i < n; i += 1u) {
            let sum = row_sum(i);
            sums[sum_index(2u * t + 1u, i, row)] = sum;
            scale_row(i, 1.0 / sum);
        }
    }
    for (var back = params.iterations; back > 0u; back -= 1u) {
        let t = back - 1u;
        for (var i = 0u; i < n; i += 1u) {
            let sum = sums[sum_index(2u * t + 1u, i, row)];
            var along = 0.0;
            for (var j = 0u; j < n; j += 1u) {
                along += slope[i * n + j] * tile[i * n + j];
            }
            for (var j = 0u; j < n; j += 1u) {
                slope[i * n + j] = (slope[i * n + j] - along) / sum;
            }
            scale_row(i, sum);
        }
        for (var j = 0u; j < n; j += 1u) {
            let sum = sums[sum_index(2u * t, j, row)];
            var along = 0.0;
            for (var i = 0u; i < n; i += 1u) {
                along += slope[i * n + j] * tile[i * n + j];
            }
            for (var i = 0u; i < n; i += 1u) {
                slope[i * n + j] = (slope[i * n + j] - along) / sum;
            }
            scale_column(j, sum);
        }
    }
    for (var k = 0u; k < n * n; k += 1u) {
        put_limited(row, k, slope[k] * exp(limited(row, k) - most));
    }
}

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let n = params.streams;
    let start = first_raw(row);
    for (var j = 0u; j < n; j += 1u) {
        let opening = sigmoid(raw[start + j]);
        put(start + j, select(0.0, dpre[row * n + j] * opening * (1.0 - opening), params.has_pre != 0u));
        let half = sigmoid(raw[start + n + j]);
        put(start + n + j, select(0.0, dpost[row * n + j] * 2.0 * half * (1.0 - half), params.has_post != 0u));
    }
    if params.has_mix == 0u {
        for (var k = 0u; k < n * n; k += 1u) {
            put_limited(row, k, 0.0);
        }
    } else if params.iterations == 0u {
        let a = share(row);
        let at = row * 4u;
        let s = 0.5 * a * (1.0 - a) * (dmix[at] + dmix[at + 3u] - dmix[at + 1u] - dmix[at + 2u]);
        put_limited(row, 0u, s);
        put_limited(row, 1u, -s);
        put_limited(row, 2u, -s);
        put_limited(row, 3u, s);
    } else {
        backward_sinkhorn(row);
    }
}
