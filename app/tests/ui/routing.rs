//! The routing view with its interventions and the scrubber.

use braid_app::protocol::{
    Checked, Command, Depth, Derived, Effect, Event, Frame, Intervention, Line, RouteEdit,
    RunState, Site, SiteKind, Stream, Trace, TraceSite, Unfolded,
};
use braid_app::ui::{Heard, Interventions, Moment, Routing, Scrubber, View};
use egui::{Key, Panel, Role, Theme};
use egui_kittest::kittest::Queryable;
use egui_kittest::{Harness, SnapshotResults};

use super::harness::recorded;

/// The middle of the window, and what it shares with the rest.
#[derive(Default)]
struct Middle {
    routing: Routing,
    interventions: Interventions,
    scrubber: Scrubber,
    heard: Heard,
    view: View,
    sent: Vec<Command>,
}

fn middle(size: [f32; 2], theme: Theme, middle: Middle) -> Harness<'static, Middle> {
    Harness::builder()
        .with_size(size)
        .with_theme(theme)
        .with_max_steps(16)
        .wgpu()
        .build_ui_state(
            |ui, middle: &mut Middle| {
                let Middle {
                    routing,
                    interventions,
                    scrubber,
                    heard,
                    view,
                    sent,
                } = middle;
                Panel::bottom("scrubber").show(ui, |ui| scrubber.show(ui, heard, view, sent));
                if view.intervening {
                    Panel::bottom("interventions")
                        .show(ui, |ui| interventions.show(ui, heard, view, sent));
                }
                egui::CentralPanel::default().show(ui, |ui| routing.show(ui, heard, view, sent));
            },
            middle,
        )
}

fn after(events: impl IntoIterator<Item = Event>) -> Middle {
    let mut middle = Middle::default();
    events
        .into_iter()
        .for_each(|event| middle.heard.hear(event));
    middle
}

fn trained() -> Middle {
    after(recorded("dar"))
}

/// Sources `embed`, `block 1`, .. up to `n`, with these weights or uniform ones.
fn stream(n: usize, weight: impl Fn(usize) -> f64) -> Stream {
    let name = |at: usize| match at {
        0 => "embed".to_owned(),
        at => format!("block {at}"),
    };
    Stream {
        sources: (0..n).map(name).collect(),
        weight: (0..n).map(weight).collect(),
        max: None,
        entropy: None,
        floor: None,
    }
}

fn site(site: u32, kind: SiteKind, streams: Vec<Stream>) -> Site {
    Site {
        site,
        kind,
        streams,
        alpha: None,
        rho: None,
        beta: None,
        read: None,
        write: None,
        mix: None,
    }
}

fn kind(at: u32, sublayers: u32) -> SiteKind {
    match (at == sublayers, at.is_multiple_of(2)) {
        (true, _) => SiteKind::Readout,
        (false, true) => SiteKind::Attn,
        (false, false) => SiteKind::Mlp,
    }
}

fn frame(step: u64, sites: Vec<Site>) -> Frame {
    Frame {
        step,
        tokens: 1536,
        sites,
        ..Frame::default()
    }
}

/// What a single stream of 64 sites over 64 sources looks like; weights fall off with distance.
fn large() -> Frame {
    let sites = (0..64u32).map(|at| {
        let n = at as usize + 1;
        let sum: f64 = (0..n).map(|s| 0.8f64.powi(s as i32)).sum();
        let weight = |source: usize| 0.8f64.powi((n - 1 - source) as i32) / sum;
        site(at, kind(at, 63), vec![stream(n, weight)])
    });
    frame(1000, sites.collect())
}

fn shape() -> Event {
    let sites = (0..=6u32).map(|at| {
        let n = at as usize / 2 + 1;
        let uniform = || stream(n, |_| 1.0 / n as f64);
        site(at, kind(at, 6), vec![uniform(), uniform()])
    });
    Event::Checked(Box::new(Checked {
        number: 1,
        values: Vec::new(),
        error: None,
        derived: Some(Derived {
            shape: sites.collect(),
            ..Derived::default()
        }),
    }))
}

