//! The right column: curves, samples, compare.

use braid_app::protocol::{Command, Depth, Event, Frame, Line, RunInfo, RunState, Sampled, Token};
use braid_app::ui::{Axis, Heard, Moment, Rulers, Tab, View};
use egui::Theme;
use egui_kittest::kittest::{NodeT, Queryable};
use egui_kittest::{Harness, SnapshotResults};

use super::harness::recorded;

/// The column alone, and what it shares with the window.
#[derive(Default)]
struct Column {
    rulers: Rulers,
    heard: Heard,
    view: View,
    sent: Vec<Command>,
    /// One panel as in a narrow window.
    tab: Option<Tab>,
}

fn column(size: [f32; 2], theme: Theme, mut column: Column) -> Harness<'static, Column> {
    column.view.forget.clear();
    Harness::builder()
        .with_size(size)
        .with_theme(theme)
        .with_max_steps(16)
        .wgpu()
        .build_ui_state(
            |ui, column: &mut Column| {
                let Column {
                    rulers,
                    heard,
                    view,
                    sent,
                    tab,
                } = column;
                rulers.tick(heard, sent);
                match *tab {
                    Some(tab) => rulers.tab(ui, tab, heard, view, sent),
                    None => rulers.show(ui, heard, view, sent),
                }
            },
            column,
        )
}

fn heard(events: Vec<Event>) -> Heard {
    let mut heard = Heard::default();
    events.into_iter().for_each(|event| heard.hear(event));
    heard
}

/// A text of made-up words and probabilities, for the eye and for the tests.
fn sampled(step: u64) -> Event {
    let words = [
        ("k3 = v7 ; ", None),
        ("k1 = v2 ; ", None),
        ("k3 → ", None),
        ("v7", Some(0.97)),
        (" ; ", Some(0.99)),
        ("k1", Some(0.42)),
        (" → ", Some(0.98)),
        ("v2", Some(0.88)),
        (" ; ", Some(0.995)),
        ("k9", Some(0.03)),
        (" → ", Some(0.9)),
        ("v4", Some(0.000_4)),
    ];
    let token = |(text, probability): (&str, Option<f64>)| Token {
        text: text.into(),
        probability,
    };
    let tokens = words.into_iter().map(token).collect();
    Event::Sampled(Box::new(Sampled {
        step,
        tokens,
        temperature: 0.8,
        seed: 7,
    }))
}

fn trained() -> Column {
    let mut heard = heard(recorded("dar"));
    [50, 100]
        .map(sampled)
        .into_iter()
        .for_each(|event| heard.hear(event));
    Column {
        heard,
        ..Column::default()
    }
}

#[test]
fn a_training_fills_the_column() {
    let mut results = SnapshotResults::new();
    for (theme, name) in [(Theme::Dark, "rulers_dark"), (Theme::Light, "rulers_light")] {
        let mut state = trained();
        state.view.moment = Moment::At(12);
        let mut harness = column([360.0, 760.0], theme, state);
        harness.run_steps(4);
        harness.snapshot(name);
        results.extend(harness.take_snapshot_results());
    }
}

#[test]
fn runs_stand_side_by_side() {
    let state = Column {
        tab: Some(Tab::Compare),
        ..trained()
    };
    let mut harness = column([360.0, 560.0], Theme::Dark, state);
    harness.run_steps(4);
    harness.snapshot("compare_dark");
}

