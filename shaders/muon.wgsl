// Muon on one parameter of `count` matrices: what goes into Newton-Schulz, and what comes out of it.
//
//   momentum:  g = scale dp;  m = mu m + g;  u = mu m + g        scale from clipping; Nesterov's momentum
//   apply:     p = p - lr decay p - lr rate o
//
// dp, m, p are the parameter's ranges of three arenas, [count, rows, cols]. u and o are in stacks of matrices that lie:
// the parameter's begin with number `first` there, and are transposed if rows > cols. status[0]: stop, status[2]: scale (see
// clip.wgsl); scalars[0]: lr. One invocation per element.

#import shared/grid

struct Params {
    count: u32,
    rows: u32,
    cols: u32,
    first: u32,       // number of the first matrix in the stack
    momentum: f32,    // mu
    rate: f32,        // factor of the learning rate
    decay: f32,       // factor of the learning rate
}

@group(0) @binding(0) var<uniform> params: Params;

// The place in the stack of element i of the parameter.
fn lying(i: u32) -> u32 {
    let size = params.rows * params.cols;
    let matrix = i / size;
    let at = i % size;
    var place = at;
    if params.rows > params.cols {
        place = at % params.cols * params.rows + at / params.cols;
    }
    return (params.first + matrix) * size + place;
}

// ---- momentum ----

@group(0) @binding(1) var<storage, read> status: array<f32>;
@group(0) @binding(2) var<storage, read> dp: array<f32>;
@group(0) @binding(3) var<storage, read_write> m: array<f32>;
@group(0) @binding(4) var<storage, read_write> u: array<f32>;

@compute @workgroup_size(WG)
fn momentum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.count * params.rows * params.cols || status[0] != 0.0 {
        return;
    }
    let g = status[2] * dp[i];
    let m_new = params.momentum * m[i] + g;
    m[i] = m_new;
    u[lying(i)] = params.momentum * m_new + g;
}

// ---- apply ----

@group(0) @binding(2) var<storage, read> scalars: array<f32>;
@group(0) @binding(3) var<storage, read> o: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;

@compute @workgroup_size(WG)
fn apply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_index(group, groups, lane);
    if i >= params.count * params.rows * params.cols || status[0] != 0.0 {
        return;
    }
    let lr = scalars[0];
    p[i] = p[i] - lr * params.decay * p[i] - lr * params.rate * o[lying(i)];
}