#[test]
fn the_map_of_a_training() {
    let mut results = SnapshotResults::new();
    for (theme, name) in [(Theme::Dark, "map_dark"), (Theme::Light, "map_light")] {
        let mut state = trained();
        state.view.selected = Some((5, 0));
        state.view.source = Some(1);
        let mut harness = middle([680.0, 560.0], theme, state);
        harness.run_steps(4);
        harness.snapshot(name);
        results.extend(harness.take_snapshot_results());
    }
}

#[test]
fn before_a_start_the_map_shows_the_shape() {
    let mut harness = middle([440.0, 380.0], Theme::Light, after([shape()]));
    harness.run_steps(4);
    assert!(harness.query_by_label("No model yet").is_none());
    assert_eq!(harness.get_all_by_label("not trained yet").count(), 2);
    harness.snapshot("map_shape_light");
}

#[test]
fn large_models_stay_legible() {
    let run = recorded("dar").remove(0);
    let events = [run, Event::Frame(Box::new(large()))];
    let mut harness = middle([520.0, 500.0], Theme::Dark, after(events));
    harness.run_steps(4);
    harness.snapshot("map_large_dark");
}

/// Press and release.
fn click_at(harness: &mut Harness<'static, Middle>, at: egui::Pos2) {
    harness.hover_at(at);
    harness.run_steps(1);
    harness.drag_at(at);
    harness.run_steps(1);
    harness.drop_at(at);
    harness.run_steps(2);
}

/// The middle of a cell: `column` of `columns` in the row that is called so.
fn cell(harness: &Harness<'static, Middle>, row: &str, column: f32, columns: f32) -> egui::Pos2 {
    let is_row = |node: &egui_kittest::kittest::AccessKitNode<'_>| {
        let label = node.label();
        node.role() == Role::Row && label.is_some_and(|label| label.contains(row))
    };
    let rect = harness.get_by(is_row).rect();
    egui::pos2(
        rect.left() + (column + 0.5) / columns * rect.width(),
        rect.center().y,
    )
}

#[test]
fn a_click_selects_a_read_and_a_source() {
    let mut harness = middle([680.0, 560.0], Theme::Dark, trained());
    harness.run_steps(2);
    let at = cell(&harness, "layer 4 MLP, stream 1,", 1.0, 4.0);
    click_at(&mut harness, at);
    assert_eq!(harness.state().view.selected, Some((7, 1)));
    assert_eq!(harness.state().view.source, Some(1));
    // The partial sum is the fourth column, and the third source of this site.
    let at = cell(&harness, "layer 4 MLP, stream 1,", 3.0, 4.0);
    click_at(&mut harness, at);
    assert_eq!(harness.state().view.source, Some(2));
    // A source that the site cannot read.
    let at = cell(&harness, "layer 1 attention, stream 0,", 2.0, 4.0);
    click_at(&mut harness, at);
    assert_eq!(harness.state().view.selected, Some((0, 0)));
    assert_eq!(harness.state().view.source, None);
}

#[test]
fn arrows_move_the_selection() {
    let mut harness = middle([680.0, 560.0], Theme::Dark, trained());
    harness.run_steps(2);
    harness.get_by_label("routing map").focus();
    harness.run_steps(2);
    let mut press = |key| {
        harness.key_press(key);
        harness.run_steps(2);
        let view = &harness.state().view;
        (view.selected, view.source)
    };
    assert_eq!(press(Key::ArrowDown), (Some((8, 0)), None));
    assert_eq!(press(Key::ArrowDown), (Some((7, 0)), None));
    assert_eq!(press(Key::ArrowRight), (Some((7, 0)), Some(0)));
    assert_eq!(press(Key::ArrowRight), (Some((7, 0)), Some(1)));
    assert_eq!(press(Key::ArrowRight), (Some((7, 0)), Some(2)));
    // Beyond the last source lies the other stream.
    assert_eq!(press(Key::ArrowRight), (Some((7, 1)), Some(0)));
    assert_eq!(press(Key::ArrowLeft), (Some((7, 0)), Some(2)));
    assert_eq!(press(Key::ArrowUp), (Some((8, 0)), None));
}

