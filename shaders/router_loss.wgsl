// The auxiliary losses of a router: one that wants experts to be used alike, and one that keeps its logits small.
//
//   balance = balance_factor * mean over groups of  sum over e of  f_e P_e
//   f_e     = experts / (top_k span) * (number of tokens of the group that chose e)                       a constant
//   P_e     = mean over the tokens of the group of  softmax(z)_e,  or  s_e / sum over j of s_j, s = sigmoid(z), if params.sigmoid
//   z_loss  = z_factor * mean over tokens of  logsumexp(z)^2
//
// A group is `span` tokens: a sequence (sequence loss of DeepSeek-V3), or all of the batch (Switch). The factors contain
// the coefficients and one over the number of passes of a step.
//
// logits z are [rows, experts], chosen is [rows, top_k]; norms [rows, 2] are logsumexp(z) and the sum of s; sums
// [groups, 2 experts + 1] are counts, sums of the probabilities, and the sum of logsumexp^2.

#import shared/grid
#import shared/sigmoid

struct Params {
    rows: u32,
    experts: u32,
    top_k: u32,
    span: u32,         // tokens of a group
    chunk: u32,        // rows per block of forward_blocks
    sigmoid: u32,      // which probabilities
    has_dbalance: u32, // 0: nothing depends on the balance loss
    has_dz: u32,       // the same for the z-loss
    add: u32,          // 1: dlogits += .., 0: dlogits = ..
    balance_factor: f32,
    z_factor: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;

// ---- forward: norms, one invocation per row ----

@group(0) @binding(2) var<storage, read_write> norms_out: array<f32>;

@compute @workgroup_size(WG)
fn forward_norms(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    let start = row * params.experts;
    var largest = -1e30;
    for (var e = 0u; e < params.experts; e += 1u) {
        largest = max(largest, logits[start + e]);
    }
    var sum = 0.0;
    var scores = 0.0;
    for (var e = 0u; e < params.experts; e += 1u) {
        let z = logits[start + e];
        sum += exp(z - largest);
        scores += sigmoid(z);
    }
    norms_out[row * 2u] = largest + log(sum);
    norms_out[row * 2u + 1u] = scores;
}

// ---- forward: sums over blocks of rows, one invocation per block and column; no block is in two groups ----

@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read> norms: array<f32>;
@group(0) @binding(4) var<storage, read_write> partial_out: array<f32>;

fn blocks_of_a_group() -> u32 {
    return (params.span + params.chunk - 1u) / params.chunk;
}

@compute @workgroup_size(WG)
fn forward_blocks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let columns = 2u * params.experts + 1u;
    let block = item / columns;
    let column = item % columns;
    let number = block / blocks_of_a_group();
    if number >= params.rows / params.span {
        return;
    }
    let first = number * params.span + block % blocks_of_a_group() * params.chunk;
    let end = min(first + params.chunk, (number + 1u) * params.span);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        if column < params.experts {
            for (var slot = 0u; slot < params.top_k; slot += 1u) {
                sum += select(0.0, 1.0, chosen[row * params.top_k + slot] == column);
            }
        } else if column < 2u * params.experts {
            let z = logits[row * params.experts + column - params.experts];
            if params.sigmoid != 0u {
                sum += sigmoid(z) / norms[row * 2u + 1u];
            } else {
                sum += exp(z - norms[row * 2u]);
            }
        } else {
            sum += norms[row * 2u] * norms[row * 2u];
        }
    }
    partial_out[item] = sum;
}

// ---- forward: sums over the blocks of a group, one invocation per group and column ----

@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums_out: array<f32>;

@compute @workgroup_size(WG)
fn forward_groups(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let columns = 2u * params.experts + 1u;
    let number = item / columns;
    if number >= params.rows / params.span {
        return;
    }
    var sum = 0.0;
    for (var block = 0u; block < blocks_of_a_group(); block += 1u) {
        sum += partial[(number * blocks_of_a_group() + block) * columns + item % columns];
    }
    sums_out[item] = sum;
}

// ---- forward: the losses, and the statistics [2, experts]: counts and mean probabilities of the whole batch ----
//
// One invocation per expert for its statistics, and one for the losses.

@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> balance: array<f32>;
@group(0) @binding(3) var<storage, read_write> z_loss: array<f32>;
@group(0) @binding(4) var<storage, read_write> statistics: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if item > params.experts {
        return;
    }
    let columns = 2u * params.experts + 1u;
    let count = params.rows / params.span;
    if item < params.experts {
        var chosen_by = 0.0;
        var probability = 0.0;
        for (var number = 0u; number < count; number += 1u) {
            chosen_by += sums[number * columns + item];
            probability += sums[number * columns + params.experts + item];
        }
        statistics[item] = chosen_by;
        statistics[params.experts + item] = probability / f32(params.rows);
        return;
    }
    var uses = 0.0;
    var squares = 0.0;
    for (var number = 0u; number < count; number += 1u) {
        let start = number * columns;
        for (var e = 0u; e < params.experts; e += 1u) {
            uses += frequency(sums[start + e]) * sums[start + params.experts + e];
        }
        squares += sums[start + 2u * params.experts];
    }
    balance[0] = params.balance_factor * uses / f32(params.rows);
    z_loss[0] = params.z_factor * squares / f32(params.rows);
}

// f_e of a count
fn frequency(chosen_by: f32) -> f32 {
    return f32(params.experts) * chosen_by / (f32(params.top_k) * f32(params.span));
}

// ---- backward: one invocation per row ----
//
// With dP_e = dbalance balance_factor / rows f_e of the row's group:
//
//   softmax:  dz_e += p_e (dP_e - sum over j of p_j dP_j)
//   sigmoid:  dz_e += s_e (1 - s_e) / S (dP_e - sum over j of q_j dP_j),   q = s / S,  S = sum of s
//   z-loss:   dz_e += dz z_factor 2 / rows logsumexp(z) p_e

@group(0) @binding(2) var<storage, read> norms_in: array<f32>;
@group(0) @binding(3) var<storage, read> sums_in: array<f32>;
@group(0) @binding(4) var<storage, read> dbalance: array<f32>;
@group(0) @binding(5) var<storage, read> dz: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

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
    let start = row * params.experts;
    let counts = row / params.span * (2u * params.experts + 1u);
    let logsumexp = norms_in[row * 2u];
    let scores = norms_in[row * 2u + 1u];
    var factor = 0.0;
    if params.has_dbalance != 0u {
        factor = dbalance[0] * params.balance_factor / f32(params.rows);
    }
    var z_part = 0.0;
    if params.has_dz != 0u {
        z_part = dz[0] * params.z_factor * 2.0 / f32(params.rows) * logsumexp;
    }
    var along = 0.0;
    for (var e = 0u; e < params.experts; e += 1u) {
        let z = logits[start + e];
        let p = select(exp(z - logsumexp), sigmoid(z) / scores, params.sigmoid != 0u);
        along += p * factor * frequency(sums_in[counts + e]);
    }
    for (var e = 0u; e < params.experts; e += 1u) {
        let at = start + e;
        let p = exp(logits[at] - logsumexp);
        let s = sigmoid(logits[at]);
        let slope = select(p, s * (1.0 - s) / scores, params.sigmoid != 0u);
        let through = slope * (factor * frequency(sums_in[counts + e]) - along) + z_part * p;
        dlogits[at] = select(0.0, dlogits[at], params.add != 0u) + through;
    }
}
