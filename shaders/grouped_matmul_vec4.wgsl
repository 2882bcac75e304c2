// `grouped_matmul.wgsl` with loads of four numbers at once and tiles of 8 x 8 elements of c (shared/matmul_vec4.wgsl).
//
// The same three products and parameters. nt needs k divisible by 4, nn needs k and n, tn needs m and n; the op chooses. The
// matrices of all experts are a whole number of vectors apart.

#import shared/grid
#import shared/matmul_vec4

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
@group(0) @binding(2) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> c: array<f32>;
@group(0) @binding(4) var<storage, read_write> c4: array<vec4<f32>>;

// ---- nt and nn: one invocation per tile of c ----

@group(0) @binding(1) var<storage, read> tile_expert: array<u32>;

@compute @workgroup_size(WG)
fn nt(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n + 7u) / 8u;
    let row = item / across * 8u;
    if row >= params.m {
        return;
    }
    let expert = tile_expert[row / params.tile];
    if expert != NONE {
        nt_tile(row, item % across * 8u, expert * (params.stride / 4u));
    }
}

@compute @workgroup_size(WG)
fn nn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let across = (params.n / 4u + 1u) / 2u;
    let row = item / across * 8u;
    if row >= params.m {
        return;
    }
    let expert = tile_expert[row / params.tile];
    if expert != NONE {
        nn_tile(row, item % across * 2u, expert * (params.stride / 4u));
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
    let across = (params.n / 4u + 1u) / 2u;
    let tiles = (params.m / 4u + 1u) / 2u * across;
    let expert = item / tiles;
    if expert >= params.experts {
        return;
    }
    let first = places[params.experts + expert];
    let end = first + places[expert];
    tn_tile(item % tiles / across * 2u, item % across * 2u, first, end, expert * (params.stride / 4u));
}