#[test]
fn a_selection_of_a_model_with_more_streams_does_no_harm() {
    let one = site(0, SiteKind::Attn, vec![stream(2, |_| 0.5)]);
    let mut state = after(recorded("dar"));
    state
        .heard
        .hear(Event::Frame(Box::new(frame(300, vec![one]))));
    (state.view.selected, state.view.source) = (Some((0, 3)), Some(0));
    let mut harness = middle([680.0, 560.0], Theme::Dark, state);
    harness.run_steps(2);
    harness.get_by_label("routing map").focus();
    harness.run_steps(2);
    for (key, source) in [
        (Key::ArrowRight, Some(1)),
        (Key::ArrowLeft, Some(0)),
        (Key::ArrowUp, Some(0)),
    ] {
        harness.key_press(key);
        harness.run_steps(2);
        let view = &harness.state().view;
        assert_eq!((view.selected, view.source), (Some((0, 0)), source));
    }
}

#[test]
fn validations_take_no_norms_away_while_frames_come() {
    let mut middle = after(recorded("live"));
    let frames = middle.heard.frames().len();
    let last = middle.heard.frames().last().expect("a frame").clone();
    assert!(last.unfolded.is_some());
    let sites = last.sites.clone();
    let line = Line::Routing { step: 201, sites };
    middle.heard.hear(Event::Lines(vec![line]));
    assert_eq!(middle.heard.frames().len(), frames);
    // Back to step 100: what was seen until then stays.
    let mut run = middle.heard.run.clone().expect("a run");
    (run.step, run.saved) = (100, Some(100));
    middle.heard.hear(Event::Ready(Box::new(run)));
    let last = middle.heard.frames().last().expect("a frame");
    assert!(last.step <= 100 && last.unfolded.is_some());
    assert!(middle.heard.frames().len() > 3);
    assert_eq!(middle.heard.saved, Some((100, None)));
}

#[test]
fn a_closed_run_is_named_until_something_else_is_set_up() {
    let mut middle = after(recorded("live"));
    let values = middle.heard.run.clone().expect("a run").values;
    middle.heard.hear(Event::State(RunState::Empty));
    let checked = |values: Vec<(String, String)>| {
        let Event::Checked(checked) = shape() else {
            unreachable!()
        };
        Event::Checked(Box::new(Checked {
            number: 100,
            values,
            ..*checked
        }))
    };
    middle.heard.hear(checked(values.clone()));
    let mut harness = self::middle([680.0, 560.0], Theme::Dark, middle);
    harness.run_steps(2);
    harness.get_by_label("closed run dar recall, step 200");
    let mut other = values;
    other.retain(|(key, _)| key != "model.layers");
    other.push(("model.layers".into(), "3".into()));
    harness.state_mut().heard.hear(checked(other));
    harness.run_steps(2);
    assert_eq!(harness.get_all_by_label("not trained yet").count(), 2);
}

fn cut() -> Intervention {
    Intervention {
        site: 5,
        stream: 0,
        edit: RouteEdit::Cut { source: 1 },
    }
}

fn effect(edits: Vec<Intervention>, edited: f64) -> Event {
    Event::Effect(Box::new(Effect {
        step: 200,
        edits,
        clean: 1.2345,
        edited,
        error: 0.021,
        batches: 8,
    }))
}

