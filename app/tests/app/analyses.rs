//! Tables of figures.

use braid_app::analyses::table::{Table, figure};
use braid_app::row;
use braid_engine::analysis::Estimate;

fn table() -> Table {
    let mut table = Table::new("t", "a title", &["name", "x+", "y"]);
    let (value, low, high) = (0.25, 0.125, 0.5);
    table
        .rows
        .push(row!["a, \"b\"", Estimate { value, low, high }, 3_u32]);
    let (low, high) = (f64::NAN, f64::NAN);
    table
        .rows
        .push(row!["c", Estimate { value, low, high }, None::<f64>]);
    table.rows.push(row!["d", None::<Estimate>, 1234.4]);
    table
}

#[test]
fn text_is_aligned_and_says_what_is_left_out() {
    let want = "\
a title
  name    x                     y
  a, \"b\"  0.250 [0.125, 0.500]  3
  c       0.250                 -
  d       -                     1234
";
    assert_eq!(table().text(), want);
    let short = Table {
        shown: 1,
        ..table()
    };
    assert!(
        short.text().ends_with("  and 2 more rows in t.csv\n"),
        "{}",
        short.text()
    );
}

#[test]
fn files_have_three_columns_for_a_figure_with_an_interval() {
    let want = "name,x,x low,x high,y\n\"a, \"\"b\"\"\",0.25,0.125,0.5,3\nc,0.25,,,\nd,,,,1234.4\n";
    assert_eq!(table().csv(), want);
}

#[test]
fn figures_have_the_digits_that_mean_something() {
    let cases = [
        (0.0, "0"),
        (0.5321, "0.532"),
        (-12.34, "-12.3"),
        (2345.6, "2346"),
        (0.00012, "1.20e-4"),
        (1.5e7, "1.50e7"),
        (f64::NAN, "-"),
        (f64::INFINITY, "-"),
    ];
    for (value, want) in cases {
        assert_eq!(figure(value), want);
    }
}
