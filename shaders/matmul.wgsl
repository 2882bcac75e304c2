// The three matrix products of a linear layer. W is [out, in], x is [rows, in], y is [rows, out], all row-major.
//
//   nt:  c[i, j] (+)= sum over l of a[i, l] b[j, l]      y  = x W^T       a = x,  b = W
//   nn:  c[i, j] (+)= sum over l of a[i, l] b[l, j]      dx = dy W        a = dy, b = W
//   tn:  c[i, j] (+)= sum over l of a[l, i] b[l, j]      dW = dy^T x      a = dy, b = x
//
// c is [m, n], the sum has k terms. One invocation owns a tile of 4 x 4 elements of c (shared/matmul.wgsl).
// `matmul_vec4.wgsl` is the faster version for `in` divisible by 4.
//
// The sum of tn runs over tokens. It is cut into slabs of `slab` terms: c is [slabs, m, n], and `column_sum` adds the slabs.

#import shared/grid
#import shared/matmul

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
    if row < params.m {
        nt_tile(row, tile % across * 4u, 0u);
    }
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
    if row < params.m {
        nn_tile(row, tile % across * 4u, 0u);
    }
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
    if first < params.k {
        let end = min(first + params.slab, params.k);
        tn_tile(row, column, first, end, slab * params.m * params.n);
    }
}
