//! The right column: curves, samples, compare.

use braid_app::protocol::{Command, Event, Line, RunState, Sampled, Token};
use braid_app::ui::{Heard, Moment, Rulers, Tab, View};
use egui::Theme;
use egui_kittest::kittest::Queryable;
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
    // The smooth training losses in the same axes.
    harness.get_by_label("training loss").click();
    harness.run_steps(4);
    assert!(
        harness
            .query_by_label_contains("Training loss in nats, newest: dar 0.")
            .is_some()
    );
}
