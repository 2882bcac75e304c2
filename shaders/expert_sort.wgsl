// Gives every choice of an expert a row, so that the rows of an expert lie together and begin on a whole tile.
//
//   places[1, e] = first row of expert e: the sum over earlier experts of places[0, e], each rounded up to whole tiles
//   slot_row[i]  = places[1, chosen[i]] + rank[i]                             row of pair i
//   row_pair[r]  = the pair whose row r is, NONE for padding
//   tile_expert  = the expert of each tile of `tile` rows, NONE behind the last
//
// places [2, experts] begins with how many pairs each expert has (expert_rank.wgsl). chosen, rank and slot_row are [pairs]; there are `rows` rows: enough for any choice, so that nothing
// about the launch depends on it.

#import shared/grid

const NONE: u32 = 0xffffffffu;

struct Params {
    pairs: u32,
    experts: u32,
    tile: u32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- offsets: one invocation in all ----

@group(0) @binding(1) var<storage, read_write> places_out: array<u32>;

@compute @workgroup_size(WG)
fn forward_offsets(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if flat_index(group, groups, lane) != 0u {
        return;
    }
    var next = 0u;
    for (var e = 0u; e < params.experts; e += 1u) {
        places_out[params.experts + e] = next;
        next += (places_out[e] + params.tile - 1u) / params.tile * params.tile;
    }
}

// ---- forward: one invocation per pair and per row, whichever are more ----

@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read> rank: array<u32>;
@group(0) @binding(4) var<storage, read_write> slot_row: array<u32>;
@group(0) @binding(5) var<storage, read_write> row_pair: array<u32>;
@group(0) @binding(6) var<storage, read_write> tile_expert: array<u32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i < params.pairs {
        let row = places[params.experts + chosen[i]] + rank[i];
        slot_row[i] = row;
        row_pair[row] = i;
    }
    if i >= params.rows {
        return;
    }
    // Rows that belong to no pair are written here, all others above.
    var expert = NONE;
    var used = false;
    for (var e = 0u; e < params.experts; e += 1u) {
        let first = places[params.experts + e];
        let tiles = (places[e] + params.tile - 1u) / params.tile;
        if i >= first && i < first + tiles * params.tile {
            expert = e;
            used = i < first + places[e];
        }
    }
    if !used {
        row_pair[i] = NONE;
    }
    if i % params.tile == 0u {
        tile_expert[i / params.tile] = expert;
    }
}