#[test]
fn a_route_is_cut_measured_and_given_back() {
    let mut state = trained();
    (state.view.selected, state.view.source) = (Some((5, 0)), Some(1));
    let mut harness = middle([680.0, 620.0], Theme::Dark, state);
    harness.run_steps(2);
    harness.get_by_label("Test by intervening").click();
    harness.run_steps(3);
    harness.get_by_label("Cut").click();
    harness.run_steps(2);
    let asked = Command::Intervene { edits: vec![cut()] };
    assert_eq!(harness.state().sent, [asked]);
    assert!(
        harness
            .query_by_label_contains("Measuring on held-out")
            .is_some()
    );
    harness.state_mut().heard.hear(effect(vec![cut()], 1.4012));
    harness.run_steps(3);
    assert!(
        harness
            .query_by_label("+0.1667 ± 0.0210 (+13.5 %)")
            .is_some()
    );
    assert!(
        harness
            .query_by_label("cutting it costs loss, above the noise")
            .is_some()
    );
    harness.snapshot("intervention_dark");

    // The model trains on: the figure is old.
    let line = serde_json::from_str(r#"{"event":"train","step":201,"loss":1.2,"lr":0.001}"#);
    let line = line.expect("a record");
    harness.state_mut().heard.hear(Event::Lines(vec![line]));
    harness.run_steps(2);
    assert!(
        harness
            .query_by_label("measured at step 200; the model is at 201")
            .is_some()
    );
    harness.get_by_label("Measure again").click();
    harness.run_steps(2);
    assert_eq!(harness.state().sent.len(), 2);
    // While it trains, each figure is old at once: the model can be held still for it.
    let running = |heard: &mut Heard| {
        heard.hear(effect(vec![cut()], 1.4013));
        heard.hear(Event::State(RunState::Running));
    };
    running(&mut harness.state_mut().heard);
    harness.run_steps(2);
    harness.get_by_label("Pause and measure").click();
    harness.run_steps(2);
    let asked = [Command::Pause, Command::Intervene { edits: vec![cut()] }];
    assert_eq!(harness.state().sent[2..], asked);

    harness.key_press(Key::Escape);
    harness.run_steps(2);
    assert_eq!(harness.state().view.edits, []);
    let asked = Command::Intervene { edits: Vec::new() };
    assert_eq!(harness.state().sent.last(), Some(&asked));
}

#[test]
fn a_refused_intervention_says_why() {
    let mut state = trained();
    (state.view.selected, state.view.source) = (Some((5, 0)), Some(1));
    state.view.intervening = true;
    let mut harness = middle([680.0, 620.0], Theme::Dark, state);
    harness.run_steps(2);
    harness.get_by_label("Make uniform").click();
    harness.run_steps(2);
    harness.state_mut().heard.hear(Event::Failed {
        what: "intervene".into(),
        message: "the device is lost".into(),
        field: None,
    });
    harness.run_steps(2);
    assert!(harness.query_by_label("the device is lost").is_some());
    harness.get_by_label("Try again").click();
    harness.run_steps(2);
    assert_eq!(harness.state().sent.len(), 2);
    assert!(harness.query_by_label("the device is lost").is_none());
}

#[test]
fn a_mechanism_without_weights_says_so() {
    let mut events = recorded("dar");
    events.truncate(1);
    let sites = vec![site(0, SiteKind::Attn, Vec::new())];
    events.push(Event::Frame(Box::new(frame(10, sites))));
    let mut state = after(events);
    state.view.intervening = true;
    let mut harness = middle([560.0, 480.0], Theme::Light, state);
    harness.run_steps(3);
    let map = "This mechanism has no depth weights";
    assert!(harness.query_by_label(map).is_some());
    let edits = "This mechanism has no depth weights, so there is no route to cut or pin.";
    assert!(harness.query_by_label(edits).is_some());
}

#[test]
fn the_scrubber_walks_through_the_frames() {
    let mut harness = middle([680.0, 560.0], Theme::Dark, trained());
    harness.run_steps(2);
    harness.get_by_label("First frame").click();
    harness.run_steps(2);
    assert_eq!(harness.state().view.moment, Moment::At(0));
    assert_eq!(harness.get_all_by_label("step 5, not live").count(), 2);
    harness.get_by_label("Step of the routing frame").focus();
    harness.run_steps(2);
    harness.key_press(Key::ArrowRight);
    harness.run_steps(2);
    assert_eq!(harness.state().view.moment, Moment::At(1));
    harness.key_press(Key::End);
    harness.run_steps(2);
    assert_eq!(harness.state().view.moment, Moment::At(39));
    harness.get_by_label("Live").click();
    harness.run_steps(2);
    assert_eq!(harness.state().view.moment, Moment::Live);
    // The middle of the track is the frame in the middle of the training.
    let at = harness
        .get_by_label("Step of the routing frame")
        .rect()
        .center();
    click_at(&mut harness, at);
    assert_eq!(harness.state().view.moment, Moment::At(19));
}

#[test]
fn a_replay_ends_live() {
    let mut harness = middle([680.0, 560.0], Theme::Dark, trained());
    harness.run_steps(2);
    harness.get_by_label("Replay the training").click();
    harness.run_steps(2);
    assert_eq!(harness.state().view.moment, Moment::At(0));
    harness.set_render_every_step(false);
    let mut seen = Vec::new();
    for _ in 0..400 {
        harness.run_steps(1);
        let moment = harness.state().view.moment;
        if seen.last() != Some(&moment) {
            seen.push(moment);
        }
    }
    // All frames after the first, then the newest, whichever it is.
    assert_eq!(seen.len(), 40);
    assert_eq!(seen[39], Moment::Live);
}

#[test]
fn a_held_frame_stays_when_older_ones_are_thinned() {
    let run = recorded("dar").remove(0);
    let small = |step| {
        let sites = vec![site(0, SiteKind::Attn, vec![stream(2, |_| 0.5)])];
        Event::Frame(Box::new(frame(step, sites)))
    };
    let frames = (1..=2048).map(|step| small(10 * step));
    let mut state = after([run].into_iter().chain(frames));
    state.view.moment = Moment::At(1000);
    let mut harness = middle([680.0, 480.0], Theme::Dark, state);
    harness.run_steps(2);
    let shown = |harness: &Harness<'static, Middle>| match harness.state().view.moment {
        Moment::At(at) => harness.state().heard.frames()[at].step,
        Moment::Live => 0,
    };
    assert_eq!(shown(&harness), 10_010);
    harness.state_mut().heard.hear(small(20_490));
    assert!(harness.state().heard.frames().len() < 2000);
    harness.run_steps(2);
    assert!(shown(&harness).abs_diff(10_010) <= 10);
}

