// Which experts a token goes to, and how much each weighs: the gates of a sparse mixture of experts.
//
//   mode 0:  score_e = z_e;                      g_e = p_e,  p = softmax(z)                         e selected
//   mode 1:  score_e = z_e;                      g_e = exp(z_e) / sum over the selection of exp(z)
//   mode 2:  score_e = sigmoid(z_e) + bias_e;    g_e = scale s_e / (sum over the selection of s + 1e-20),  s = sigmoid(z)
//
// Selected are the top_k experts with the largest scores; of equal scores the one with the lower number. Softmax keeps the
// order of the logits, so modes 0 and 1 need no probabilities to select.
//
// logits z are [rows, experts]; gates are [rows, experts], 0 outside of the selection; chosen is [rows, top_k], largest score
// first. bias [experts] is read in mode 2 only. One invocation per row everywhere.

#import shared/grid
#import shared/sigmoid

struct Params {
    rows: u32,
    experts: u32,
    top_k: u32,
    mode: u32,
    add: u32,    // 1: dlogits += .., 0: dlogits = ..
    scale: f32,  // of mode 2, above 0
}

const ALL: u32 = 0u;
const SIGMOID: u32 = 2u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;

fn largest_logit(start: u32) -> f32 {
    var largest = -1e30;
    for (var e = 0u; e < params.experts; e += 1u) {
        largest = max(largest, logits[start + e]);
    }
    return largest;
}

// What the gates are proportional to.
fn weight(z: f32, largest: f32) -> f32 {
    if params.mode == SIGMOID {
        return sigmoid(z);
    }
    return exp(z - largest);
}

// ---- forward ----

@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> gates_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> chosen_out: array<u32>;

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
    let start = row * params.experts;
    let first = row * params.top_k;
    // The scores stand where the gates will be.
    for (var e = 0u; e < params.experts; e += 1u) {
        var score = logits[start + e];
        if params.mode == SIGMOID {
            score = sigmoid(score) + bias[e];
        }
        gates_out[start + e] = score;
    }
    // Each pass finds the largest score behind the last one, in the order of falling scores and rising numbers.
    var last = 0.0;
    var last_expert = 0u;
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        var best = slot;
        var best_score = -1e30;
        var found = false;
        for (var e = 0u; e < params.experts; e += 1u) {
            let score = gates_out[start + e];
            let behind = slot == 0u || score < last || (score == last && e > last_expert);
            if behind && (!found || score > best_score) {
                best = e;
                best_score = score;
                found = true;
            }
        }
        chosen_out[first + slot] = best;
        last = best_score;
        last_expert = best;
    }

    let largest = largest_logit(start);
    var sum = 0.0;
    if params.mode == ALL {
        for (var e = 0u; e < params.experts; e += 1u) {
            sum += weight(logits[start + e], largest);
        }
    } else {
        for (var slot = 0u; slot < params.top_k; slot += 1u) {
            sum += weight(logits[start + chosen_out[first + slot]], largest);
        }
    }
    var factor = 1.0 / sum;
    if params.mode == SIGMOID {
        factor = params.scale / (sum + 1e-20);
    }
    for (var e = 0u; e < params.experts; e += 1u) {
        gates_out[start + e] = 0.0;
    }
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        let at = start + chosen_out[first + slot];
        gates_out[at] = factor * weight(logits[at], largest);
    }
}

// ---- backward ----
//
// The selection has no derivative. With along = sum over the selection of g_e dg_e:
//
//   mode 0:  dz_e = p_e (dg_e - along),  dg_e = 0 outside of the selection
//   mode 1:  dz_e = g_e (dg_e - along)              selected, else 0
//   mode 2:  dz_e = (dg_e - along / scale) g_e (1 - s_e)    selected, else 0

@group(0) @binding(2) var<storage, read> gates: array<f32>;
@group(0) @binding(3) var<storage, read> chosen: array<u32>;
@group(0) @binding(4) var<storage, read> dgates: array<f32>;
@group(0) @binding(5) var<storage, read_write> dlogits: array<f32>;

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
    let first = row * params.top_k;
    var along = 0.0;
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        let at = start + chosen[first + slot];
        along += gates[at] * dgates[at];
    }
    var largest = 0.0;
    var sum = 1.0;
    if params.mode == ALL {
        largest = largest_logit(start);
        sum = 0.0;
        for (var e = 0u; e < params.experts; e += 1u) {
            sum += exp(logits[start + e] - largest);
        }
    }
    // First what an expert gets that was not selected, then what those get that were.
    for (var e = 0u; e < params.experts; e += 1u) {
        let at = start + e;
        var through = 0.0;
        if params.mode == ALL {
            through = -along * exp(logits[at] - largest) / sum;
        }
        dlogits[at] = select(0.0, dlogits[at], params.add != 0u) + through;
    }
    for (var slot = 0u; slot < params.top_k; slot += 1u) {
        let at = start + chosen[first + slot];
        let g = gates[at];
        if params.mode == ALL {
            dlogits[at] += g * dgates[at];
        } else if params.mode == SIGMOID {
            let part = along / params.scale;
            dlogits[at] += (dgates[at] - part) * g * (1.0 - sigmoid(logits[at]));
        } else {
            dlogits[at] += g * (dgates[at] - along);
        }
    }
}
