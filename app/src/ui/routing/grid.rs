//! The map as numbers: rows are sites, columns are sources. What is drawn, exported and put in words.

use crate::protocol::{Site, SiteKind};

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The site.
    pub(super) site: u32,
    /// What it is.
    pub(super) kind: SiteKind,
}

/// A value, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// The value.
    pub(super) value: f64,
    /// Its place among the sources of its read, which is not its column: a site reads fewer sources than there are.
    pub(super) source: usize,
}

/// One stream's map, or the difference of two.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// The stream; `None`: a difference.
    pub(super) stream: Option<usize>,
    /// Bottom first.
    pub(super) rows: Vec<Row>,
    /// Names of the sources.
    pub(super) columns: Vec<String>,
    /// `[rows][columns]`; `None`: the site cannot read that source.
    pub(super) cells: Vec<Vec<Option<Cell>>>,
}

/// Streams that read sources.
pub(super) fn streams(sites: &[Site]) -> usize {
    let counts = sites.iter().map(|site| site.streams.len());
    counts.max().unwrap_or(0)
}

/// All sources in the order of their creation; what is current (`partial`, `null`) last.
pub(super) fn columns<'a>(sites: impl Iterator<Item = &'a Site>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for source in sites
        .flat_map(|site| &site.streams)
        .flat_map(|s| &s.sources)
    {
        if !names.contains(source) {
            names.push(source.clone());
        }
    }
    names.sort_by_key(|name| match name.as_str() {
        "partial" => 1,
        "null" => 2,
        _ => 0,
    });
    names
}

fn rows(sites: &[Site]) -> Vec<&Site> {
    let mut rows: Vec<&Site> = sites.iter().filter(|s| !s.streams.is_empty()).collect();
    rows.sort_by_key(|site| site.site);
    rows
}

/// A stream's weight of a source.
fn cell(site: &Site, stream: usize, name: &str) -> Option<Cell> {
    let stream = site.streams.get(stream)?;
    let source = stream.sources.iter().position(|own| own == name)?;
    let value = stream.weight.get(source).copied()?;
    value.is_finite().then_some(Cell { value, source })
}

impl Grid {
    fn new(
        sites: &[Site],
        stream: Option<usize>,
        cell: impl Fn(&Site, &str) -> Option<Cell>,
    ) -> Self {
        let (rows, columns) = (rows(sites), columns(sites.iter()));
        Self {
            stream,
            cells: rows
                .iter()
                .map(|site| columns.iter().map(|name| cell(site, name)).collect())
                .collect(),
            rows: rows
                .iter()
                .map(|site| Row {
                    site: site.site,
                    kind: site.kind,
                })
                .collect(),
            columns,
        }
    }

    /// The map of one stream.
    pub(super) fn stream(sites: &[Site], stream: usize) -> Self {
        Self::new(sites, Some(stream), |site, name| cell(site, stream, name))
    }

    /// The first stream minus the second.
    pub(super) fn difference(sites: &[Site]) -> Self {
        Self::new(sites, None, |site, name| {
            let (one, two) = (cell(site, 0, name)?, cell(site, 1, name)?);
            Some(Cell {
                value: one.value - two.value,
                source: one.source,
            })
        })
    }

    /// All values.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().flatten().flatten().map(|cell| cell.value)
    }

    /// The row of a site.
    pub(super) fn row(&self, site: u32) -> Option<usize> {
        self.rows.iter().position(|row| row.site == site)
    }

    /// The column of the `source`th source of a row.
    pub(super) fn column(&self, row: usize, source: usize) -> Option<usize> {
        let cells = self.cells.get(row)?;
        cells
            .iter()
            .position(|cell| cell.is_some_and(|cell| cell.source == source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Stream;

    fn stream(sources: &[&str], weight: &[f64]) -> Stream {
        Stream {
            sources: sources.iter().map(|&name| name.into()).collect(),
            weight: weight.to_vec(),
            max: None,
            entropy: None,
            floor: None,
        }
    }

    fn site(site: u32, streams: Vec<Stream>) -> Site {
        Site {
            site,
            kind: SiteKind::Attn,
            streams,
            alpha: None,
            rho: None,
            beta: None,
            read: None,
            write: None,
            mix: None,
        }
    }

    #[test]
    fn a_site_has_its_own_sources_only() {
        let partial = stream(&["embed", "partial"], &[0.25, 0.75]);
        let later = stream(&["embed", "block 1", "partial"], &[0.5, 0.2, 0.3]);
        let sites = [site(1, vec![partial]), site(2, vec![later])];
        let grid = Grid::stream(&sites, 0);
        assert_eq!(grid.columns, ["embed", "block 1", "partial"]);
        assert_eq!(grid.cells[0][1], None);
        // Second of its own sources, third of all.
        let cell = Cell {
            value: 0.75,
            source: 1,
        };
        assert_eq!(grid.cells[0][2], Some(cell));
        assert_eq!(grid.column(0, 1), Some(2));
        assert_eq!(grid.row(2), Some(1));
    }

    #[test]
    fn a_difference_needs_both_streams() {
        let both = vec![
            stream(&["embed", "partial"], &[0.25, 0.75]),
            stream(&["embed", "partial"], &[0.5, 0.5]),
        ];
        let one = vec![stream(&["embed"], &[1.0])];
        let grid = Grid::difference(&[site(0, one), site(1, both)]);
        assert_eq!(grid.cells[0], [None, None]);
        assert_eq!(grid.values().collect::<Vec<_>>(), [-0.25, 0.25]);
    }
}