fn trace(text: &str) -> Event {
    let tokens: Vec<String> = text.split_inclusive(' ').map(Into::into).collect();
    let weights = (0..tokens.len()).map(|at| {
        let first = at as f64 / tokens.len() as f64;
        vec![first, 0.7 * (1.0 - first), 0.3 * (1.0 - first)]
    });
    let weights: Vec<Vec<f64>> = weights.collect();
    let site = |stream| TraceSite {
        site: 5,
        stream,
        sources: vec!["embed".into(), "block 1".into(), "partial".into()],
        weights: weights.clone(),
    };
    Event::Traced(Box::new(Trace {
        step: 200,
        sites: vec![site(0), site(1)],
        tokens,
    }))
}

#[test]
fn a_text_is_traced() {
    let mut state = trained();
    state.view.selected = Some((5, 0));
    let mut harness = middle([560.0, 480.0], Theme::Dark, state);
    harness.run_steps(2);
    harness.get_by_label("Tokens").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Nothing traced yet").is_some());
    harness.get_by_label("Trace").click();
    harness.run_steps(2);
    let asked = Command::Trace {
        text: String::new(),
    };
    assert_eq!(harness.state().sent, [asked]);
    assert!(harness.query_by_label("The model is reading.").is_some());
    harness.state_mut().heard.hear(trace("to be or not to be "));
    harness.run_steps(2);
    assert!(harness.query_by_label("weights token by token").is_some());
    // Many tokens: the table is scrolled, and the names of the columns stay.
    let text = "to be or not to be that is the question ".repeat(4);
    harness.state_mut().heard.hear(trace(&text));
    harness.run_steps(2);
    let table = harness.get_by_label("weights token by token").rect();
    harness.hover_at(table.left_top() + egui::vec2(120.0, 80.0));
    harness.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::vec2(0.0, -200.0),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: egui::Modifiers::NONE,
    });
    harness.run_steps(16);
    let scrolled = harness.get_by_label("weights token by token").rect();
    assert!(scrolled.top() < table.top() - 50.0, "{scrolled:?}");
    harness.snapshot("tokens_dark");
}

