// Must be refused: an atomic is written without atomicStore. naga accepts it.

@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    counts[lane] = 0u;
}
