// `matmul.wgsl` with loads of four numbers at once and larger tiles: on a software driver three times as fast.
//
// The same three products and parameters. nt needs k divisible by 4, nn needs k and n, tn needs m and n; the op chooses.
// One invocation owns a tile of 8 x 8 elements of c (shared/matmul_vec4.wgsl).

#import shared/grid
#import shared/matmul_vec4

struct Params {
    m: u32,
    n: u32,
    k: u32,
    slab: u32,  // terms per slab of tn
    add: u32,   // 1: c += .., 0: c = ..
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;

// ---- nt: y = x W^T; a = x, b = W. c may have any number of columns ----

@group(0) @binding(3) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(WG)
fn nt(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = flat_index(group, groups, lane);
    let across = (params.n + 7u) / 8u;
    let row = tile / across * 8u;
    if row < params.m {
        nt_tile(row, tile % across * 8u, 0u);
    }
}

// ---- nn and tn: rows of c in vectors ----

@group(0) @binding(3) var<storage, read_write> c4: array<vec4<f32>>;

// ---- nn: dx = dy W; a = dy, b = W ----

@compute @workgroup_size(WG)
fn nn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = flat_index(group, groups, lane);
    let across = (params.n / 4u + 1u) / 2u;
    let row = tile / across * 8u;
    if row < params.m {
        nn_tile(row, tile % across * 2u, 0u);
    }
}

// ---- tn: dW = dy^T x; a = dy, b = x ----

@compute @workgroup_size(WG)
fn tn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n / 4u + 1u) / 2u;
    let tiles = (params.m / 4u + 1u) / 2u * across;
    let slab = item / tiles;
    let first = slab * params.slab;
    if first < params.k {
        let end = min(first + params.slab, params.k);
        let row = item % tiles / across * 2u;
        tn_tile(row, item % across * 2u, first, end, slab * params.m * (params.n / 4u));
    }
}