/// Norms and coefficients as a model with 6 sublayers could have them.
fn with_extras(mut frame: Frame) -> Frame {
    frame.depth = (0..=8u32)
        .map(|site| Depth {
            site,
            input: 1.0 + 0.4 * f64::from(site),
            output: if site == 8 { 0.0 } else { 0.5 },
            gradient: None,
        })
        .collect();
    let row = |k: usize| (0..=k).map(|s| 1.0 - 0.35 * s as f64).collect();
    frame.unfolded = Some(Unfolded {
        rows: (0..=8).map(row).collect(),
    });
    frame
}

#[test]
fn every_view_says_what_it_shows_or_why_not() {
    let mut harness = middle([600.0, 520.0], Theme::Dark, trained());
    harness.run_steps(2);
    let tabs = [
        ("History", "read"),
        (
            "Gates",
            "ρ: share of a stream's own partial sum, the same for both",
        ),
        (
            "Sharpness",
            "Largest weight of each token, mean over tokens",
        ),
        ("Norms", "No norms in this frame"),
        ("Unfolded", "No matrix in this frame"),
    ];
    for (tab, words) in tabs {
        harness.get_by_label(tab).click();
        harness.run_steps(3);
        assert!(harness.query_by_label(words).is_some(), "{tab}");
    }
    let last = harness.state().heard.frames().last().cloned();
    let more = with_extras(last.expect("a frame"));
    harness.state_mut().heard.hear(Event::Frame(Box::new(more)));
    harness.run_steps(3);
    assert!(harness.query_by_label("unfolded matrix").is_some());
    harness.get_by_label("Norms").click();
    harness.run_steps(3);
    let words = "Root mean square over tokens and channels";
    assert!(harness.query_by_label(words).is_some());
    // Frames of older versions have no gradients, nor has one before the first update.
    let gradients = "Gradient norm of each sublayer's parameters";
    assert!(harness.query_by_label(gradients).is_none());
    let mut learning = harness
        .state()
        .heard
        .frames()
        .last()
        .cloned()
        .expect("a frame");
    learning.step += 1;
    for depth in &mut learning.depth {
        depth.gradient = Some(0.1 * f64::from(depth.site + 1));
    }
    harness
        .state_mut()
        .heard
        .hear(Event::Frame(Box::new(learning)));
    harness.run_steps(3);
    assert!(harness.query_by_label(gradients).is_some());
}

#[test]
fn without_a_model_every_view_teaches() {
    let mut harness = middle([600.0, 520.0], Theme::Dark, Middle::default());
    harness.run_steps(2);
    let tabs = [
        ("Map", "No model yet"),
        ("History", "No history yet"),
        ("Tokens", "No model to ask yet"),
        ("Gates", "No gates yet"),
        ("Sharpness", "No weights yet"),
        ("Norms", "No norms in this frame"),
        ("Unfolded", "No matrix in this frame"),
    ];
    for (tab, words) in tabs {
        harness.get_by_label(tab).click();
        harness.run_steps(3);
        assert!(harness.query_by_label(words).is_some(), "{tab}");
    }
}

