// Whether a number is NaN or infinite, by its bits. Comparisons do not find NaN on every device: `v != v` is false on
// both software adapters that this project is tested on. Use it on values that were loaded from a buffer.

fn is_non_finite(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u;
}
