//! What sources and weights are like: closed cases.

use std::f64::consts::LN_2;

use braid_engine::analysis::distance::{jensen_shannon, top1_distance};
use braid_engine::analysis::source_stats::{cosine, relative_difference, stacked_rank};
use braid_tests::assert_close;

#[test]
fn the_distance_counts_from_the_newest_source() {
    assert_eq!(top1_distance(&[1.0]), 0);
    assert_eq!(top1_distance(&[0.7, 0.2, 0.1]), 2);
    assert_eq!(top1_distance(&[0.2, 0.1, 0.7]), 0);
    // At equal weights nothing is preferred: the newest counts.
    assert_eq!(top1_distance(&[0.25; 4]), 0);
    assert_eq!(top1_distance(&[0.4, 0.4, 0.2]), 1);
    assert_eq!(top1_distance(&[-0.5, -0.2, -0.3]), 1);
}

#[test]
fn the_divergence_of_two_distributions() {
    assert_eq!(jensen_shannon(&[0.3, 0.7], &[0.3, 0.7]), 0.0);
    assert_close(
        "nothing shared",
        &[jensen_shannon(&[1.0, 0.0], &[0.0, 1.0])],
        &[LN_2],
        1e-15,
    );
    let (a, b) = ([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]);
    assert_close(
        "symmetric",
        &[jensen_shannon(&a, &b)],
        &[jensen_shannon(&b, &a)],
        1e-15,
    );
    // By hand: m = (3/8, 3/8, 1/4).
    let want = 0.5 * (4_f64 / 3.0).ln() + 0.25 * (2_f64 / 3.0).ln() + 0.25 * LN_2;
    assert_close("by hand", &[jensen_shannon(&a, &b)], &[want], 1e-15);
}

#[test]
fn vectors_that_are_alike_and_that_are_not() {
    let (x, y) = ([1.0, 0.0, 0.0], [0.0, 2.0, 0.0]);
    assert_eq!(cosine(&x, &y), 0.0);
    assert_close("parallel", &[cosine(&x, &[3.0, 0.0, 0.0])], &[1.0], 1e-15);
    assert!(cosine(&x, &[0.0; 3]).is_nan());
    assert_close("the same twice", &[stacked_rank(&[&x, &x])], &[1.0], 1e-6);
    // Singular values 1 and 2.
    let want = (-(1.0 / 3.0 * (1_f64 / 3.0).ln() + 2.0 / 3.0 * (2_f64 / 3.0).ln())).exp();
    assert_close("orthogonal", &[stacked_rank(&[&x, &y])], &[want], 1e-12);
    assert_eq!(relative_difference(&x, &x), 0.0);
    assert_eq!(relative_difference(&x, &[-1.0, 0.0, 0.0]), 2.0);
}
