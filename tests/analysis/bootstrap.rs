//! Intervals by resampling.

use braid_engine::analysis::bootstrap::{Bootstrap, weighted_mean};
use braid_engine::random::stream;
use rand_distr::{Distribution, StandardNormal};

#[test]
fn the_interval_covers_the_mean_about_as_often_as_it_says() {
    let mut covered = 0;
    for trial in 0..300 {
        let mut rng = stream(trial, "units");
        let values: Vec<f64> = (0..40).map(|_| StandardNormal.sample(&mut rng)).collect();
        let found = Bootstrap::new(40, 400, trial).mean(&values);
        assert!(found.low < found.value && found.value < found.high);
        covered += u32::from(found.low < 0.0 && 0.0 < found.high);
    }
    // 95 % of 300 are 285, with a deviation of 4; percentile intervals of 40 units are a little narrow.
    assert!((268..=296).contains(&covered), "{covered} of 300");
}

#[test]
fn the_same_seed_gives_the_same_interval_and_another_another() {
    let values: Vec<f64> = (0..20).map(|v| f64::from(v * v % 17)).collect();
    let of = |seed| Bootstrap::new(20, 200, seed).mean(&values);
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
    let many = Bootstrap::new(20, 200, 3);
    assert_eq!(many.fewer(200).mean(&values), of(3));
    assert_ne!(many.fewer(20).mean(&values), of(3));
}

#[test]
fn closed_cases() {
    let constant = Bootstrap::new(9, 100, 1).mean(&[2.5; 9]);
    assert_eq!([constant.value, constant.low, constant.high], [2.5; 3]);
    // One unit says nothing about others.
    let one = Bootstrap::new(1, 100, 1).mean(&[2.5]);
    assert!(one.value == 2.5 && one.low.is_nan() && one.high.is_nan());
    let none = Bootstrap::new(0, 100, 1).mean(&[]);
    assert!(none.value.is_nan() && none.low.is_nan());
    // A ratio that some draws make 0 / 0.
    let ratio = Bootstrap::new(2, 200, 1).estimate(|counts| counts[0] / counts[0]);
    assert_eq!([ratio.value, ratio.low, ratio.high], [1.0; 3]);
    assert_eq!(weighted_mean(&[1.0, 5.0], &[3.0, 1.0]), 2.0);
    assert_eq!(
        serde_json::to_string(&one).expect("writes"),
        r#"{"value":2.5,"low":null,"high":null}"#
    );
}
