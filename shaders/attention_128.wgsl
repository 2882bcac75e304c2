// `attention` for a head dimension of 128.

#import shared/attention

const WIDTH = 32u;

struct Channels {
    a: mat4x4<f32>,
    b: mat4x4<f32>,
    c: mat4x4<f32>,
    d: mat4x4<f32>,
    e: mat4x4<f32>,
    f: mat4x4<f32>,
    g: mat4x4<f32>,
    h: mat4x4<f32>,
}

fn inner(x: Channels, y: Channels) -> f32 {
    return inner_16(x.a, y.a) + inner_16(x.b, y.b) + inner_16(x.c, y.c) + inner_16(x.d, y.d)
        + inner_16(x.e, y.e) + inner_16(x.f, y.f) + inner_16(x.g, y.g) + inner_16(x.h, y.h);
}

fn times(x: Channels, c: f32) -> Channels {
    return Channels(x.a * c, x.b * c, x.c * c, x.d * c, x.e * c, x.f * c, x.g * c, x.h * c);
}

fn plus(x: Channels, c: f32, y: Channels) -> Channels {
    return Channels(
        x.a + c * y.a,
        x.b + c * y.b,
        x.c + c * y.c,
        x.d + c * y.d,
        x.e + c * y.e,
        x.f + c * y.f,
        x.g + c * y.g,
        x.h + c * y.h,
    );
}

fn load_q(at: u32) -> Channels {
    return Channels(
        q_16(at),
        q_16(at + 4u),
        q_16(at + 8u),
        q_16(at + 12u),
        q_16(at + 16u),
        q_16(at + 20u),
        q_16(at + 24u),
        q_16(at + 28u),
    );
}

fn load_k(at: u32) -> Channels {
    return Channels(
        k_16(at),
        k_16(at + 4u),
        k_16(at + 8u),
        k_16(at + 12u),
        k_16(at + 16u),
        k_16(at + 20u),
        k_16(at + 24u),
        k_16(at + 28u),
    );
}

fn load_v(at: u32) -> Channels {
    return Channels(
        v_16(at),
        v_16(at + 4u),
        v_16(at + 8u),
        v_16(at + 12u),
        v_16(at + 16u),
        v_16(at + 20u),
        v_16(at + 24u),
        v_16(at + 28u),
    );
}

fn load_d(at: u32) -> Channels {
    return Channels(
        d_16(at),
        d_16(at + 4u),
        d_16(at + 8u),
        d_16(at + 12u),
        d_16(at + 16u),
        d_16(at + 20u),
        d_16(at + 24u),
        d_16(at + 28u),
    );
}

fn store_o(at: u32, x: Channels) {
    o_16(at, x.a);
    o_16(at + 4u, x.b);
    o_16(at + 8u, x.c);
    o_16(at + 12u, x.d);
    o_16(at + 16u, x.e);
    o_16(at + 20u, x.f);
    o_16(at + 24u, x.g);
    o_16(at + 28u, x.h);
}

fn store_dq(at: u32, x: Channels) {
    dq_16(at, x.a);
    dq_16(at + 4u, x.b);
    dq_16(at + 8u, x.c);
    dq_16(at + 12u, x.d);
    dq_16(at + 16u, x.e);
    dq_16(at + 20u, x.f);
    dq_16(at + 24u, x.g);
    dq_16(at + 28u, x.h);
}

fn store_dk(at: u32, x: Channels) {
    dk_16(at, x.a);
    dk_16(at + 4u, x.b);
    dk_16(at + 8u, x.c);
    dk_16(at + 12u, x.d);
    dk_16(at + 16u, x.e);
    dk_16(at + 20u, x.f);
    dk_16(at + 24u, x.g);
    dk_16(at + 28u, x.h);
}

fn store_dv(at: u32, x: Channels) {
    dv_16(at, x.a);
    dv_16(at + 4u, x.b);
    dv_16(at + 8u, x.c);
    dv_16(at + 12u, x.d);
    dv_16(at + 16u, x.e);
    dv_16(at + 20u, x.f);
    dv_16(at + 24u, x.g);
    dv_16(at + 28u, x.h);
}
