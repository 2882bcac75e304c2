//! The map of the use of experts.

use braid_app::expert_map::expert_map;
use braid_app::heat_map::Paint;
use braid_engine::analysis::{ExpertLoad, expert_load};

/// Layers with these counts and even probabilities.
fn layers(counts: &[&[f64]]) -> Vec<ExpertLoad> {
    let layer = |(number, counts): (u32, &&[f64])| {
        let even = vec![1.0 / counts.len() as f64; counts.len()];
        expert_load(number, &[*counts, &even].concat())
    };
    (0..).zip(counts).map(layer).collect()
}

#[test]
fn statistics_are_reduced_to_shares() {
    let load = &layers(&[&[30.0, 10.0, 0.0, 40.0]])[0];
    assert_eq!(load.load, [0.375, 0.125, 0.0, 0.5]);
    assert!((load.max_violation - 1.0).abs() < 1e-12);
    assert!((load.entropy - 4_f64.ln()).abs() < 1e-12);
}

#[test]
fn a_shade_compares_with_an_even_share() {
    let layers = layers(&[&[10.0, 10.0, 10.0, 10.0], &[30.0, 10.0, 0.0, 40.0]]);
    let map = expert_map(&layers, Paint::Shades);
    let want = "\
layer 2  ▓▓▓▓░░░░····████ 2.00
layer 1  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ 1.00
         1   2   3   4    most
share of an expert, in even shares:  · 0.0 ░ 0.4 ▒ 0.8 ▓ 1.2 █ 1.6 and more
most: the largest of them
";
    assert_eq!(map, want);
}

#[test]
fn many_experts_are_folded_into_lines() {
    let map = expert_map(&layers(&[&[1.0; 150]]), Paint::Shades);
    assert!(map.lines().all(|line| line.chars().count() <= 80), "{map}");
    assert_eq!(map.matches('▒').count(), 150 + 1, "{map}");
}

#[test]
fn without_experts_there_is_no_map() {
    assert_eq!(expert_map(&[], Paint::Shades), "");
}
