use std::collections::BTreeMap;

use braid_engine::Error;
use braid_engine::device::{Device, DeviceChoice, DeviceOptions};
use braid_engine::executor::{Data, Executor, Range, Work};
use braid_engine::kernel::Element;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::Place;
use braid_tests::{gpu, gpu_executor};

use super::Small;

#[test]
fn a_lost_device_is_an_error_everywhere_and_never_a_panic() {
    let Some(shared) = gpu() else {
        return;
    };
    // A device of its own: the other tests need theirs.
    let choice = DeviceChoice::Named(shared.report().name.clone());
    let device = pollster::block_on(Device::open(&choice, &DeviceOptions::default()));
    let device = device.expect("it was opened before");
    let mut executor = device.executor();
    let small = Small::load(executor.as_mut());
    let step = [Work::Clear(small.grads), Work::Run(small.program)];
    executor.submit(&step).expect("runs");
    let range = small.range(executor.as_ref(), "y");
    let pending = executor.read(&[range]).expect("inside");

    device.gpu().expect("it is a GPU").destroy();

    let lost = |result: Result<(), Error>, what: &str| {
        assert!(
            matches!(result, Err(Error::DeviceLost(_))),
            "{what}: {result:?}"
        );
    };
    // What was under way may have arrived before the end.
    if let Err(error) = pollster::block_on(pending) {
        lost(Err(error), "a read under way");
    }
    lost(executor.submit(&step), "submit");
    lost(executor.read(&[range]).map(drop), "read");
    lost(executor.write(small.values, 0, Data::F32(&[1.0])), "write");
    lost(
        executor.allocate("x", 4, Element::F32).map(drop),
        "allocate",
    );
    lost(executor.in_flight().map(drop), "in_flight");
    let search = pollster::block_on(executor.find_non_finite(small.program));
    lost(search.map(drop), "find_non_finite");

    // The adapter is still there: a new device goes on.
    let device = pollster::block_on(Device::open(&choice, &DeviceOptions::default()));
    let mut executor = device.expect("it was opened before").executor();
    let small = Small::load(executor.as_mut());
    executor
        .submit(&[Work::Clear(small.grads), Work::Run(small.program)])
        .expect("runs");
    small.results(executor.as_mut());
}

#[test]
fn the_first_tensor_that_is_not_finite_is_named() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let find = |executor: &mut dyn Executor| {
        pollster::block_on(executor.find_non_finite(small.program)).expect("runs")
    };
    assert_eq!(find(&mut executor), None);
    for bits in [0x7fc0_0000, 0x7f80_0000, 0xff80_0000] {
        let x = small.range(&executor, "x");
        let poison = [f32::from_bits(bits)];
        let element = 3 * super::DIM as usize + 5;
        executor
            .write(x.buffer, x.offset + element, Data::F32(&poison))
            .expect("fits");
        let found = find(&mut executor).expect("there is one");
        assert_eq!(found.step, "rms_norm");
        // The first in memory order: an infinite input makes the rest of its row zero, NaN spreads over it.
        assert_eq!(found.element / super::DIM as usize, 3, "{found:?}");
        small.write(&mut executor, "x", 0.37);
    }
    assert_eq!(find(&mut executor), None);
}

#[test]
fn misuse_is_refused_in_words() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let missing = executor.load(&small.plan, &BTreeMap::new());
    assert!(matches!(missing, Err(Error::Plan { .. })), "{missing:?}");
    let buffer = executor.allocate("four", 4, Element::F32).expect("fits");
    assert!(executor.write(buffer, 3, Data::F32(&[0.0; 2])).is_err());
    assert!(executor.write(buffer, 0, Data::U32(&[1])).is_err());
    let outside = Range {
        buffer,
        offset: 2,
        len: 3,
    };
    assert!(executor.read(&[outside]).is_err());
    let most = executor.limits().buffer as usize / 4;
    let Err(error) = executor.allocate("history", most + 1, Element::F32) else {
        panic!("larger than any buffer");
    };
    let text = error.to_string();
    assert!(
        text.contains("`history`") && text.contains("268.4 MB"),
        "{text}"
    );
}

#[test]
fn the_drivers_words_reach_the_caller() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let mut plan = Small::load(&mut executor).plan;
    // An offset that no device accepts. `Tape::finish` refuses it; here the plan is broken afterwards.
    let place: &mut Place = &mut plan.steps[0].args[0];
    (place.offset, place.len) = (1, place.len - 1);
    let arena = executor.allocate("arena", 256, Element::F32).expect("fits");
    let externals = [
        braid_engine::plan::External::Values,
        braid_engine::plan::External::Grads,
    ];
    let error = executor.load(&plan, &externals.map(|external| (external, arena)).into());
    let Err(Error::Gpu { doing, message }) = error else {
        panic!("{error:?}");
    };
    assert!(
        doing.contains("binding rms_norm (rms_norm::forward)"),
        "{doing}"
    );
    assert!(message.to_lowercase().contains("offset"), "{message}");
    // And the executor works on.
    let small = Small::load(&mut executor);
    executor
        .submit(&[Work::Clear(small.grads), Work::Run(small.program)])
        .expect("runs");
    small.results(&mut executor);
}

#[test]
fn memory_that_is_not_there_is_an_error_with_advice() {
    let mut executor = Device::cpu(&DeviceOptions::default()).executor();
    for element in [Element::F32, Element::U32] {
        let error = executor.allocate("history", usize::MAX / 16, element);
        let error = error.expect_err("no machine has so much");
        assert!(matches!(error, Error::Memory { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.starts_with("`history` needs") && message.contains("lower train.batch"),
            "{message}"
        );
    }
    executor
        .allocate("small", 4, Element::F32)
        .expect("goes on");
    // More than addresses reach: in WebAssembly that is a model of some billions of parameters.
    let spec = ParamSpec::base("w", [u32::MAX, u32::MAX], Init::Constant(0.0), true);
    let error = Parameters::layout(vec![spec]).expect_err("too large to have places");
    assert!(matches!(error, Error::Memory { .. }), "{error:?}");
    assert!(error.to_string().contains("lower model.width"), "{error}");
}
