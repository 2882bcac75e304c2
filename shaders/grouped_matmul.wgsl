// The three matrix products of a linear layer whose rows go through different matrices: one for each expert. Rows are
// sorted (expert_sort.wgsl): each tile of params.tile rows belongs to one expert, tiles behind the last to none.
//
//   nt:  c[i, j] (+)= sum over l of a[i, l] W_e[j, l],  e the expert of row i
//   nn:  c[i, j] (+)= sum over l of a[i, l] W_e[l, j]
//   tn:  c_e[i, j] (+)= sum over the rows r of expert e of a[r, i] b[r, j]
//
// In nt and nn, c is [m, n], the sum has k terms, and b holds all W_e, params.stride elements apart; tiles of no expert are left
// alone. In tn, c holds matrices [m, n], as far apart, and places [2, experts] says how many rows each expert has and where they
// begin; an expert without rows gets 0. One invocation owns a tile of 4 x 4
// elements of c (shared/matmul.wgsl), which lies in one tile of rows. `grouped_matmul_vec4.wgsl` is the faster version for rows of
// whole vectors.

#import shared/grid
#import shared/matmul

const NONE: u32 = 0xffffffffu;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    experts: u32,
    tile: u32,    // rows of a tile
    stride: u32,  // elements from one expert's matrix to the next
    add: u32,     // 1: c += .., 0: c = ..
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> c: array<f32>;

// ---- nt and nn: one invocation per tile of c ----

@group(0) @binding(1) var<storage, read> tile_expert: array<u32>;

@compute @workgroup_size(WG)
fn nt(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let row = item / across * 4u;
    if row >= params.m {
        return;
    }
    let expert = tile_expert[row / params.tile];
    if expert != NONE {
        nt_tile(row, item % across * 4u, expert * params.stride);
    }
}

@compute @workgroup_size(WG)
fn nn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let row = item / across * 4u;
    if row >= params.m {
        return;
    }
    let expert = tile_expert[row / params.tile];
    if expert != NONE {
        nn_tile(row, item % across * 4u, expert * params.stride);
    }
}

// ---- tn: one invocation per expert and tile of its matrix ----

@group(0) @binding(1) var<storage, read> places: array<u32>;

@compute @workgroup_size(WG)
fn tn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n + 3u) / 4u;
    let tiles = (params.m + 3u) / 4u * across;
    let expert = item / tiles;
    if expert >= params.experts {
        return;
    }
    let first = places[params.experts + expert];
    let end = first + places[expert];
    tn_tile(item % tiles / across * 4u, item % across * 4u, first, end, expert * params.stride);
}
