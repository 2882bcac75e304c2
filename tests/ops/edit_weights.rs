//! Depth weights that somebody has edited.

use braid_engine::executor::{Data, Executor};
use braid_engine::ops::depth_attention::{DepthMix, depth_attention};
use braid_engine::ops::edit_weights::{RouteEdit, edit_values};
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::External;
use braid_engine::runtime::Runtime;
use braid_engine::tape::{Tape, edit_name};
use braid_tests::executors;

/// The weights that an edit should make of these.
type Expected = fn(&[f64]) -> Vec<f64>;

const ROWS: u32 = 7;
const DIM: u32 = 5;
const SOURCES: usize = 4;

/// Weights and mixed values of a mix of four sources, with these edits.
fn mixed(executor: Box<dyn Executor>, edits: &[RouteEdit]) -> [Vec<f64>; 2] {
    let spec = |name: &str| ParamSpec::routing(name, [1, DIM], Init::Constant(0.0));
    let parameters = Parameters::layout(vec![spec("query"), spec("gain")]).expect("two names");
    let parameters = std::sync::Arc::new(parameters);
    let mut runtime = Runtime::new(executor, parameters.clone()).expect("fits");
    let arena: Vec<f64> = (0..parameters.arena_len())
        .map(|at| ((at * 37 % 11) as f64 - 5.0) / 4.0)
        .collect();
    runtime
        .write_external(External::Values, Data::F64(&arena))
        .expect("fits");

    let mut tape = Tape::new(parameters).editing(true);
    let history = tape.history("sources", ROWS, DIM);
    let mut slots = Vec::new();
    for number in 0..SOURCES {
        let input = tape.input(&format!("source.{number}"), [ROWS, DIM]);
        let copy = braid_engine::ops::copy::copy(&mut tape, input).expect("records");
        slots.push(tape.push(history, copy).expect("records"));
    }
    let pairs: Vec<_> = slots.iter().map(|&slot| (slot, slot)).collect();
    let how = DepthMix::softmax(1e-6);
    let [query, gain] = ["query", "gain"].map(|name| tape.parameter(name).expect("declared"));
    let (values, weights) =
        depth_attention(&mut tape, history, &pairs, query, 0, gain, &how).expect("records");
    tape.output("values", values);
    tape.output("weights", weights);
    let plan = tape.finish(&runtime.limits()).expect("fits");
    let loaded = runtime.load(&plan).expect("loads");
    for number in 0..SOURCES {
        let content: Vec<f64> = (0..(ROWS * DIM) as usize)
            .map(|at| value(number, at))
            .collect();
        let name = format!("source.{number}");
        runtime
            .write_input(&loaded, &name, Data::F64(&content))
            .expect("fits");
    }
    let edit = edit_values(SOURCES, edits, true).expect("possible");
    runtime
        .write_input(&loaded, &edit_name(0), Data::F64(&edit))
        .expect("fits");
    runtime.submit(false, &[&loaded]).expect("runs");
    let names = ["weights".to_owned(), "values".to_owned()];
    let read = pollster::block_on(runtime.read(&loaded, &names)).expect("reads");
    [read[0].to_f64(), read[1].to_f64()]
}

fn value(number: usize, at: usize) -> f64 {
    ((number * 53 + at * 29) % 23) as f64 / 9.0 - 1.2
}

#[test]
fn edits_do_what_they_say_on_every_executor() {
    use RouteEdit::{Cut, Pin, Swap, Uniform};
    for (name, _) in executors() {
        let run = |edits: &[RouteEdit]| {
            let found = executors().into_iter().find(|(other, _)| *other == name);
            mixed(found.expect("it was there").1, edits)
        };
        let [clean, _] = run(&[]);
        let cases: [(&[RouteEdit], Expected); 6] = [
            (&[], <[f64]>::to_vec),
            (&[Cut(2)], |w| {
                let rest = 1.0 - w[2];
                vec![w[0] / rest, w[1] / rest, 0.0, w[3] / rest]
            }),
            (&[Cut(0), Cut(3)], |w| {
                let rest = w[1] + w[2];
                vec![0.0, w[1] / rest, w[2] / rest, 0.0]
            }),
            (&[Pin(1)], |_| vec![0.0, 1.0, 0.0, 0.0]),
            (&[Swap(0, 3), Swap(0, 1)], |w| vec![w[1], w[3], w[2], w[0]]),
            (&[Uniform], |_| vec![0.25; 4]),
        ];
        for (edits, expected) in cases {
            let [weights, values] = run(edits);
            for (row, (got, before)) in weights
                .chunks(SOURCES)
                .zip(clean.chunks(SOURCES))
                .enumerate()
            {
                let want = expected(before);
                for (got, want) in got.iter().zip(&want) {
                    assert!((got - want).abs() < 1e-6, "{name} {edits:?}: {got} {want}");
                }
                for channel in 0..DIM as usize {
                    let at = row * DIM as usize + channel;
                    let sum: f64 = (0..SOURCES).map(|i| got[i] * value(i, at)).sum();
                    assert!((values[at] - sum).abs() < 1e-5, "{name} {edits:?}");
                }
            }
        }
        // Without edits, nothing changes: not a bit.
        assert_eq!(run(&[])[0], clean);
    }
}

#[test]
fn impossible_edits_are_refused() {
    for (columns, edit) in [
        (3, RouteEdit::Cut(3)),
        (1, RouteEdit::Cut(0)),
        (2, RouteEdit::Swap(0, 2)),
        (2, RouteEdit::Pin(7)),
    ] {
        assert!(
            edit_values(columns, &[edit], true).is_err(),
            "{edit:?} of {columns}"
        );
    }
}