#[test]
fn runs_are_hidden_removed_and_added() {
    let state = Column {
        tab: Some(Tab::Compare),
        ..trained()
    };
    let mut harness = column([360.0, 560.0], Theme::Dark, state);
    harness.run_steps(4);
    // The same runs by their training losses.
    harness.get_by_label("training loss").click();
    harness.run_steps(4);
    let chart = |harness: &Harness<'static, Column>| {
        let node = harness.get_by_label_contains("Training loss in nats");
        node.accesskit_node().label().unwrap_or_default()
    };
    assert!(
        chart(&harness).contains("standard 0.07"),
        "{}",
        chart(&harness)
    );
    harness.get_by_label("Show standard").click();
    harness.run_steps(4);
    assert!(!chart(&harness).contains("standard"), "{}", chart(&harness));
    harness.get_by_label("Remove delta").click();
    harness.run_steps(2);
    assert_eq!(harness.state().view.forget, ["runs/delta-recall"]);
    // The window does this after each frame.
    harness.state_mut().heard.forget("runs/delta-recall");
    harness.run_steps(4);
    assert!(harness.query_by_label("Remove delta").is_none());
    // A run from disk.
    harness
        .get_by_label("Folder of a run to compare with")
        .focus();
    harness.run_steps(2);
    harness
        .get_by_label("Folder of a run to compare with")
        .type_text("runs/other");
    harness.run_steps(2);
    harness.get_by_label("Add run").click();
    harness.run_steps(2);
    let folder = "runs/other".to_owned();
    // The first one is a text that was due.
    assert_eq!(harness.state().sent[1..], [Command::History { folder }]);
    let failed = Event::Failed {
        what: "history".into(),
        message: "no such folder".into(),
        field: None,
    };
    harness.state_mut().heard.hear(failed);
    harness.run_steps(2);
    assert!(harness.query_by_label("no such folder").is_some());
}

#[test]
fn a_text_is_written_on_demand_and_by_the_clock() {
    let mut harness = column(
        [360.0, 300.0],
        Theme::Light,
        Column {
            tab: Some(Tab::Samples),
            ..trained()
        },
    );
    harness.run_steps(2);
    let every = |every, prompt: &str| Command::SampleEvery {
        every,
        prompt: prompt.into(),
        tokens: 64,
        temperature: 0.8,
        seed: 1,
    };
    // A newcomer sees text without asking for it.
    assert_eq!(harness.state().sent, [every(Some(100), "")]);
    harness.state_mut().heard.hear(sampled(200));
    harness.run_steps(2);
    harness.get_by_label("write every").click();
    harness.run_steps(2);
    harness.get_by_label("Prompt").focus();
    harness.run_steps(2);
    harness.get_by_label("Prompt").type_text("k1");
    harness.run_steps(2);
    harness.get_by_label("Write now").click();
    harness.run_steps(2);
    let asked = Command::Sample {
        prompt: "k1".into(),
        tokens: 64,
        temperature: 0.8,
        seed: 1,
    };
    assert_eq!(
        harness.state().sent[1..],
        [every(None, ""), every(None, "k1"), asked]
    );
    // Until it has come, there is no second question.
    assert!(harness.query_by_label("Write now").is_none());
    harness.state_mut().heard.hear(sampled(200));
    harness.get_by_label("write every").click();
    harness.run_steps(4);
    assert!(harness.query_by_label("Write now").is_some());
    assert_eq!(harness.state().sent[4..], [every(Some(100), "k1")]);
}

#[test]
fn a_token_tells_its_probability() {
    let mut harness = column(
        [360.0, 260.0],
        Theme::Light,
        Column {
            tab: Some(Tab::Samples),
            ..trained()
        },
    );
    harness.run_steps(2);
    harness.get_by_label("colour by probability").click();
    harness.run_steps(2);
    let text = "k3 = v7 ; k1 = v2 ; k3 → v7 ; k1 → v2 ; k9 → v4";
    let rect = harness
        .get_all_by_label(text)
        .next()
        .expect("a text")
        .rect();
    // Monospace: the 46th of 47 characters.
    let at = rect.left_center() + egui::vec2(0.977 * 312.0, 0.0);
    harness.hover_at(at);
    harness.run_steps(40);
    harness.snapshot("samples_light");
    assert!(
        harness
            .query_by_label_contains("\"v4\"  probability < 0.1 %")
            .is_some()
    );
}

