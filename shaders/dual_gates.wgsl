// Gates of two streams (DAR, mHC-2): how a sublayer reads them, mixes them and writes to them.
//
//   f^j     = h^j r^j,   r^j = 1 / sqrt(mean(h^j^2) + eps)                       j = 0, 1
//   a_j     = alpha_bias[j] + <alpha_weight[j], f^j>
//   alpha_j = exp(a_j) / (exp(a_0) + exp(a_1)),   or sigmoid(a_j) if params.sigmoid
//   rho     = sigmoid(rho_bias + (<rho_weight[0], f^0> + <rho_weight[1], f^1>))
//   beta_j  = 2 sigmoid(beta_bias[j] + <beta_weight[j], f^j>)
//   x       = alpha_0 h^0 + alpha_1 h^1
//
// h0, h1, x are [rows, dim]; gates are [rows, 5]: alpha_0, alpha_1, rho, beta_0, beta_1; r is [rows, 2], kept for the
// gradient. The parameters are ranges of `span`, a part of the parameter arena, and begin at the offsets of params:
// biases [2], [1], [2] and weights [2, dim]. The offset NONE says that there is no such parameter: without a weight the
// gate is the same for all rows, without a bias (read-out) rho and beta are 0.
//
// Exchanging the streams exchanges the results and changes no bit, as long as nothing is fused: both streams use the same
// expressions, and each sum over the streams has two terms.

#import shared/grid
#import shared/sigmoid

const NONE: u32 = 0xffffffffu;

struct Params {
    rows: u32,
    dim: u32,
    chunk: u32,        // rows per block of backward_params
    columns: u32,      // of backward_params
    sigmoid: u32,      // 1: alpha_j = sigmoid(a_j), 0: softmax
    stream: u32,       // of backward
    add: u32,          // 1: dh += .., 0: dh = ..
    has_dx: u32,       // 0: nothing depends on x
    has_dgates: u32,   // 0: nothing depends on the gates but x
    alpha_bias: u32,
    alpha_weight: u32,
    rho_bias: u32,
    rho_weight: u32,
    beta_bias: u32,
    beta_weight: u32,
    eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> h0: array<f32>;
@group(0) @binding(2) var<storage, read> h1: array<f32>;
@group(0) @binding(3) var<storage, read> span: array<f32>;

// ---- forward: one invocation per row ----

@group(0) @binding(4) var<storage, read_write> x: array<f32>;
@group(0) @binding(5) var<storage, read_write> gates_out: array<f32>;
@group(0) @binding(6) var<storage, read_write> r_out: array<f32>;

/// Element i of both rows of a weight.
fn both_weights(offset: u32, i: u32) -> vec2<f32> {
    if offset == NONE {
        return vec2<f32>(0.0);
    }
    return vec2<f32>(span[offset + i], span[offset + params.dim + i]);
}

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.dim;
    var squares = vec2<f32>(0.0);
    var along_alpha = vec2<f32>(0.0);
    var along_rho = vec2<f32>(0.0);
    var along_beta = vec2<f32>(0.0);
    for (var i = 0u; i < params.dim; i += 1u) {
        let h = vec2<f32>(h0[start + i], h1[start + i]);
        squares += h * h;
        along_alpha += h * both_weights(params.alpha_weight, i);
        along_rho += h * both_weights(params.rho_weight, i);
        along_beta += h * both_weights(params.beta_weight, i);
    }
    let r = inverseSqrt(squares / f32(params.dim) + params.eps);
    r_out[row * 2u] = r.x;
    r_out[row * 2u + 1u] = r.y;

