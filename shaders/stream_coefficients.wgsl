// Coefficients of streams from dot products (hyper-connections, mHC).
//
//   c[row, k] = bias[k] + scale[g] f(r[row, k / part] u[row, k]),   f = tanh or the identity,   g = min(k / group, scales - 1)
//
// u is [rows, columns], products of streams with weights; r is [rows, columns / part], the factor that normalises what was
// multiplied; bias is [columns], scale is [scales]. With params.dynamic = 0 there is neither u nor r nor scale: c = bias.

#import shared/grid

struct Params {
    rows: u32,
    columns: u32,
    part: u32,     // columns that share a factor r
    group: u32,    // columns that share a scale; the last scale has the rest
    scales: u32,
    squash: u32,   // 1: f = tanh, 0: the identity
    dynamic: u32,
    chunk: u32,    // rows per block of backward_params
    add: u32,      // 1: add to du or dr, 0: store
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> u: array<f32>;
@group(0) @binding(2) var<storage, read> r: array<f32>;

fn factor(item: u32) -> f32 {
    return r[item / params.part];
}

/// f(r u) of an element of u.
fn squashed(item: u32) -> f32 {
    let v = factor(item) * u[item];
    // Beyond 15 the result is 1 in single precision, and some devices compute it from e^v.
    return select(v, tanh(clamp(v, -15.0, 15.0)), params.squash != 0u);
}

/// f'(r u) of an element of u.
fn slope(item: u32) -> f32 {
    let t = squashed(item);
    return select(1.0, 1.0 - t * t, params.squash != 0u);
}

fn scale_of(column: u32) -> u32 {
    return min(column / params.group, params.scales - 1u);
}

// ---- forward: one invocation per element ----

@group(0) @binding(3) var<storage, read> scale: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let column = item % params.columns;
    if item / params.columns >= params.rows {
        return;
    }
    var value = bias[column];
    if params.dynamic != 0u {
        value += scale[scale_of(column)] * squashed(item);
    }
    c[item] = value;
}

// ---- backward, dot products: du += r scale f'(r u) dc, one invocation per element ----

@group(0) @binding(4) var<storage, read> dc: array<f32>;
@group(0) @binding(5) var<storage, read_write> du: array<f32>;

@compute @workgroup_size(WG)
fn backward_dots(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let column = item % params.columns;
    if item / params.columns >= params.rows {
        return;
    }
    let old = select(0.0, du[item], params.add != 0u);
    du[item] = old + factor(item) * scale[scale_of(column)] * slope(item) * dc[item];
}

// ---- backward, factors: dr += sum over the columns of a part of u scale f'(r u) dc, one invocation per factor ----

@group(0) @binding(5) var<storage, read_write> dr: array<f32>;

@compute @workgroup_size(WG)
fn backward_factors(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_index(group, groups, lane);
    let first = number * params.part;
    if first / params.columns >= params.rows {
        return;
    }
    var sum = 0.0;
    for (var item = first; item < first + params.part; item += 1u) {
        sum += u[item] * scale[scale_of(item % params.columns)] * slope(item) * dc[item];
    }
    let old = select(0.0, dr[number], params.add != 0u);
    dr[number] = old + sum;
}

// ---- backward, parameters ----
//
// partial[block, k] = sum over the block's rows of dc[row, k], and, dynamic, in columns more, of f(r u) dc. One invocation
// per element. `column_sum` adds the blocks to sums; backward_params_sum adds those to the gradients, one invocation per
// element of bias and scale:
//
//   dbias[k] += sums[k],   dscale[g] += sum over the columns k of scale g of sums[columns + k]

@group(0) @binding(3) var<storage, read> dc_in: array<f32>;
@group(0) @binding(4) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(WG)
fn backward_params(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    let width = params.columns * (1u + params.dynamic);
    let first = item / width * params.chunk;
    if first >= params.rows {
        return;
    }
    let column = item % width % params.columns;
    let weighted = item % width >= params.columns;
    let end = min(first + params.chunk, params.rows);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        let at = row * params.columns + column;
        if weighted {
            sum += squashed(at) * dc_in[at];
        } else {
            sum += dc_in[at];
        }
    }
    partial[item] = sum;
}

@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> dbias: array<f32>;
@group(0) @binding(3) var<storage, read_write> dscale: array<f32>;

@compute @workgroup_size(WG)
fn backward_params_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = flat_index(group, groups, lane);
    if item < params.columns {
        dbias[item] += sums[item];
    } else if item < params.columns + params.scales {
        let own = item - params.columns;
        var sum = dscale[own];
        for (var column = 0u; column < params.columns; column += 1u) {
            if scale_of(column) == own {
                sum += sums[params.columns + column];
            }
        }
        dscale[own] = sum;
    }
}
