//! Fast twins of `shaders/add.wgsl` and `shaders/copy.wgsl`.

use std::any::Any;

use super::math::{accumulate, wide};
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::{add, copy as copy_op};

wide! {
    fn sum(a: &[f32], b: &[f32], y: &mut [f32]) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a + b;
        }
    }
}

pub(super) fn add(p: &dyn Any, [a, b, y, ..]: CpuArgs<'_, f32>) {
    let p: &add::Params = params(p);
    let (a, b, y) = (a.read(), b.read(), y.write());
    let len = rows_per_piece(1);
    for_each_part(&mut y[..p.len as usize], len, |piece, y| {
        sum(&a[piece * len..], &b[piece * len..], y);
    });
}

pub(super) fn copy(p: &dyn Any, [x, y, ..]: CpuArgs<'_, f32>) {
    let p: &copy_op::Params = params(p);
    let (x, y) = (x.read(), y.write());
    let len = rows_per_piece(1);
    for_each_part(&mut y[..p.len as usize], len, |piece, y| {
        let x = &x[piece * len..][..y.len()];
        if p.add == 0 {
            y.copy_from_slice(x);
        } else {
            accumulate(x, y);
        }
    });
}
