// Tiles of 8 x 8 elements of the three matrix products of a linear layer, with loads of four numbers at once (see
// matmul_vec4.wgsl).
//
// One invocation owns a tile of c: sum<row>a holds columns 0 to 3 of a row, sum<row>b columns 4 to 7. Everything is written
// out, because compilers keep named vectors in registers and put arrays into memory. Rows and columns outside of c are
// computed from clamped indices and not stored. The importing file declares params (m, n, k, add), the arrays a and b of
// vectors, c of numbers for nt, and c4 of vectors for nn and tn. Offsets into arrays of vectors count vectors.

fn store(row: u32, column: u32, value: f32) {
    if row < params.m && column < params.n {
        let at = row * params.n + column;
        c[at] = select(0.0, c[at], params.add != 0u) + value;
    }
}

fn store_four(row: u32, column: u32, values: vec4<f32>) {
    store(row, column, values.x);
    store(row, column + 1u, values.y);
    store(row, column + 2u, values.z);
    store(row, column + 3u, values.w);
}

// c = a b^T for the tile that begins at `row` and `column`; b begins at `weights`
fn nt_tile(row: u32, column: u32, weights: u32) {
    let length = params.k / 4u;
    let a0 = min(row + 0u, params.m - 1u) * length;
    let a1 = min(row + 1u, params.m - 1u) * length;
    let a2 = min(row + 2u, params.m - 1u) * length;
    let a3 = min(row + 3u, params.m - 1u) * length;
    let a4 = min(row + 4u, params.m - 1u) * length;
    let a5 = min(row + 5u, params.m - 1u) * length;
    let a6 = min(row + 6u, params.m - 1u) * length;
    let a7 = min(row + 7u, params.m - 1u) * length;
    let b0 = weights + min(column + 0u, params.n - 1u) * length;
    let b1 = weights + min(column + 1u, params.n - 1u) * length;
    let b2 = weights + min(column + 2u, params.n - 1u) * length;
    let b3 = weights + min(column + 3u, params.n - 1u) * length;
    let b4 = weights + min(column + 4u, params.n - 1u) * length;
    let b5 = weights + min(column + 5u, params.n - 1u) * length;
    let b6 = weights + min(column + 6u, params.n - 1u) * length;
    let b7 = weights + min(column + 7u, params.n - 1u) * length;
    var sum0a = vec4(0.0);
    var sum0b = vec4(0.0);
    var sum1a = vec4(0.0);
    var sum1b = vec4(0.0);
    var sum2a = vec4(0.0);
    var sum2b = vec4(0.0);
    var sum3a = vec4(0.0);
    var sum3b = vec4(0.0);
    var sum4a = vec4(0.0);
    var sum4b = vec4(0.0);
    var sum5a = vec4(0.0);
    var sum5b = vec4(0.0);
    var sum6a = vec4(0.0);
    var sum6b = vec4(0.0);
    var sum7a = vec4(0.0);
    var sum7b = vec4(0.0);
    for (var l = 0u; l < length; l += 1u) {
        let right0 = b[b0 + l];
        let right1 = b[b1 + l];
        let right2 = b[b2 + l];
        let right3 = b[b3 + l];
        let right4 = b[b4 + l];
        let right5 = b[b5 + l];
        let right6 = b[b6 + l];
        let right7 = b[b7 + l];
        let left0 = a[a0 + l];
        sum0a += vec4(dot(left0, right0), dot(left0, right1), dot(left0, right2), dot(left0, right3));
        sum0b += vec4(dot(left0, right4), dot(left0, right5), dot(left0, right6), dot(left0, right7));
        let left1 = a[a1 + l];
        sum1a += vec4(dot(left1, right0), dot(left1, right1), dot(left1, right2), dot(left1, right3));
        sum1b += vec4(dot(left1, right4), dot(left1, right5), dot(left1, right6), dot(left1, right7));
        let left2 = a[a2 + l];
        sum2a += vec4(dot(left2, right0), dot(left2, right1), dot(left2, right2), dot(left2, right3));
        sum2b += vec4(dot(left2, right4), dot(left2, right5), dot(left2, right6), dot(left2, right7));
        let left3 = a[a3 + l];
        sum3a += vec4(dot(left3, right0), dot(left3, right1), dot(left3, right2), dot(left3, right3));
        sum3b += vec4(dot(left3, right4), dot(left3, right5), dot(left3, right6), dot(left3, right7));
        let left4 = a[a4 + l];
        sum4a += vec4(dot(left4, right0), dot(left4, right1), dot(left4, right2), dot(left4, right3));
        sum4b += vec4(dot(left4, right4), dot(left4, right5), dot(left4, right6), dot(left4, right7));
        let left5 = a[a5 + l];
        sum5a += vec4(dot(left5, right0), dot(left5, right1), dot(left5, right2), dot(left5, right3));
        sum5b += vec4(dot(left5, right4), dot(left5, right5), dot(left5, right6), dot(left5, right7));
        let left6 = a[a6 + l];
        sum6a += vec4(dot(left6, right0), dot(left6, right1), dot(left6, right2), dot(left6, right3));
        sum6b += vec4(dot(left6, right4), dot(left6, right5), dot(left6, right6), dot(left6, right7));
        let left7 = a[a7 + l];
        sum7a += vec4(dot(left7, right0), dot(left7, right1), dot(left7, right2), dot(left7, right3));
        sum7b += vec4(dot(left7, right4), dot(left7, right5), dot(left7, right6), dot(left7, right7));
    }
    store_four(row + 0u, column + 0u, sum0a);
    store_four(row + 0u, column + 4u, sum0b);
    store_four(row + 1u, column + 0u, sum1a);
    store_four(row + 1u, column + 4u, sum1b);
    store_four(row + 2u, column + 0u, sum2a);
    store_four(row + 2u, column + 4u, sum2b);
    store_four(row + 3u, column + 0u, sum3a);
    store_four(row + 3u, column + 4u, sum3b);
    store_four(row + 4u, column + 0u, sum4a);
    store_four(row + 4u, column + 4u, sum4b);
    store_four(row + 5u, column + 0u, sum5a);
    store_four(row + 5u, column + 4u, sum5b);
    store_four(row + 6u, column + 0u, sum6a);
    store_four(row + 6u, column + 4u, sum6b);
    store_four(row + 7u, column + 0u, sum7a);
    store_four(row + 7u, column + 4u, sum7b);
}

