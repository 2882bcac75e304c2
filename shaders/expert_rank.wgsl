// Where each choice of an expert stands among all choices of that expert.
//
//   rank[i]   = number of j < i with chosen[j] = chosen[i]
//   places[e] = number of j with chosen[j] = e      (places is [2, experts]; expert_sort.wgsl writes the second row)
//
// chosen is [pairs]: a pair is a token and one of its slots. One workgroup per expert: each invocation counts its share of the
// pairs, a prefix sum over the invocations says where its first choice stands, and a second look at its share hands out
// the ranks. The order is that of the pairs, so it is the same on every device.

const LANES: u32 = 256u;

struct Params {
    pairs: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> chosen: array<u32>;
@group(0) @binding(2) var<storage, read_write> rank: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;

var<workgroup> sums: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let e = group.x;
    let share = (params.pairs + LANES - 1u) / LANES;
    let first = min(lane * share, params.pairs);
    let end = min(first + share, params.pairs);
    var own = 0u;
    for (var i = first; i < end; i += 1u) {
        own += select(0u, 1u, chosen[i] == e);
    }
    sums[lane] = own;
    workgroupBarrier();
    for (var step = 1u; step < LANES; step *= 2u) {
        var earlier = 0u;
        if lane >= step {
            earlier = sums[lane - step];
        }
        workgroupBarrier();
        sums[lane] += earlier;
        workgroupBarrier();
    }
    // Now sums[lane] counts the choices up to the end of this invocation's share.
    var next = sums[lane] - own;
    for (var i = first; i < end; i += 1u) {
        if chosen[i] == e {
            rank[i] = next;
            next += 1u;
        }
    }
    if lane == LANES - 1u {
        places[e] = sums[lane];
    }
}