#[test]
fn charts_are_read_and_clicked_together() {
    let mut harness = column([360.0, 760.0], Theme::Dark, trained());
    harness.run_steps(4);
    let label = |harness: &Harness<'static, Column>, chart: &str| {
        harness
            .get_by_label_contains(chart)
            .accesskit_node()
            .label()
            .unwrap_or_default()
    };
    assert!(label(&harness, "Loss in nats").contains("newest"));
    let rect = harness.get_by_label_contains("Speed in tokens/s").rect();
    harness.hover_at(rect.center());
    harness.run_steps(4);
    for chart in [
        "Loss in nats",
        "Gradient norm in",
        "Learning rate in",
        "Speed in",
    ] {
        let label = label(&harness, chart);
        assert!(
            label.contains("step 10") || label.contains("step 9"),
            "{label}"
        );
    }
    let before = harness.state().view.moment;
    harness.get_by_label_contains("Speed in tokens/s").click();
    harness.run_steps(4);
    assert_eq!(before, Moment::Live);
    let Moment::At(index) = harness.state().view.moment else {
        panic!("a click goes to a moment");
    };
    let step = harness.state().heard.frames()[index].step;
    assert!((90..=110).contains(&step), "{step}");
    // Away from the charts, the newest values are read again.
    harness.hover_at(egui::pos2(2.0, 2.0));
    harness.run_steps(4);
    assert!(label(&harness, "Loss in nats").contains("newest"));
}

#[test]
fn the_gradient_norm_is_shown_for_each_depth() {
    let frame = |step: u64, scale: f64| {
        let depth = |site: u32| Depth {
            site,
            input: 1.0,
            output: 1.0,
            gradient: (site != 1).then_some(scale * f64::from(site + 1)),
        };
        Event::Frame(Box::new(Frame {
            step,
            depth: (0..=2).map(depth).collect(),
            ..Frame::default()
        }))
    };
    let mut harness = column([520.0, 760.0], Theme::Dark, trained());
    harness.run_steps(4);
    assert!(harness.query_by_label("per depth").is_none());
    let last = harness.state().heard.step;
    for (step, scale) in [(last - 4, 0.5), (last, 0.25)] {
        harness.state_mut().heard.hear(frame(step, scale));
    }
    harness.run_steps(4);
    harness.get_by_label("per depth").click();
    harness.run_steps(4);
    let label = |harness: &Harness<'static, Column>| {
        let chart = harness.get_by_label_contains("Gradient norm in");
        chart.accesskit_node().label().unwrap_or_default()
    };
    let shown = label(&harness);
    assert!(shown.contains("of each sublayer's parameters"), "{shown}");
    for read in ["1 attn 0.25", "1 mlp —", "out 0.75"] {
        assert!(shown.contains(read), "{shown}");
    }
    // A rewind takes the later frame back.
    harness.state_mut().heard.hear(frame(last - 3, 0.1));
    harness.run_steps(4);
    let shown = label(&harness);
    assert!(
        shown.contains("1 attn 0.1") && shown.contains("out 0.3"),
        "{shown}"
    );
}

#[test]
fn a_part_is_selected_by_dragging() {
    let mut harness = column([360.0, 760.0], Theme::Dark, trained());
    harness.run_steps(4);
    let rect = harness.get_by_label_contains("Loss in nats").rect();
    harness.drag_at(rect.lerp_inside(egui::vec2(0.25, 0.5)));
    harness.hover_at(rect.lerp_inside(egui::vec2(0.4, 0.5)));
    harness.run_steps(2);
    harness.hover_at(rect.lerp_inside(egui::vec2(0.5, 0.5)));
    harness.run_steps(2);
    harness.drop_at(rect.lerp_inside(egui::vec2(0.5, 0.5)));
    harness.run_steps(4);
    let (from, to) = harness.state().view.scales.range.expect("a part");
    assert!(
        (from - 50.0).abs() < 8.0 && (to - 100.0).abs() < 8.0,
        "{from} {to}"
    );
    harness.get_by_label("all").click();
    harness.run_steps(2);
    assert_eq!(harness.state().view.scales.range, None);
}

#[test]
fn losses_that_are_not_finite_are_gaps_on_any_axis() {
    let mut state = trained();
    let lines = (201..=300).map(|step| Line::Train {
        step,
        loss: (!(220..240).contains(&step)).then_some(0.4),
        lr: Some(1e-4),
        grad_norm: Some(2.0),
        tokens: 768 * step,
        tokens_per_s: Some(15_000.0),
        seconds: Some(14.0 + 0.1 * step as f64),
    });
    state.heard.hear(Event::Lines(lines.collect()));
    state.view.axis = Axis::Time;
    (state.view.scales.log_x, state.view.scales.log_y) = (true, true);
    let mut harness = column(
        [360.0, 440.0],
        Theme::Light,
        Column {
            tab: Some(Tab::Curves),
            ..state
        },
    );
    harness.run_steps(4);
    harness.snapshot("curves_log_light");
}