    let a = vec2<f32>(span[params.alpha_bias], span[params.alpha_bias + 1u]) + r * along_alpha;
    // A softmax over two is the sigmoid of the difference.
    let other = select(a.yx, vec2<f32>(0.0), params.sigmoid != 0u);
    let alpha = vec2<f32>(sigmoid(a.x - other.x), sigmoid(a.y - other.y));
    var rho = 0.0;
    var beta = vec2<f32>(0.0);
    if params.rho_bias != NONE {
        rho = sigmoid(span[params.rho_bias] + (r.x * along_rho.x + r.y * along_rho.y));
        let b = vec2<f32>(span[params.beta_bias], span[params.beta_bias + 1u]) + r * along_beta;
        beta = 2.0 * vec2<f32>(sigmoid(b.x), sigmoid(b.y));
    }
    gates_out[row * 5u] = alpha.x;
    gates_out[row * 5u + 1u] = alpha.y;
    gates_out[row * 5u + 2u] = rho;
    gates_out[row * 5u + 3u] = beta.x;
    gates_out[row * 5u + 4u] = beta.y;
    for (var i = 0u; i < params.dim; i += 1u) {
        x[start + i] = alpha.x * h0[start + i] + alpha.y * h1[start + i];
    }
}

// ---- backward, logits: one invocation per row ----
//
// dlogits [rows, 5] are the gradients of what stands inside softmax and sigmoid, in the order of the gates.
//
//   dalpha_j = dgates[j] + <dx, h^j>
//   softmax:  dlogit_j = alpha_0 alpha_1 (dalpha_j - dalpha_other)
//   sigmoid:  dlogit_j = alpha_j (1 - alpha_j) dalpha_j
//   rho:      dlogit   = rho (1 - rho) drho
//   beta:     dlogit   = beta_j (1 - beta_j / 2) dbeta_j
//
// Gates that do not exist are 0 and get 0.

@group(0) @binding(3) var<storage, read> gates_in: array<f32>;
@group(0) @binding(4) var<storage, read> dx_in: array<f32>;
@group(0) @binding(5) var<storage, read> dgates: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits_out: array<f32>;

@compute @workgroup_size(WG)
fn backward_logits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    var dalpha = vec2<f32>(0.0);
    var drho = 0.0;
    var dbeta = vec2<f32>(0.0);
    if params.has_dx != 0u {
        let start = row * params.dim;
        for (var i = 0u; i < params.dim; i += 1u) {
            dalpha += dx_in[start + i] * vec2<f32>(h0[start + i], h1[start + i]);
        }
    }
    let own = row * 5u;
    if params.has_dgates != 0u {
        dalpha += vec2<f32>(dgates[own], dgates[own + 1u]);
        drho = dgates[own + 2u];
        dbeta = vec2<f32>(dgates[own + 3u], dgates[own + 4u]);
    }
    let alpha = vec2<f32>(gates_in[own], gates_in[own + 1u]);
    let rho = gates_in[own + 2u];
    let beta = vec2<f32>(gates_in[own + 3u], gates_in[own + 4u]);
    let softmax = alpha.x * alpha.y * (dalpha - dalpha.yx);
    let da = select(softmax, alpha * (1.0 - alpha) * dalpha, params.sigmoid != 0u);
    let db = beta * (1.0 - 0.5 * beta) * dbeta;
    dlogits_out[own] = da.x;
    dlogits_out[own + 1u] = da.y;
    dlogits_out[own + 2u] = rho * (1.0 - rho) * drho;
    dlogits_out[own + 3u] = db.x;
    dlogits_out[own + 4u] = db.y;
}

// ---- backward, one stream: one invocation per row ----
//
//   df = dlogit_alpha_j alpha_weight[j] + dlogit_rho rho_weight[j] + dlogit_beta_j beta_weight[j]
//   dh += alpha_j dx + r (df - h r^2 mean(df h))
//
// One stream a dispatch, because both may be the same tensor, and because of the limit of eight bindings.

@group(0) @binding(1) var<storage, read> h: array<f32>;
@group(0) @binding(2) var<storage, read> dx: array<f32>;
@group(0) @binding(4) var<storage, read> gates: array<f32>;
@group(0) @binding(5) var<storage, read> r: array<f32>;
@group(0) @binding(6) var<storage, read> dlogits: array<f32>;
@group(0) @binding(7) var<storage, read_write> dh: array<f32>;