/// The recorded training as another run.
fn beside() -> Event {
    let lines = recorded("dar").into_iter().filter_map(|event| match event {
        Event::Lines(lines) => Some(lines),
        _ => None,
    });
    Event::History {
        folder: "runs/dar-again".into(),
        toml: String::new(),
        lines: lines.flatten().collect(),
        frames: Vec::new(),
    }
}

#[test]
fn a_second_run_stands_beside_at_the_same_step() {
    let mut state = trained();
    state.heard.hear(beside());
    state.view.moment = Moment::At(9);
    let mut harness = middle([760.0, 420.0], Theme::Light, state);
    harness.run_steps(2);
    harness.get_by_label("beside").click();
    harness.run_steps(3);
    harness.get_by_label("dar-again").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("dar-again, step 50").is_some());
    assert!(harness.query_by_label("dar recall, step 50").is_some());
    let other = "routing map of the other run";
    assert!(harness.query_by_label(other).is_some());
    harness.snapshot("map_compare_light");
}

#[test]
fn a_run_from_disk_has_its_recorded_frames() {
    let Event::History {
        folder,
        toml,
        lines,
        ..
    } = beside()
    else {
        panic!("a history");
    };
    let depth = Depth {
        site: 0,
        input: 1.0,
        output: 0.5,
        gradient: None,
    };
    let whole = |step: u64| Frame {
        step,
        depth: vec![depth],
        ..Frame::default()
    };
    let mut heard = Heard::default();
    heard.hear(Event::History {
        folder: folder.clone(),
        toml: toml.clone(),
        lines: lines.clone(),
        frames: Vec::new(),
    });
    let records: Vec<u64> = heard.others[0]
        .series
        .frames
        .list()
        .iter()
        .map(|frame| frame.step)
        .collect();
    assert!(records.len() > 2, "{records:?}");
    // A frame of the same step is more than a record; records stay where no frame is.
    let frames = vec![whole(records[0]), whole(records[0] + 1), whole(records[2])];
    heard.hear(Event::History {
        folder,
        toml,
        lines,
        frames,
    });
    let list = heard.others[0].series.frames.list();
    let steps: Vec<u64> = list.iter().map(|frame| frame.step).collect();
    let mut expected = records.clone();
    expected.insert(1, records[0] + 1);
    assert_eq!(steps, expected);
    let taken: Vec<u64> = list
        .iter()
        .filter(|frame| !frame.depth.is_empty())
        .map(|frame| frame.step)
        .collect();
    assert_eq!(taken, [records[0], records[0] + 1, records[2]]);
}

#[test]
fn the_map_is_copied_as_text() {
    let mut harness = middle([680.0, 560.0], Theme::Dark, trained());
    harness.run_steps(2);
    harness.get_by_label("Export").click();
    harness.run_steps(2);
    harness.get_by_label("Copy CSV").click();
    let mut copied = None;
    for _ in 0..4 {
        harness.step();
        let commands = &harness.output().platform_output.commands;
        copied = copied.or(commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        }));
    }
    let text = copied.expect("a text");
    assert!(text.starts_with("step,site,name,stream,source,weight\n200,0,1 attn,0,embed,1\n"));
    // 9 sites: 1, 2, 2, 2, 2, 3, 3, 3 and 3 sources in each of two streams.
    assert_eq!(text.lines().count(), 1 + 2 * 21);
}

#[test]
fn controls_have_names() {
    let mut state = trained();
    state.view.intervening = true;
    state.view.edits = vec![cut()];
    (state.view.selected, state.view.source) = (Some((5, 0)), Some(1));
    let mut harness = middle([680.0, 620.0], Theme::Dark, state);
    harness.run_steps(2);
    assert_eq!(harness.unnamed_widgets(), [] as [String; 0]);
}
