// `attention` for a head dimension of 64.

#import shared/attention

const WIDTH = 16u;

struct Channels { a: mat4x4<f32>, b: mat4x4<f32>, c: mat4x4<f32>, d: mat4x4<f32> }

fn inner(x: Channels, y: Channels) -> f32 {
    return inner_16(x.a, y.a) + inner_16(x.b, y.b) + inner_16(x.c, y.c) + inner_16(x.d, y.d);
}

fn times(x: Channels, c: f32) -> Channels {
    return Channels(x.a * c, x.b * c, x.c * c, x.d * c);
}

fn plus(x: Channels, c: f32, y: Channels) -> Channels {
    return Channels(x.a + c * y.a, x.b + c * y.b, x.c + c * y.c, x.d + c * y.d);
}

fn load_q(at: u32) -> Channels {
    return Channels(q_16(at), q_16(at + 4u), q_16(at + 8u), q_16(at + 12u));
}

fn load_k(at: u32) -> Channels {
    return Channels(k_16(at), k_16(at + 4u), k_16(at + 8u), k_16(at + 12u));
}

fn load_v(at: u32) -> Channels {
    return Channels(v_16(at), v_16(at + 4u), v_16(at + 8u), v_16(at + 12u));
}

fn load_d(at: u32) -> Channels {
    return Channels(d_16(at), d_16(at + 4u), d_16(at + 8u), d_16(at + 12u));
}

fn store_o(at: u32, x: Channels) {
    o_16(at, x.a);
    o_16(at + 4u, x.b);
    o_16(at + 8u, x.c);
    o_16(at + 12u, x.d);
}

fn store_dq(at: u32, x: Channels) {
    dq_16(at, x.a);
    dq_16(at + 4u, x.b);
    dq_16(at + 8u, x.c);
    dq_16(at + 12u, x.d);
}

fn store_dk(at: u32, x: Channels) {
    dk_16(at, x.a);
    dk_16(at + 4u, x.b);
    dk_16(at + 8u, x.c);
    dk_16(at + 12u, x.d);
}

fn store_dv(at: u32, x: Channels) {
    dv_16(at, x.a);
    dv_16(at + 4u, x.b);
    dv_16(at + 8u, x.c);
    dv_16(at + 12u, x.d);
}