/// Element i of this stream's row of a weight.
fn own_weight(offset: u32, i: u32) -> f32 {
    if offset == NONE {
        return 0.0;
    }
    return span[offset + params.stream * params.dim + i];
}

fn feature_gradient(row: u32, i: u32) -> f32 {
    return dlogits[row * 5u + params.stream] * own_weight(params.alpha_weight, i)
        + dlogits[row * 5u + 2u] * own_weight(params.rho_weight, i)
        + dlogits[row * 5u + 3u + params.stream] * own_weight(params.beta_weight, i);
}

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.dim;
    var along = 0.0;
    for (var i = 0u; i < params.dim; i += 1u) {
        along += feature_gradient(row, i) * h[start + i];
    }
    let scale = r[row * 2u + params.stream];
    let pull = along * scale * scale / f32(params.dim);
    let alpha = select(0.0, gates[row * 5u + params.stream], params.has_dx != 0u);
    for (var i = 0u; i < params.dim; i += 1u) {
        let old = select(0.0, dh[start + i], params.add != 0u);
        let through = scale * (feature_gradient(row, i) - h[start + i] * pull);
        dh[start + i] = old + (alpha * dx[start + i] + through);
    }
}

// ---- backward, parameters: partial[block, column] = sum over the block's rows ----
//
// Columns: the five biases in the order of the gates, then alpha_weight, rho_weight and beta_weight, each [2, dim].
// One invocation per element of partial; backward_params_sum adds the blocks in order, one invocation per column, to
// where the parameter's gradient lies in dspan. Columns of absent parameters are left alone.

@group(0) @binding(3) var<storage, read> r_in: array<f32>;
@group(0) @binding(4) var<storage, read> dlogits_in: array<f32>;
@group(0) @binding(5) var<storage, read_write> partial: array<f32>;

/// Where the parameter of a column lies in the span, or NONE.
fn offset_of(column: u32) -> u32 {
    var offset = params.alpha_bias;
    var within = column;
    if column >= 5u {
        let family = (column - 5u) / (2u * params.dim);
        within = (column - 5u) % (2u * params.dim);
        offset = select(select(params.alpha_weight, params.rho_weight, family == 1u), params.beta_weight, family == 2u);
    } else if column >= 3u {
        offset = params.beta_bias;
        within = column - 3u;
    } else if column == 2u {
        offset = params.rho_bias;
        within = 0u;
    }
    return select(offset + within, NONE, offset == NONE);
}

@compute @workgroup_size(WG)
fn backward_params(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let block = item / params.columns;
    let column = item % params.columns;
    let first = block * params.chunk;
    if first >= params.rows || offset_of(column) == NONE {
        return;
    }
    let end = min(first + params.chunk, params.rows);
    var sum = 0.0;
    if column < 5u {
        for (var row = first; row < end; row += 1u) {
            sum += dlogits_in[row * 5u + column];
        }
    } else {
        let family = (column - 5u) / (2u * params.dim);
        let stream = (column - 5u) / params.dim % 2u;
        let i = (column - 5u) % params.dim;
        let logit = select(select(stream, 2u, family == 1u), 3u + stream, family == 2u);
        for (var row = first; row < end; row += 1u) {
            let at = row * params.dim + i;
            let feature = r_in[row * 2u + stream] * select(h0[at], h1[at], stream == 1u);
            sum += dlogits_in[row * 5u + logit] * feature;
        }
    }
    partial[item] = sum;
}

@group(0) @binding(1) var<storage, read> partial_in: array<f32>;
@group(0) @binding(2) var<storage, read_write> dspan: array<f32>;

@compute @workgroup_size(WG)
fn backward_params_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = flat_index(group, groups, lane);
    if column >= params.columns {
        return;
    }
    let target_offset = offset_of(column);
    if target_offset == NONE {
        return;
    }
    var sum = dspan[target_offset];
    for (var first = 0u; first < params.rows; first += params.chunk) {
        sum += partial_in[first / params.chunk * params.columns + column];
    }
    dspan[target_offset] = sum;
}
