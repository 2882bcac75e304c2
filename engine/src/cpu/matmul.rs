//! Twins of `shaders/matmul.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::matmul::Params;

/// `c (+)= value`.
fn store<T: Real>(c: &mut T, add: u32, value: T) {
    *c = if add == 0 { value } else { *c + value };
}

pub(super) fn nt<T: Real>(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    let (m, n, k) = (p.m as usize, p.n as usize, p.k as usize);
    for i in 0..m {
        for j in 0..n {
            let sum = (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
            store(&mut c[i * n + j], p.add, sum);
        }
    }
}

pub(super) fn nn<T: Real>(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    let (m, n, k) = (p.m as usize, p.n as usize, p.k as usize);
    for i in 0..m {
        for j in 0..n {
            let sum = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            store(&mut c[i * n + j], p.add, sum);
        }
    }
}

pub(super) fn tn<T: Real>(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    let (m, n, k, slab) = (p.m as usize, p.n as usize, p.k as usize, p.slab as usize);
    for (number, c) in c.chunks_exact_mut(m * n).enumerate() {
        let terms = number * slab..((number + 1) * slab).min(k);
        for i in 0..m {
            for j in 0..n {
                let sum = terms.clone().map(|l| a[l * m + i] * b[l * n + j]).sum();
                store(&mut c[i * n + j], p.add, sum);
            }
        }
    }
}