#[test]
fn an_empty_column_says_what_will_come() {
    let mut harness = column([260.0, 600.0], Theme::Light, Column::default());
    harness.run_steps(4);
    assert!(
        harness
            .query_by_label_contains("appear here with the first update")
            .is_some()
    );
    assert!(
        harness
            .query_by_label_contains("Start a run first")
            .is_some()
    );
    harness.snapshot("rulers_empty_light");
}

/// Without a folder there is nothing to read its records from again.
#[test]
fn a_run_without_a_folder_keeps_its_curves_when_it_goes_back() {
    let mut heard = heard(recorded("live"));
    let mut run = heard.run.clone().expect("a run");
    run.folder.clear();
    heard.hear(Event::Ready(Box::new(run.clone())));
    let events = recorded("live").into_iter();
    let lines = events.filter(|event| matches!(event, Event::Lines(_) | Event::Frame(_)));
    lines.for_each(|event| heard.hear(event));
    let others = heard.others.len();
    let (all, frames) = (heard.series.loss.len(), heard.frames().len());
    assert!(all > 150 && frames > 5, "{all} {frames}");
    run.again = true;
    run.step = 100;
    heard.hear(Event::Ready(Box::new(run)));
    let last = |curve: &braid_app::ui::Heard| curve.series.loss.last().map(|point| point.step);
    assert_eq!(last(&heard), Some(100.0));
    assert_eq!(heard.step, 100);
    assert_eq!(heard.others.len(), others, "it is no other run");
    let kept = heard.frames();
    assert!(kept.iter().all(|frame| frame.step <= 100) && kept.len() > 2);
    let val = &heard.series.val_loss;
    assert!(val.last().is_some_and(|point| point.step <= 100.0));
}

#[test]
fn a_run_that_is_followed_by_another_stays_for_comparison() {
    let mut heard = heard(recorded("dar"));
    assert_eq!(heard.others.len(), 2);
    let next = |folder: &str| {
        let run = RunInfo {
            folder: folder.into(),
            steps: 10,
            ..RunInfo::default()
        };
        Event::Ready(Box::new(run))
    };
    heard.hear(Event::State(RunState::Empty));
    assert!(heard.run.is_none() && !heard.series.loss.is_empty());
    heard.hear(next("runs/next"));
    assert_eq!(heard.others.len(), 3);
    assert_eq!(heard.others[2].folder, "runs/dar-recall");
    assert_eq!(heard.others[2].series.loss.len(), 200);
    assert!(heard.series.loss.is_empty());
    // Opened again, or never trained: nothing to keep.
    heard.hear(next("runs/next"));
    assert_eq!(heard.others.len(), 3);
}

#[test]
fn time_goes_on_where_an_earlier_process_ended() {
    let train = |step: u64, seconds: f64| Line::Train {
        step,
        loss: Some(1.0),
        lr: None,
        grad_norm: None,
        tokens: step,
        tokens_per_s: None,
        seconds: Some(seconds),
    };
    let lines = vec![
        train(1, 5.0),
        train(2, 10.0),
        train(3, 1.0),
        train(4, 2.0),
        train(3, 0.5),
    ];
    let mut heard = Heard::default();
    heard.hear(Event::Lines(lines));
    let seconds: Vec<f64> = heard
        .series
        .loss
        .iter()
        .map(|point| point.seconds)
        .collect();
    assert_eq!(seconds, [5.0, 10.0, 10.5]);
}

#[test]
fn the_comparison_comes_into_sight_when_it_is_opened() {
    let mut harness = column([360.0, 760.0], Theme::Dark, trained());
    harness.run_steps(4);
    harness.get_by_label("Compare · 3 runs").click();
    harness.run_steps(40);
    let chart = harness
        .get_by_label_contains("Validation loss in nats")
        .rect();
    assert!(chart.top() > 0.0 && chart.bottom() < 760.0, "{chart}");
}
