//! Rank measures: golden vector G10, closed cases, bounds.

use braid_engine::analysis::rank::{Moments, effective_count, ranks, singular_values};
use braid_tests::assert_close;
use braid_tests::vectors::w;

#[test]
fn golden_vector_g10() {
    let rows = w(51, 40);
    // By halves: what is added up gives the same.
    let mut moments = Moments::new(4);
    for half in rows.chunks(20) {
        moments.add(&Moments::of(half, 4), 1.0);
    }
    let got = moments.ranks();
    let got = [got.erank, got.erank2, got.participation, got.stable];
    let want = [3.381_913_707, 2.683_041_809, 2.385_459_572, 1.920_759_841];
    assert_close("ranks", &got, &want, 1e-9);

    let mean: Vec<f64> = (0..4)
        .map(|c| rows.iter().skip(c).step_by(4).sum::<f64>() / 10.0)
        .collect();
    let mut gram = vec![0.0; 16];
    for row in rows.chunks(4) {
        for at in 0..16 {
            gram[at] += (row[at / 4] - mean[at / 4]) * (row[at % 4] - mean[at % 4]);
        }
    }
    let want = [2.328_402_3, 1.972_332_9, 0.976_906_7, 0.383_948_4];
    assert_close("singular values", &singular_values(&gram, 4), &want, 1e-7);
}

#[test]
fn a_draw_that_counts_rows_twice_is_the_matrix_with_them_twice() {
    let rows = w(52, 30);
    let mut counted = Moments::of(&rows[..15], 3);
    counted.add(&Moments::of(&rows[15..], 3), 2.0);
    let twice: Vec<f64> = rows.iter().chain(&rows[15..]).copied().collect();
    let (got, want) = (counted.ranks(), Moments::of(&twice, 3).ranks());
    assert_close(
        "ranks",
        &[got.erank, got.stable],
        &[want.erank, want.stable],
        1e-12,
    );
}

#[test]
fn closed_cases_and_bounds() {
    let equal = ranks(&[2.0; 5]);
    let all = [equal.erank, equal.erank2, equal.participation, equal.stable];
    assert_close("equal singular values", &all, &[5.0; 4], 1e-12);
    let one = ranks(&[3.0, 0.0, 0.0]);
    let all = [one.erank, one.erank2, one.participation, one.stable];
    assert_close("one singular value", &all, &[1.0; 4], 1e-12);
    assert_eq!(ranks(&[0.0, 0.0]).erank, 0.0);
    assert_eq!(effective_count(&[0.0]), 0.0);
    for series in 60..70 {
        let singular: Vec<f64> = w(series, 7).iter().map(|v| v.abs()).collect();
        let r = ranks(&singular);
        let ordered = [1.0, r.participation, r.erank2, r.erank, 7.0];
        assert!(ordered.is_sorted(), "{series}: {ordered:?}");
    }
}
