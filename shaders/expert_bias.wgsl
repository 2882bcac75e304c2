// bias_e += rate sign(mean over j of c_j - c_e)
//
// Loss-free balancing: experts that were chosen too seldom are selected more easily next time. counts c [experts] are those
// of the whole step. Counts are whole numbers, so they are compared as such: sign(0) = 0 is exact. A step that was
// stopped (status[0], see clip.wgsl) changes nothing. One invocation per expert.

#import shared/grid

struct Params {
    experts: u32,
    rate: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> counts: array<f32>;
@group(0) @binding(2) var<storage, read> status: array<f32>;
@group(0) @binding(3) var<storage, read_write> bias: array<f32>;

@compute @workgroup_size(WG)
fn update(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let e = flat_index(group, groups, lane);
    if e >= params.experts {
        return;
    }
    if status[0] != 0.0 {
        return;
    }
    var total = 0u;
    for (var j = 0u; j < params.experts; j += 1u) {
        total += u32(counts[j]);
    }
    let own = u32(counts[e]) * params.experts;
    if own < total {
        bias[e] += params.rate;
    } else if own > total {
        bias[e] -= params.rate;
    }
}
