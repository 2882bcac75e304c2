// The status of training: loss and gradient norm of recent steps, the factor that clips the gradient, and the stop flag.
//
//   status[0]  1 once a loss or a norm was not finite: no parameter changes from that step on
//   status[1]  sum of the losses of this step so far
//   status[2]  min(1, clip / (norm + 1e-6)) of the last step; 1 without clipping, 0 when stopped
//   status[3]  gradient norm of the last step
//   status[4]  sum of the balance losses of experts of this step so far, status[5] of their z-losses
//   status[6 + 5 k ..]  loss, gradient norm, 1 if all is well (else 0), balance loss and z-loss of the last step in entry k
//                       of a ring
//
// Each entry point is one invocation.

#import shared/grid
#import shared/finite

struct Params {
    len: u32,    // partial sums of squares
    entry: u32,  // where record_loss adds
    clip: f32,   // largest norm; 0: no clipping
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- record_loss: status[entry] += loss ----

@group(0) @binding(1) var<storage, read> loss: array<f32>;
@group(0) @binding(2) var<storage, read_write> status_out: array<f32>;

@compute @workgroup_size(WG)
fn record_loss(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // The test of len, always 1 here, is what makes this one invocation.
    if flat_index(group, groups, lane) >= params.len {
        return;
    }
    if is_non_finite(loss[0]) {
        status_out[0] = 1.0;
    }
    status_out[params.entry] += loss[0];
}

// ---- finish: close the books of a step ----
//
// partial is [2, len] of square_sum: sums, then flags. scalars[3] is this step's entry in the ring.

@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read> scalars: array<f32>;
@group(0) @binding(3) var<storage, read_write> status: array<f32>;

@compute @workgroup_size(WG)
fn finish(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if flat_index(group, groups, lane) != 0u {
        return;
    }
    var squares = 0.0;
    var stopped = status[0] != 0.0 || is_non_finite(status[1]) || is_non_finite(status[4]) || is_non_finite(status[5]);
    for (var i = 0u; i < params.len; i += 1u) {
        let sum = partial[i];
        stopped = stopped || is_non_finite(sum) || partial[params.len + i] != 0.0;
        squares += sum;
    }
    // This sum was computed here, not loaded: finite terms whose sum is not are found by their size as well.
    stopped = stopped || is_non_finite(squares) || squares > 3.0e38;
    let norm = sqrt(max(squares, 0.0));
    var scale = 1.0;
    if params.clip > 0.0 {
        scale = min(1.0, params.clip / (norm + 1.0e-6));
    }
    let entry = 6u + 5u * u32(scalars[3]);
    status[entry] = status[1];
    status[entry + 1u] = norm;
    status[entry + 2u] = select(1.0, 0.0, stopped);
    status[entry + 3u] = status[4];
    status[entry + 4u] = status[5];
    status[0] = select(0.0, 1.0, stopped);
    status[1] = 0.0;
    status[2] = select(scale, 0.0, stopped);
    status[3] = norm;
    status[4] = 0.0;
    status[5] = 0.0;
}
