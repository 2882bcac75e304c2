//! The map of routing weights.

use braid_app::heat_map::{Paint, heat_map};
use braid_engine::analysis::routing_stats::stream_stats;
use braid_engine::analysis::{SiteStats, StreamStats, Weighting};

fn stream(sources: &[&str], weight: &[f64]) -> StreamStats {
    weighted(sources, Weighting::Softmax, weight)
}

fn weighted(sources: &[&str], weighting: Weighting, weight: &[f64]) -> StreamStats {
    let sources: Vec<String> = sources.iter().map(|s| (*s).to_owned()).collect();
    stream_stats(&sources, weighting, weight)
}

fn site(site: u32, kind: &'static str, streams: Vec<StreamStats>) -> SiteStats {
    SiteStats {
        site,
        kind,
        streams,
        alpha: None,
        rho: None,
        beta: None,
        read: None,
        write: None,
        mix: None,
    }
}

fn two_streams() -> Vec<SiteStats> {
    let both =
        |sources: &[&str], a: &[f64], b: &[f64]| vec![stream(sources, a), stream(sources, b)];
    vec![
        site(0, "attn", both(&["embed"], &[1.0], &[1.0])),
        site(
            1,
            "mlp",
            both(&["embed", "partial"], &[0.5, 0.5], &[0.9, 0.1]),
        ),
        site(
            2,
            "attn",
            both(&["embed", "block 1"], &[0.25, 0.75], &[0.0, 1.0]),
        ),
        site(
            3,
            "readout",
            both(
                &["embed", "block 1", "partial"],
                &[0.1, 0.3, 0.6],
                &[0.2, 0.2, 0.6],
            ),
        ),
    ]
}

#[test]
fn two_streams_stand_beside_each_other_read_out_on_top() {
    let map = heat_map(&two_streams(), Paint::Shades, 80);
    let expected = "         stream 0                stream 1
     out ····░░░░▓▓▓▓ 0.60/0.33  ░░░░░░░░▓▓▓▓ 0.60/0.33
  2 attn ░░░░▓▓▓▓     0.75/0.50  ····████     1.00/0.50
  1 mlp  ▒▒▒▒    ▒▒▒▒ 0.50/0.50  ████    ···· 0.90/0.50
  1 attn ████         1.00/1.00  ████         1.00/1.00
         EMB B1  part max/floor  EMB B1  part max/floor
mean weight  · 0.0 ░ 0.2 ▒ 0.4 ▓ 0.6 █ 0.8..1.0
columns: EMB embedding, B1 B2 .. blocks, part the unfinished block
max: mean over tokens of the largest weight; floor: what it would be if all weighed the same
";
    assert_eq!(map, expected, "\n{map}");
}

#[test]
fn streams_are_stacked_where_they_have_no_room_beside_each_other() {
    let names: Vec<String> = (0..40).map(|n| format!("block {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let weights = vec![1.0 / 40.0; 40];
    let sites = [site(
        0,
        "attn",
        vec![stream(&names, &weights), stream(&names, &weights)],
    )];
    let map = heat_map(&sites, Paint::Shades, 80);
    assert_eq!(map.matches("stream 1").count(), 1);
    for line in map
        .lines()
        .filter(|line| line.contains('·') && !line.contains("mean"))
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn colours_stay_within_their_lines_and_a_model_without_routing_has_no_map() {
    for paint in [Paint::Colours256, Paint::TrueColour] {
        for line in heat_map(&two_streams(), paint, 80).lines() {
            assert_eq!(
                line.matches("\x1b[48").count(),
                line.matches("\x1b[0m").count()
            );
        }
    }
    assert_eq!(heat_map(&[], Paint::Shades, 80), "");
}

#[test]
fn signed_weights_have_a_scale_of_sizes_and_no_sharpness() {
    let signed = |weight: &[f64]| {
        let sources = &["embed", "layer 1", "layer 2"][..weight.len()];
        vec![weighted(sources, Weighting::Signed, weight)]
    };
    let sites = [
        site(2, "attn", signed(&[-0.2, 1.0])),
        site(4, "readout", signed(&[0.0, -0.06, 1.3])),
    ];
    let expected = "     out ····-░░░████
  2 attn -▒▒▒████
         EMB L1  L2
size of the weight  · 0 ░ 0.05 ▒ 0.14 ▓ 0.37 █ 1.., - negative
columns: EMB embedding, L1 L2 .. outputs of layers
the weights of a site may be negative and need not sum to 1
";
    let map = heat_map(&sites, Paint::Shades, 80);
    assert_eq!(map, expected, "\n{map}");
    let map = heat_map(&sites, Paint::TrueColour, 80);
    assert_eq!(map.matches("m-   \x1b[0m").count(), 2, "\n{map}");
    let record = serde_json::to_value(&sites[0].streams[0]).unwrap();
    assert_eq!(record["weighting"], "signed");
    for key in ["max", "entropy", "floor"] {
        assert!(record.get(key).is_none(), "{record}");
    }
}

#[test]
fn sigmoid_weights_have_a_largest_one_and_no_floor() {
    let stats = weighted(&["embed", "partial"], Weighting::Sigmoid, &[0.9, 0.5]);
    let map = heat_map(&[site(1, "mlp", vec![stats])], Paint::Shades, 80);
    let expected = "  1 mlp  ████▒▒▒▒ 0.90
         EMB part max
mean weight  · 0.0 ░ 0.2 ▒ 0.4 ▓ 0.6 █ 0.8..1.0
columns: EMB embedding, part the unfinished block
max: mean over tokens of the largest weight; the weights of a site need not sum to 1
";
    assert_eq!(map, expected, "\n{map}");
}
