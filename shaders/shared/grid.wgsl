// Barrier-free kernels number their invocations 0, 1, 2, ..; more than 65,535 workgroups fold into y.

override WG: u32 = 64u;

fn flat_index(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * WG + lane;
}
