// Must be refused: half of the workgroup never reaches the barrier. naga accepts it.

var<workgroup> shared_sum: f32;

@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    if data[lane] > 0.0 {
        shared_sum = data[lane];
        workgroupBarrier();
    }
    data[lane] = shared_sum;
}
