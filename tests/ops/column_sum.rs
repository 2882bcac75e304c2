use braid_engine::Result;
use braid_engine::ops::column_sum::{Params, blocks, column_sum};
use braid_engine::tape::{Op, Recorder, Tensor};
use braid_tests::{Case, F32, assert_close, compare, executors};

/// Sums the rows of its input twice into its output: stores, then adds.
#[derive(Debug)]
struct TwiceTheSum;

impl Op for TwiceTheSum {
    fn name(&self) -> &'static str {
        "twice_the_sum"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (rows, dim) = (x[0].shape.rows(), x[0].shape.last());
        for add in [0, 1] {
            let (from, to) = (rec.value(x[0]), rec.value(y[0]));
            column_sum(rec, from, Params { rows, dim, add }, to)?;
        }
        Ok(())
    }

    fn backward(&self, _: &mut Recorder, _: &[Tensor], _: &[Tensor]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn sums_are_stored_then_added_to() {
    for dim in [1, 63, 64, 65, 96] {
        for rows in [1, 7, 70] {
            let case = Case::seeded(1).plain("x", [rows, dim]);
            let record = |tape: &mut braid_engine::tape::Tape, x: &braid_tests::Inputs| {
                let y = tape.record(TwiceTheSum, &[x["x"]], &[[dim].into()])?[0];
                tape.output("y", y);
                Ok(vec![])
            };
            let want: Vec<f64> = (0..dim as usize)
                .map(|i| {
                    let column = case.input("x").iter().skip(i).step_by(dim as usize);
                    2.0 * column.sum::<f64>()
                })
                .collect();
            let oracle = case.oracle(record);
            assert_close("oracle", &oracle["y"], &want, 1e-14);
            for (name, executor) in executors() {
                compare(name, &case.run_on(executor, record), &oracle, F32);
            }
        }
    }
}

#[test]
fn blocks_cover_all_rows_and_depend_on_their_number_only() {
    for rows in [1, 15, 16, 17, 1024, 1025, 65_536] {
        let (count, chunk) = blocks(rows);
        assert!(
            count * chunk >= rows && (count - 1) * chunk < rows,
            "{rows} rows"
        );
        assert!(count <= 64, "{rows} rows");
    }
}
