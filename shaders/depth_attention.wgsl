// Each token attends to its own sources along the depth of the network:
//
//     u = q * gain        r[i] = 1 / sqrt(mean(k[i]^2) + eps)        z[i] = r[i] * <u, k[i]>
//     a = softmax over i of z        mixed = sum over i of w[i] * v[i]        w = a, or a - 1/n if centered
//
// With a null source the softmax has one more term, of constant logit and value zero. All sources are slots of one
// history [slots, rows, dim]; source i takes its key and its value from two slots, which may be the same. q is a row of
// the parameter `query`. Kept for the gradient: the weights a [rows, n or n + 1] and the scores (z, r) [rows, n, 2].
//
// Gradient, with g = d mixed:
//
//     p[i] = <g, v[i]>        dz[i] = a[i] * (p[i] - sum over j of a[j] * p[j])
//     dv[i] += w[i] * g        dk[i] += dz[i] * r[i] * (u - (r[i] * z[i] / dim) * k[i])
//     du = sum over rows and sources of dz[i] * r[i] * k[i]        dq += gain * du        dgain += q * du
//
// Variants: a = sigmoid(z) instead, with dz[i] = a[i] * (1 - a[i]) * p[i]; r[i] = 1, with dk[i] += dz[i] * u; and heads, which
// split the channels of u, g and v into parts with scores and weights of their own, while r is that of the whole key:
// arrays by row have one row for each head then, and dk[i] += r[i] * (dz u of all heads - (r[i] / dim) sum of dz z k[i]).
// If the logarithm of the softmax's sum is used as well, with gradient dlse: dz[i] += a[i] * dlse.
//
// The kernels are small, so that each has as many invocations as the work allows: (row, source) for the inner products,
// row for the softmax, (row, channel) for the rest. This file is for any dim.

alias Value = f32;
const CHANNELS = 1u;

fn inner(x: Value, y: Value) -> f32 {
    return x * y;
}

#import shared/depth_attention
