// A sublayer's output y is written to the partials of both streams (DAR, mHC-2).
//
//   P^j <- rho P^j + (1 - rho) P^(1-j) + beta_j y      if there are old partials
//   P^j <- beta_j y                                    otherwise                       j = 0, 1
//
// Nothing is overwritten: the old partials are two slots of the history, the new ones two others. The history is bound
// once and indexed, since no buffer may be bound readable and writable at the same time. Offsets of slots count elements.
// y is [rows, dim]; gates are [rows, 5]: alpha_0, alpha_1, rho, beta_0, beta_1.
//
// Both streams use the same expressions, so that exchanging them changes no bit, as long as nothing is fused.

#import shared/grid

// What to do with a gradient.
const STORE: u32 = 0u;
const ADD: u32 = 1u;
const SKIP: u32 = 2u;

struct Params {
    rows: u32,
    dim: u32,
    old0: u32,      // offsets of the four slots; both old ones may be the same
    old1: u32,
    new0: u32,
    new1: u32,
    has_old: u32,   // 0: there are no old partials
    has_grad0: u32, // 0: nothing depends on the new partial of stream 0
    has_grad1: u32,
    put_old0: u32,  // STORE, ADD or SKIP
    put_old1: u32,
    put_y: u32,
    put_gates: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// ---- forward: one invocation per element of y ----

@group(0) @binding(1) var<storage, read> gates: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> history: array<f32>;

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = flat_index(group, groups, lane);
    if at >= params.rows * params.dim {
        return;
    }
    let own = at / params.dim * 5u;
    var carried = vec2<f32>(0.0);
    if params.has_old != 0u {
        let rho = gates[own + 2u];
        let old = vec2<f32>(history[params.old0 + at], history[params.old1 + at]);
        carried = rho * old + (1.0 - rho) * old.yx;
    }
    history[params.new0 + at] = carried.x + gates[own + 3u] * y[at];
    history[params.new1 + at] = carried.y + gates[own + 4u] * y[at];
}

// ---- backward, y and old partials: one invocation per element of y ----
//
//   dy += beta_0 dnew^0 + beta_1 dnew^1
//   dold^j += rho dnew^j + (1 - rho) dnew^(1-j)

@group(0) @binding(2) var<storage, read_write> history_grad: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = flat_index(group, groups, lane);
    if at >= params.rows * params.dim {
        return;
    }
    let own = at / params.dim * 5u;
    let dnew = vec2<f32>(
        select(0.0, history_grad[params.new0 + at], params.has_grad0 != 0u),
        select(0.0, history_grad[params.new1 + at], params.has_grad1 != 0u),
    );
    if params.put_y != SKIP {
        let before = select(0.0, dy[at], params.put_y == ADD);
        dy[at] = before + (gates[own + 3u] * dnew.x + gates[own + 4u] * dnew.y);
    }
    if params.has_old != 0u {
        let rho = gates[own + 2u];
        let dold = rho * dnew + (1.0 - rho) * dnew.yx;
        if params.put_old0 != SKIP {
            let before = select(0.0, history_grad[params.old0 + at], params.put_old0 == ADD);
            history_grad[params.old0 + at] = before + dold.x;
        }
        if params.put_old1 != SKIP {
            let before = select(0.0, history_grad[params.old1 + at], params.put_old1 == ADD);
            history_grad[params.old1 + at] = before + dold.y;
        }
    }
}

// ---- backward, gates: one invocation per row ----
//
//   drho    += <dnew^0 - dnew^1, old^0 - old^1>
//   dbeta_j += <dnew^j, y>

@group(0) @binding(1) var<storage, read> history_in: array<f32>;
@group(0) @binding(3) var<storage, read> history_grad_in: array<f32>;
@group(0) @binding(4) var<storage, read_write> dgates: array<f32>;

@compute @workgroup_size(WG)
fn backward_gates(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = flat_index(group, groups, lane);
    if row >= params.rows {
        return;
    }
    var drho = 0.0;
    var dbeta = vec2<f32>(0.0);
    for (var at = row * params.dim; at < (row + 1u) * params.dim; at += 1u) {
        let dnew = vec2<f32>(
            select(0.0, history_grad_in[params.new0 + at], params.has_grad0 != 0u),
            select(0.0, history_grad_in[params.new1 + at], params.has_grad1 != 0u),
        );
        dbeta += dnew * y[at];
        if params.has_old != 0u {
            drho += (dnew.x - dnew.y) * (history_in[params.old0 + at] - history_in[params.old1 + at]);
        }
    }
    let own = row * 5u;
    if params.put_gates == STORE {
        dgates[own] = 0.0;
        dgates[own + 1u] = 0.0;
        dgates[own + 2u] = drho;
        dgates[own + 3u] = dbeta.x;
        dgates[own + 4u] = dbeta.y;
    } else {
        dgates[own + 2u] += drho;
        dgates[own + 3u] += dbeta.x;
        dgates[own + 4u] += dbeta.y;
    }
}
