use braid_engine::device::{Device, DeviceChoice, DeviceOptions};
use braid_engine::executor::{Counts, Executor, Work};
use braid_tests::{executors, gpu, gpu_executor};

use super::Small;

#[test]
fn two_replays_give_the_same_bits() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let step = [Work::Clear(small.grads), Work::Run(small.program)];
    executor.submit(&step).expect("runs");
    let first = small.results(&mut executor);
    executor.submit(&step).expect("runs");
    assert_eq!(small.results(&mut executor), first);
}

#[test]
fn two_executors_give_the_same_bits() {
    let run = || {
        let mut executor = gpu_executor()?;
        let small = Small::load(&mut executor);
        executor
            .submit(&[Work::Clear(small.grads), Work::Run(small.program)])
            .expect("runs");
        Some(small.results(&mut executor))
    };
    assert_eq!(run(), run());
}

#[test]
fn slices_change_the_number_of_submissions_only() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let step = [Work::Clear(small.grads), Work::Run(small.program)];
    executor.submit(&step).expect("runs");
    let whole = small.results(&mut executor);
    let calls = small.plan.steps.len() as u64;
    for slice in [1, 3, calls as usize, 1000] {
        executor.set_slice(Some(slice));
        let before = executor.counts();
        executor.submit(&step).expect("runs");
        let after = executor.counts();
        let pieces = calls.div_ceil(slice as u64);
        assert_eq!(after.submits - before.submits, pieces, "slices of {slice}");
        assert_eq!(after.passes - before.passes, pieces, "slices of {slice}");
        assert_eq!(after.dispatches - before.dispatches, calls);
        assert_eq!(small.results(&mut executor), whole, "slices of {slice}");
    }
}

#[test]
fn a_step_is_one_submission_with_one_pass_and_creates_nothing() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let step = [Work::Clear(small.grads), Work::Run(small.program)];
    // The first step may create what later ones use again: the staging buffer.
    executor.submit(&step).expect("runs");
    small.results(&mut executor);
    let before = executor.counts();
    for _ in 0..5 {
        small.write(&mut executor, "x", 0.21);
        executor.submit(&step).expect("runs");
        small.results(&mut executor);
    }
    let after = executor.counts();
    let want = Counts {
        submits: before.submits + 10, // five steps, five reads
        passes: before.passes + 5,
        dispatches: before.dispatches + 5 * small.plan.steps.len() as u64,
        ..before
    };
    assert_eq!(after, want);
}

#[test]
fn a_second_load_compiles_nothing() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    Small::load(&mut executor);
    let before = executor.counts();
    let small = Small::load(&mut executor);
    let after = executor.counts();
    assert_eq!(after.pipelines, before.pipelines);
    assert_eq!(
        after.bind_groups - before.bind_groups,
        small.plan.steps.len() as u64
    );
}

#[test]
fn repeated_calls_are_those_of_a_run() {
    for (name, mut executor) in executors() {
        let small = Small::load(executor.as_mut());
        let calls = small.plan.steps.len();
        let repeat = |first, last, times| Work::Repeat {
            program: small.program,
            first,
            last,
            times,
        };
        let run = [Work::Clear(small.grads), Work::Run(small.program)];
        executor.submit(&run).expect("runs");
        let want = small.results(executor.as_mut());
        let before = executor.counts();
        let parts = [
            Work::Clear(small.grads),
            repeat(0, 0, 3),
            repeat(1, calls - 1, 1),
        ];
        executor.submit(&parts).expect("runs");
        let after = executor.counts();
        assert_eq!(small.results(executor.as_mut()), want, "{name}");
        assert_eq!(after.dispatches - before.dispatches, calls as u64 + 2);
        let refused = executor.submit(&[repeat(1, calls, 1)]);
        let message = refused.expect_err("there is no such call").to_string();
        assert!(
            message.contains(&format!("no calls 1 to {calls}")),
            "{message}"
        );
    }
}

#[test]
fn a_profile_has_a_time_for_each_call_and_changes_nothing() {
    let options = DeviceOptions {
        timestamps: true,
        ..DeviceOptions::default()
    };
    let mut all = executors();
    if let Some(shared) = gpu() {
        let choice = DeviceChoice::Named(shared.report().name.clone());
        let device = pollster::block_on(Device::open(&choice, &options)).expect("it exists");
        let timed = shared
            .report()
            .features
            .iter()
            .any(|name| name == "timestamps");
        let name = if timed { "timestamps" } else { "no timestamps" };
        all.push((name, device.executor()));
    }
    for (name, mut executor) in all {
        let small = Small::load(executor.as_mut());
        let run = [Work::Clear(small.grads), Work::Run(small.program)];
        executor.submit(&run).expect("runs");
        let want = small.results(executor.as_mut());
        executor.submit(&[Work::Clear(small.grads)]).expect("runs");
        let ticks = std::cell::Cell::new(0.0);
        let clock = || {
            ticks.set(ticks.get() + 1.0);
            ticks.get()
        };
        let profile = executor.profile(small.program, &clock).expect("runs");
        let profile = pollster::block_on(profile).expect("arrives");
        let calls = small.plan.steps.len();
        match name {
            "gpu" | "no timestamps" => {
                assert_eq!(profile, None, "it was opened without timestamps");
                continue;
            }
            "timestamps" => {
                let seconds = profile.expect("it has a clock");
                assert_eq!(seconds.len(), calls);
                assert!(seconds.iter().sum::<f64>() > 0.0, "{seconds:?}");
            }
            _ => assert_eq!(profile, Some(vec![1.0; calls]), "{name}"),
        }
        assert_eq!(small.results(executor.as_mut()), want, "{name}");
    }
}

#[test]
fn a_clear_between_two_runs_happens_between_them() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let (clear, run) = (Work::Clear(small.grads), Work::Run(small.program));
    executor.submit(&[clear, run]).expect("runs");
    let once = small.results(&mut executor);
    executor.submit(&[clear, run, clear, run]).expect("runs");
    assert_eq!(small.results(&mut executor), once);
    executor.submit(&[run]).expect("runs");
    assert_ne!(small.results(&mut executor), once, "gradients are added to");
}
