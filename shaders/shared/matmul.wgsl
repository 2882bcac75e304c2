// Tiles of 4 x 4 elements of the three matrix products of a linear layer (see matmul.wgsl).
//
// One invocation owns a tile of c, of which `row` and `column` are the first, and keeps it in four vectors, one a row. Tiles
// at the edge compute elements twice that do not exist (indices are clamped) and store only those that do. The importing
// file declares params (m, n, k, add) and the arrays a, b, c.

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

fn store(start: u32, row: u32, column: u32, value: f32) {
    if row < params.m && column < params.n {
        let at = start + row * params.n + column;
        c[at] = select(0.0, c[at], params.add != 0u) + value;
    }
}

fn store_row(start: u32, row: u32, column: u32, values: vec4<f32>) {
    store(start, row, column, values.x);
    store(start, row, column + 1u, values.y);
    store(start, row, column + 2u, values.z);
    store(start, row, column + 3u, values.w);
}

// c = a b^T, b begins at element `weights`
fn nt_tile(row: u32, column: u32, weights: u32) {
    let a_at = min(row + LANES, vec4(params.m - 1u)) * params.k;
    let b_at = weights + min(column + LANES, vec4(params.n - 1u)) * params.k;
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var l = 0u; l < params.k; l += 1u) {
        let right = vec4(b[b_at.x + l], b[b_at.y + l], b[b_at.z + l], b[b_at.w + l]);
        sum0 += a[a_at.x + l] * right;
        sum1 += a[a_at.y + l] * right;
        sum2 += a[a_at.z + l] * right;
        sum3 += a[a_at.w + l] * right;
    }
    store_row(0u, row, column, sum0);
    store_row(0u, row + 1u, column, sum1);
    store_row(0u, row + 2u, column, sum2);
    store_row(0u, row + 3u, column, sum3);
}

// c = a b, b begins at element `weights`
fn nn_tile(row: u32, column: u32, weights: u32) {
    let a_at = min(row + LANES, vec4(params.m - 1u)) * params.k;
    var b_at = weights + min(column + LANES, vec4(params.n - 1u));
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var l = 0u; l < params.k; l += 1u) {
        let right = vec4(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
        sum0 += a[a_at.x + l] * right;
        sum1 += a[a_at.y + l] * right;
        sum2 += a[a_at.z + l] * right;
        sum3 += a[a_at.w + l] * right;
        b_at += params.n;
    }
    store_row(0u, row, column, sum0);
    store_row(0u, row + 1u, column, sum1);
    store_row(0u, row + 2u, column, sum2);
    store_row(0u, row + 3u, column, sum3);
}

// c = a^T b over rows first to end of both; c begins at element `start`
fn tn_tile(row: u32, column: u32, first: u32, end: u32, start: u32) {
    var a_at = first * params.m + min(row + LANES, vec4(params.m - 1u));
    var b_at = first * params.n + min(column + LANES, vec4(params.n - 1u));
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var l = first; l < end; l += 1u) {
        let right = vec4(b[b_at.x], b[b_at.y], b[b_at.z], b[b_at.w]);
        sum0 += a[a_at.x] * right;
        sum1 += a[a_at.y] * right;
        sum2 += a[a_at.z] * right;
        sum3 += a[a_at.w] * right;
        a_at += params.m;
        b_at += params.n;
    }
    store_row(start, row, column, sum0);
    store_row(start, row + 1u, column, sum1);
    store_row(start, row + 2u, column, sum2);
    store_row(start, row + 3u, column, sum3);
}
