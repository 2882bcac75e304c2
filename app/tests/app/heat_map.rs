//! The map of routing weights.

use braid_app::heat_map::{Paint, heat_map};
use braid_engine::analysis::{SiteStats, StreamStats};

fn stream(sources: &[&str], weight: &[f64]) -> StreamStats {
    StreamStats {
        sources: sources.iter().map(|s| (*s).to_owned()).collect(),
        weight: weight.to_vec(),
        max: weight.iter().copied().fold(0.0, f64::max),
        entropy: 0.0,
        floor: 1.0 / weight.len() as f64,
    }
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
    let expected = "         stream 1                stream 2
read-out ····░░░░▓▓▓▓ 0.60/0.33  ░░░░░░░░▓▓▓▓ 0.60/0.33
  2 attn ░░░░▓▓▓▓     0.75/0.50  ····████     1.00/0.50
  1 mlp  ▒▒▒▒    ▒▒▒▒ 0.50/0.50  ████    ···· 0.90/0.50
  0 attn ████         1.00/1.00  ████         1.00/1.00
         e   1   p    max/floor  e   1   p    max/floor
mean weight  · 0.0 ░ 0.2 ▒ 0.4 ▓ 0.6 █ 0.8..1.0
columns: e embedding, 1 2 .. blocks, p current block
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
    assert_eq!(map.matches("stream 2").count(), 1);
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
