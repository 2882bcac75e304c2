// The three matrix products of a linear layer. W is [out, in], x is [rows, in], y is [rows, out], all row-major.
//
//   nt:  c[i, j] (+)= sum over l of a[i, l] b[j, l]      y  = x W^T       a = x,  b = W
//   nn:  c[i, j] (+)= sum over l of a[i, l] b[l, j]      dx = dy W        a = dy, b = W
//   tn:  c[i, j] (+)= sum over l of a[l, i] b[l, j]      dW = dy^T x      a = dy, b = x
//
// c is [m, n], the sum has k terms. One invocation owns a tile of 4 x 4 elements of c and keeps it in four vectors, one a
// row. Tiles at the edge compute elements twice that do not exist (indices are clamped) and store only those that do.
// `matmul_vec4.wgsl` is the faster version for `in` divisible by 4.
//
// The sum of tn runs over tokens. It is cut into slabs of `slab` terms: c is [slabs, m, n], and `column_sum` adds the slabs.

#import shared/grid

struct Params {
    m: u32,
    n: u32,
    k: u32,
    slab: u32,  // terms per slab of tn
    add: u32,   // 1: c += .., 0: c = ..
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

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

// ---- y = x W^T ----

@compute @workgroup_size(WG)
fn nt(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let row = tile / across * 4u;
    let column = tile % across * 4u;
    if row >= params.m {
        return;
    }
    let a_at = min(row + LANES, vec4(params.m - 1u)) * params.k;
    let b_at = min(column + LANES, vec4(params.n - 1u)) * params.k;
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

// ---- dx = dy W ----

@compute @workgroup_size(WG)
fn nn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let row = tile / across * 4u;
    let column = tile % across * 4u;
    if row >= params.m {
        return;
    }
    let a_at = min(row + LANES, vec4(params.m - 1u)) * params.k;
    var b_at = min(column + LANES, vec4(params.n - 1u));
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

// ---- dW = dy^T x ----

@compute @workgroup_size(WG)
fn tn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let tiles = (params.m + 3u) / 4u * across;
    let slab = item / tiles;
    let row = item % tiles / across * 4u;
    let column = item % across * 4u;
    let first = slab * params.slab;
    if first >= params.k {
        return;
    }
    let end = min(first + params.slab, params.k);
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
    let start = slab * params.m * params.n;
    store_row(start, row, column, sum0);
    store_row(start, row + 1u, column, sum1);
    store_row(start, row + 2u, column, sum2);
    store_row(start, row + 3u, column, sum3);
}
