use braid_engine::optim::{Schedule, ScheduleKind};

const BASE: Schedule = Schedule {
    kind: ScheduleKind::Cosine,
    lr: 1e-3,
    min_lr: 1e-4,
    warmup: 10,
    steps: 110,
};

fn near(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-15, "{got} is not {want}");
}

#[test]
fn the_warm_up_is_a_line_that_ends_at_the_full_rate() {
    for kind in [
        ScheduleKind::Cosine,
        ScheduleKind::Wsd,
        ScheduleKind::Constant,
    ] {
        let schedule = Schedule { kind, ..BASE };
        near(schedule.rate(0), 1e-4);
        near(schedule.rate(4), 5e-4);
        near(schedule.rate(9), 1e-3);
    }
}

#[test]
fn a_cosine_is_half_way_in_the_middle_and_ends_at_the_smallest_rate() {
    near(BASE.rate(59), (1e-3 + 1e-4) / 2.0);
    near(BASE.rate(109), 1e-4);
    near(BASE.rate(1_000), 1e-4);
    assert!(BASE.rate(10) < 1e-3 && BASE.rate(10) > 9.9e-4);
}

#[test]
fn wsd_is_flat_and_falls_in_the_last_fifth() {
    let schedule = Schedule {
        kind: ScheduleKind::Wsd,
        ..BASE
    };
    near(schedule.rate(50), 1e-3);
    near(schedule.rate(87), 1e-3);
    assert!(schedule.rate(88) < 1e-3);
    near(schedule.rate(98), (1e-3 + 1e-4) / 2.0);
    near(schedule.rate(109), 1e-4);
    near(schedule.rate(110), 1e-4);
}

#[test]
fn a_constant_rate_stays() {
    let schedule = Schedule {
        kind: ScheduleKind::Constant,
        ..BASE
    };
    near(schedule.rate(10), 1e-3);
    near(schedule.rate(109), 1e-3);
    near(schedule.rate(5_000), 1e-3);
}

#[test]
fn a_cosine_never_rises_after_the_warm_up() {
    let rates: Vec<f64> = (9..120).map(|step| BASE.rate(step)).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b));
}

#[test]
fn without_a_warm_up_the_first_step_has_the_full_rate() {
    for kind in [
        ScheduleKind::Cosine,
        ScheduleKind::Wsd,
        ScheduleKind::Constant,
    ] {
        let schedule = Schedule {
            kind,
            warmup: 0,
            ..BASE
        };
        near(schedule.rate(0), 1e-3);
    }
}

#[test]
fn degenerate_lengths_have_finite_rates() {
    for kind in [
        ScheduleKind::Cosine,
        ScheduleKind::Wsd,
        ScheduleKind::Constant,
    ] {
        for (warmup, steps) in [(0, 0), (0, 1), (1, 1), (5, 5), (10, 3), (0, 2), (4, 6)] {
            let schedule = Schedule {
                kind,
                warmup,
                steps,
                ..BASE
            };
            for step in 0..12 {
                let rate = schedule.rate(step);
                assert!(
                    (1e-4..=1e-3).contains(&rate),
                    "{schedule:?} at {step}: {rate}"
                );
            }
        }
    }
}
