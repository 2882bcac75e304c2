// loss = scale * mean over rows of (log sum over v of exp(logits[row, v]) - logits[row, labels[row]])
//
// With the largest logit M of a row and S = sum over v of exp(logits[v] - M), the logarithm is M + log S. M and S are kept
// apart: their sum would lose the digits of S where logits are large.
//
// logits is [rows, vocab], labels is [rows], loss is [1]. The host has checked the labels; larger ones count as the last.

#import shared/grid

struct Params {
    rows: u32,
    vocab: u32,
    chunk: u32,  // rows per block of forward_blocks
    add: u32,    // 1: d_logits += .., 0: d_logits = ..
    scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward: loss of each row, one invocation per row; M and S are kept for the gradient ----

@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> labels: array<u32>;
@group(0) @binding(3) var<storage, read_write> row_losses_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> largest_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> sum_out: array<f32>;

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
    let start = row * params.vocab;
    var largest = -1e30;
    for (var v = 0u; v < params.vocab; v += 1u) {
        largest = max(largest, logits[start + v]);
    }
    var sum = 0.0;
    for (var v = 0u; v < params.vocab; v += 1u) {
        sum += exp(logits[start + v] - largest);
    }
    largest_out[row] = largest;
    sum_out[row] = sum;
    let label = min(labels[row], params.vocab - 1u);
    row_losses_out[row] = log(sum) + (largest - logits[start + label]);
}

// ---- forward: sum of the row losses in two levels, first block by block, one invocation per block ----

@group(0) @binding(1) var<storage, read> row_losses: array<f32>;
@group(0) @binding(2) var<storage, read_write> block_losses_out: array<f32>;

@compute @workgroup_size(WG)
fn forward_blocks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = flat_index(group, groups, lane);
    let first = block * params.chunk;
    if first >= params.rows {
        return;
    }
    let end = min(first + params.chunk, params.rows);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        sum += row_losses[row];
    }
    block_losses_out[block] = sum;
}

// ---- forward: then over the blocks, one invocation in all ----

@group(0) @binding(1) var<storage, read> block_losses: array<f32>;
@group(0) @binding(2) var<storage, read_write> loss: array<f32>;

@compute @workgroup_size(WG)
fn forward_mean(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if flat_index(group, groups, lane) != 0u {
        return;
    }
    var sum = 0.0;
    for (var first = 0u; first < params.rows; first += params.chunk) {
        sum += block_losses[first / params.chunk];
    }
    loss[0] = sum * params.scale / f32(params.rows);
}

// ---- backward: one invocation per logit ----
//
//   d_logits[row, v] += d_loss * scale / rows * (exp(logits[row, v] - M) / S - [v = labels[row]])

@group(0) @binding(3) var<storage, read> largest: array<f32>;
@group(0) @binding(4) var<storage, read> sum: array<f32>;
@group(0) @binding(5) var<storage, read> d_loss: array<f32>;
@group(0) @binding(6) var<storage, read_write> d_logits: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let row = item / params.vocab;
    let v = item % params.vocab;
    if row >= params.rows {
        return;
    }
    let probability = exp(logits[item] - largest[row]) / sum[row];
    let hit = v == min(labels[row], params.vocab - 1u);
    let factor = d_loss[0] * params.scale / f32(params.rows);
    let old = select(0.0, d_logits[item], params.add != 0u);
    d_logits[item] = old + factor * (probability - select(0.0, 1.0, hit));
}
