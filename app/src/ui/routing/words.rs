//! One read in words, for people who cannot see the map.

use super::signed::signed;
use crate::names::{site_words, source_words};
use crate::protocol::{Site, Stream};
use crate::ui::format::percent;

/// How far above uniform the sharpest mean weight of a read is.
fn sharpness(stream: &Stream) -> Option<f64> {
    let n = stream.sources.len();
    let most = stream.weight.iter().copied().fold(f64::NAN, f64::max);
    (n > 1 && most.is_finite()).then(|| most - 1.0 / n as f64)
}

/// Below this share of the way from uniform to a single source, a read has not decided yet.
const DECIDED: f64 = 0.1;

/// Whether the sharpest mean weight of a read is far from uniform.
pub(super) fn is_decided(sites: &[Site], read: (u32, usize)) -> bool {
    let site = sites.iter().find(|site| site.site == read.0);
    let stream = site.and_then(|site| site.streams.get(read.1));
    stream.is_some_and(|stream| {
        let uniform = 1.0 / stream.sources.len().max(1) as f64;
        sharpness(stream).is_some_and(|over| over > DECIDED * (1.0 - uniform))
    })
}

/// The read that is furthest from uniform; nothing if no site has a choice.
pub(super) fn sharpest(sites: &[Site]) -> Option<(u32, usize)> {
    let reads = sites.iter().flat_map(|site| {
        let reads = site.streams.iter().enumerate();
        reads.filter_map(|(at, stream)| Some((sharpness(stream)?, site.site, at)))
    });
    reads
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, site, stream)| (site, stream))
}

/// `layer 6 MLP, stream 1`; streams are counted from 0, as in the papers, and named only where there are several.
pub(in crate::ui) fn read_words(site: &Site, stream: usize) -> String {
    let words = site_words(site.site, site.kind);
    if site.streams.len() > 1 {
        format!("{words}, stream {stream},")
    } else {
        words
    }
}

/// `layer 6 MLP, stream 1, reads block 2 at 61 %; the embedding at 24 %`
pub(super) fn sentence(sites: &[Site], read: (u32, usize)) -> Option<String> {
    let site = sites.iter().find(|site| site.site == read.0)?;
    let stream = site.streams.get(read.1)?;
    let mut order: Vec<usize> = (0..stream.sources.len().min(stream.weight.len())).collect();
    order.sort_by(|&a, &b| stream.weight[b].abs().total_cmp(&stream.weight[a].abs()));
    let convex = stream.weight.iter().all(|w| (-1e-6..=1.001).contains(w));
    let amount = |at: usize| {
        if convex {
            format!("at {}", percent(stream.weight[at]))
        } else {
            format!("times {}", signed(stream.weight[at], 2))
        }
    };
    let named = |&at: &usize| format!("{} {}", source_words(&stream.sources[at]), amount(at));
    let said: Vec<String> = order.iter().take(3).map(named).collect();
    let who = read_words(site, read.1);
    let rest = order.len().saturating_sub(said.len());
    let mut line = format!("{who} reads {}", said.join("; "));
    if rest > 0 {
        let others = if rest == 1 { "source" } else { "sources" };
        line.push_str(&format!("; {rest} more {others}"));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SiteKind;

    fn site(kind: SiteKind, streams: &[&[(&str, f64)]]) -> Site {
        let stream = |reads: &&[(&str, f64)]| Stream {
            sources: reads.iter().map(|read| read.0.into()).collect(),
            weight: reads.iter().map(|read| read.1).collect(),
            max: None,
            entropy: None,
            floor: None,
        };
        Site {
            site: 11,
            kind,
            streams: streams.iter().map(stream).collect(),
            alpha: None,
            rho: None,
            beta: None,
            read: None,
            write: None,
            mix: None,
        }
    }

    #[test]
    fn the_heaviest_source_comes_first() {
        let sites = [site(
            SiteKind::Mlp,
            &[
                &[("embed", 0.5), ("block 2", 0.5)],
                &[("embed", 0.24), ("block 2", 0.61), ("partial", 0.15)],
            ],
        )];
        let words = "layer 6 MLP, stream 1, reads block 2 at 61 %; the embedding at 24 %; the partial sum of its block at 15 %";
        assert_eq!(sentence(&sites, (11, 1)).as_deref(), Some(words));
        assert_eq!(sharpest(&sites), Some((11, 1)));
        assert_eq!(sentence(&sites, (12, 0)), None);
        assert!(is_decided(&sites, (11, 1)));
        assert!(!is_decided(&sites, (11, 0)) && !is_decided(&sites, (12, 0)));
    }

    #[test]
    fn signed_weights_are_factors() {
        let sites = [site(
            SiteKind::Attn,
            &[&[("embed", -0.5), ("block 1", 1.4)]],
        )];
        let words = "layer 6 attention reads block 1 times 1.40; the embedding times −0.50";
        assert_eq!(sentence(&sites, (11, 0)).as_deref(), Some(words));
    }

    #[test]
    fn a_site_without_a_choice_is_not_sharp() {
        assert_eq!(
            sharpest(&[site(SiteKind::Attn, &[&[("embed", 1.0)]])]),
            None
        );
    }
}
