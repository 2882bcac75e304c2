// `attention` for a head dimension of 16.

#import shared/attention

const WIDTH = 4u;

struct Channels { a: mat4x4<f32> }

fn inner(x: Channels, y: Channels) -> f32 {
    return inner_16(x.a, y.a);
}

fn times(x: Channels, c: f32) -> Channels {
    return Channels(x.a * c);
}

fn plus(x: Channels, c: f32, y: Channels) -> Channels {
    return Channels(x.a + c * y.a);
}

fn load_q(at: u32) -> Channels {
    return Channels(q_16(at));
}

fn load_k(at: u32) -> Channels {
    return Channels(k_16(at));
}

fn load_v(at: u32) -> Channels {
    return Channels(v_16(at));
}

fn load_d(at: u32) -> Channels {
    return Channels(d_16(at));
}

fn store_o(at: u32, x: Channels) {
    o_16(at, x.a);
}

fn store_dq(at: u32, x: Channels) {
    dq_16(at, x.a);
}

fn store_dk(at: u32, x: Channels) {
    dk_16(at, x.a);
}

fn store_dv(at: u32, x: Channels) {
    dv_16(at, x.a);
}
