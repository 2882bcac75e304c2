// 1 / (1 + e^-v); beyond 80 the result is 0 or 1 in single precision, and e^v would not be finite.

fn sigmoid(v: f32) -> f32 {
    return 1.0 / (1.0 + exp(-clamp(v, -80.0, 80.0)));
}