// `column` counts vectors, of which a row has n / 4.
fn store_vector(start: u32, row: u32, column: u32, values: vec4<f32>) {
    if row < params.m && column < params.n / 4u {
        let at = start + row * (params.n / 4u) + column;
        c4[at] = select(vec4(0.0), c4[at], params.add != 0u) + values;
    }
}

// c = a b for the tile that begins at `row` and vector `column`; b begins at `weights`
fn nn_tile(row: u32, column: u32, weights: u32) {
    let width = params.n / 4u;
    let length = params.k / 4u;
    let a0 = min(row + 0u, params.m - 1u) * length;
    let a1 = min(row + 1u, params.m - 1u) * length;
    let a2 = min(row + 2u, params.m - 1u) * length;
    let a3 = min(row + 3u, params.m - 1u) * length;
    let a4 = min(row + 4u, params.m - 1u) * length;
    let a5 = min(row + 5u, params.m - 1u) * length;
    let a6 = min(row + 6u, params.m - 1u) * length;
    let a7 = min(row + 7u, params.m - 1u) * length;
    let b0 = weights + min(column + 0u, width - 1u);
    let b1 = weights + min(column + 1u, width - 1u);
    var sum0a = vec4(0.0);
    var sum0b = vec4(0.0);
    var sum1a = vec4(0.0);
    var sum1b = vec4(0.0);
    var sum2a = vec4(0.0);
    var sum2b = vec4(0.0);
    var sum3a = vec4(0.0);
    var sum3b = vec4(0.0);
    var sum4a = vec4(0.0);
    var sum4b = vec4(0.0);
    var sum5a = vec4(0.0);
    var sum5b = vec4(0.0);
    var sum6a = vec4(0.0);
    var sum6b = vec4(0.0);
    var sum7a = vec4(0.0);
    var sum7b = vec4(0.0);
    for (var l = 0u; l < length; l += 1u) {
        let at0 = (4u * l + 0u) * width;
        let right0a = b[at0 + b0];
        let right0b = b[at0 + b1];
        let at1 = (4u * l + 1u) * width;
        let right1a = b[at1 + b0];
        let right1b = b[at1 + b1];
        let at2 = (4u * l + 2u) * width;
        let right2a = b[at2 + b0];
        let right2b = b[at2 + b1];
        let at3 = (4u * l + 3u) * width;
        let right3a = b[at3 + b0];
        let right3b = b[at3 + b1];
        let left0 = a[a0 + l];
        sum0a += left0.x * right0a + left0.y * right1a + left0.z * right2a + left0.w * right3a;
        sum0b += left0.x * right0b + left0.y * right1b + left0.z * right2b + left0.w * right3b;
        let left1 = a[a1 + l];
        sum1a += left1.x * right0a + left1.y * right1a + left1.z * right2a + left1.w * right3a;
        sum1b += left1.x * right0b + left1.y * right1b + left1.z * right2b + left1.w * right3b;
        let left2 = a[a2 + l];
        sum2a += left2.x * right0a + left2.y * right1a + left2.z * right2a + left2.w * right3a;
        sum2b += left2.x * right0b + left2.y * right1b + left2.z * right2b + left2.w * right3b;
        let left3 = a[a3 + l];
        sum3a += left3.x * right0a + left3.y * right1a + left3.z * right2a + left3.w * right3a;
        sum3b += left3.x * right0b + left3.y * right1b + left3.z * right2b + left3.w * right3b;
        let left4 = a[a4 + l];
        sum4a += left4.x * right0a + left4.y * right1a + left4.z * right2a + left4.w * right3a;
        sum4b += left4.x * right0b + left4.y * right1b + left4.z * right2b + left4.w * right3b;
        let left5 = a[a5 + l];
        sum5a += left5.x * right0a + left5.y * right1a + left5.z * right2a + left5.w * right3a;
        sum5b += left5.x * right0b + left5.y * right1b + left5.z * right2b + left5.w * right3b;
        let left6 = a[a6 + l];
        sum6a += left6.x * right0a + left6.y * right1a + left6.z * right2a + left6.w * right3a;
        sum6b += left6.x * right0b + left6.y * right1b + left6.z * right2b + left6.w * right3b;
        let left7 = a[a7 + l];
        sum7a += left7.x * right0a + left7.y * right1a + left7.z * right2a + left7.w * right3a;
        sum7b += left7.x * right0b + left7.y * right1b + left7.z * right2b + left7.w * right3b;
    }
    store_vector(0u, row + 0u, column + 0u, sum0a);
    store_vector(0u, row + 0u, column + 1u, sum0b);
    store_vector(0u, row + 1u, column + 0u, sum1a);
    store_vector(0u, row + 1u, column + 1u, sum1b);
    store_vector(0u, row + 2u, column + 0u, sum2a);
    store_vector(0u, row + 2u, column + 1u, sum2b);
    store_vector(0u, row + 3u, column + 0u, sum3a);
    store_vector(0u, row + 3u, column + 1u, sum3b);
    store_vector(0u, row + 4u, column + 0u, sum4a);
    store_vector(0u, row + 4u, column + 1u, sum4b);
    store_vector(0u, row + 5u, column + 0u, sum5a);
    store_vector(0u, row + 5u, column + 1u, sum5b);
    store_vector(0u, row + 6u, column + 0u, sum6a);
    store_vector(0u, row + 6u, column + 1u, sum6b);
    store_vector(0u, row + 7u, column + 0u, sum7a);
    store_vector(0u, row + 7u, column + 1u, sum7b);
}

