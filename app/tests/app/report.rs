//! The report: one file with everything in it, that fetches nothing.

use std::fs;

use crate::program::{Place, SMALL, ok, stdout};

/// Every address that a page would fetch or link to.
fn addresses(page: &str) -> Vec<&str> {
    let marks = ["href=\"", "src=\"", "url(", "@import"];
    let after = marks.iter().flat_map(|mark| page.split(mark).skip(1));
    after.map(|rest| &rest[..rest.len().min(40)]).collect()
}

#[test]
fn a_report_holds_a_run_and_fetches_nothing() {
    let place = Place::new();
    ok(&place.train(&["--steps", "8", "--out", "dar"]));
    let other = [
        "--steps",
        "8",
        "--set",
        "residual.kind=standard",
        "--out",
        "a<b",
    ];
    ok(&place.train(&other));
    ok(&place.braid(&[
        "analyze",
        "dar",
        "--device",
        "cpu",
        "--sequences",
        "4",
        "--draws",
        "20",
        "--only",
        "depth",
    ]));
    // A model writes what it likes.
    let text = r#"{"event":"sample","step":4,"tokens":[{"text":"<script>alert(1)</script>","probability":null}],"temperature":0.8,"seed":1}"#;
    fs::write(place.path("dar/samples.jsonl"), format!("{text}\n")).unwrap();
    let output = place.braid(&["report", "dar", "a<b"]);
    ok(&output);
    assert!(
        stdout(&output).contains("report.html"),
        "{}",
        stdout(&output)
    );
    let page = fs::read_to_string(place.path("dar/report.html")).unwrap();
    for part in [
        "<title>Braid: 2 runs</title>",
        "braid train --set ",
        "residual.kind=standard",
        "a&lt;b",
        "What each sublayer reads",
        "stream 1, after 8 updates",
        "<h4>depth ",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "layers_per_block = 2",
        "default-src 'none'",
        "@media print",
    ] {
        assert!(page.contains(part), "`{part}` is not in the page");
    }
    assert!(!page.contains("<script") && !page.contains("a<b") && !page.contains("NaN"));
    // Curves of the loss and of the held-out loss, and a map for each stream of one of them.
    assert_eq!(page.matches("<svg ").count(), 4);
    let addresses = addresses(&page);
    // Two for each of them, and one for each table of the analysis.
    let tables = fs::read_dir(place.path("dar/analysis")).unwrap().count();
    assert_eq!(addresses.len(), 2 * 4 + tables, "{addresses:?}");
    assert!(
        addresses.iter().all(|address| address.starts_with("data:")),
        "{addresses:?}"
    );
    // Nothing else in it names another machine than that of the SVG namespace.
    assert_eq!(
        page.matches("http").count(),
        page.matches("http://www.w3.org/2000/svg").count() + 1
    );
    assert!(page.contains("http-equiv"));
    let again = place.braid(&["report", "dar", "a<b", "--out", "other.html"]);
    ok(&again);
    assert_eq!(fs::read_to_string(place.path("other.html")).unwrap(), page);
}

#[test]
fn a_report_of_a_sweep_has_its_table_and_its_runs() {
    let place = Place::new();
    let sets = SMALL
        .iter()
        .copied()
        .filter(|word| !["--device", "cpu"].contains(word));
    let args: Vec<&str> = [
        "compare", "standard", "delta", "--device", "cpu", "--seeds", "2", "--steps", "4", "--out",
        "both",
    ]
    .into_iter()
    .chain(sets)
    .collect();
    ok(&place.braid(&args));
    ok(&place.braid(&["report", "both"]));
    let page = fs::read_to_string(place.path("both/report.html")).unwrap();
    for part in [
        "Comparison with standard",
        "too noisy to say",
        "delta, seed 2",
        "<title>Braid: 4 runs</title>",
    ] {
        assert!(page.contains(part), "`{part}` is not in the page");
    }
}

#[test]
fn what_is_no_run_gets_a_sentence() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    place.fails(2, &["report", "none"], &["there is no run at none"]);
    place.fails(
        2,
        &["report", "empty"],
        &["there are no runs of a sweep in empty"],
    );
    place.fails(2, &["report"], &["RUN"]);
    ok(&place.train(&["--steps", "2", "--out", "run"]));
    place.fails(2, &["report", "run", "--out", "empty"], &["name of a file"]);
    let state = place.path("run/checkpoints/step-000002/state.json");
    fs::write(state, "{").unwrap();
    place.fails(2, &["report", "run"], &["state.json cannot be used"]);
}