// c = a^T b over rows first to end of both, for the tile that begins at vectors `row` and `column`; c begins at `start`
fn tn_tile(row: u32, column: u32, first: u32, end: u32, start: u32) {
    let height = params.m / 4u;
    let width = params.n / 4u;
    let a0 = min(row + 0u, height - 1u);
    let a1 = min(row + 1u, height - 1u);
    let b0 = min(column + 0u, width - 1u);
    let b1 = min(column + 1u, width - 1u);
    var sum0a = vec4(0.0);
    var sum0b = vec4(0.0);
    var sum1a = vec4(0.0);
    var sum1b = vec4(0.0);
    var sum2a = vec4(0.0);
    var sum2b = vec4(0.0);
    var sum3a = vec4(0.0);
    var sum3b = vec4(0.0);
    var sum4a = vec4(0.0);
    var sum4b = vec4(0.0);
    var sum5a = vec4(0.0);
    var sum5b = vec4(0.0);
    var sum6a = vec4(0.0);
    var sum6b = vec4(0.0);
    var sum7a = vec4(0.0);
    var sum7b = vec4(0.0);
    for (var l = first; l < end; l += 1u) {
        let righta = b[l * width + b0];
        let rightb = b[l * width + b1];
        let left0 = a[l * height + a0];
        sum0a += left0.x * righta;
        sum0b += left0.x * rightb;
        sum1a += left0.y * righta;
        sum1b += left0.y * rightb;
        sum2a += left0.z * righta;
        sum2b += left0.z * rightb;
        sum3a += left0.w * righta;
        sum3b += left0.w * rightb;
        let left1 = a[l * height + a1];
        sum4a += left1.x * righta;
        sum4b += left1.x * rightb;
        sum5a += left1.y * righta;
        sum5b += left1.y * rightb;
        sum6a += left1.z * righta;
        sum6b += left1.z * rightb;
        sum7a += left1.w * righta;
        sum7b += left1.w * rightb;
    }
    store_vector(start, 4u * row + 0u, column + 0u, sum0a);
    store_vector(start, 4u * row + 0u, column + 1u, sum0b);
    store_vector(start, 4u * row + 1u, column + 0u, sum1a);
    store_vector(start, 4u * row + 1u, column + 1u, sum1b);
    store_vector(start, 4u * row + 2u, column + 0u, sum2a);
    store_vector(start, 4u * row + 2u, column + 1u, sum2b);
    store_vector(start, 4u * row + 3u, column + 0u, sum3a);
    store_vector(start, 4u * row + 3u, column + 1u, sum3b);
    store_vector(start, 4u * row + 4u, column + 0u, sum4a);
    store_vector(start, 4u * row + 4u, column + 1u, sum4b);
    store_vector(start, 4u * row + 5u, column + 0u, sum5a);
    store_vector(start, 4u * row + 5u, column + 1u, sum5b);
    store_vector(start, 4u * row + 6u, column + 0u, sum6a);
    store_vector(start, 4u * row + 6u, column + 1u, sum6b);
    store_vector(start, 4u * row + 7u, column + 0u, sum7a);
    store_vector(start, 4u * row + 7u, column + 1u, sum7b);
}
