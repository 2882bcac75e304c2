//! The window on a phone: one column, for fingers.

use braid_app::protocol::{Command, Event, RunState};
use braid_app::ui::Tab;
use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use egui::accesskit::Role;
use egui::{Pos2, Rect, Theme, TouchDeviceId, TouchId, TouchPhase, pos2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use egui_kittest::{Harness, SnapshotResults};

use super::harness::{Desk, answer_checks, desk, devices, recorded};

const PHONE: [f32; 2] = [390.0, 844.0];

/// A phone while its keyboard is on the screen.
const TYPING: [f32; 2] = [390.0, 480.0];

/// What fingers hit has at least this height, in points; rounding takes a little.
const FINGER: f32 = 39.5;

/// A page on a touch screen.
struct Page;

impl Host for Page {
    fn ask(&mut self, _: Purpose, _: Wish) {}

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        None
    }

    fn kept(&mut self) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn is_touch(&self) -> bool {
        true
    }
}

fn phone(theme: Theme, events: Vec<Event>) -> Harness<'static, Desk> {
    let mut harness = desk(PHONE, theme, events);
    let desk = harness.state_mut();
    desk.window = std::mem::take(&mut desk.window).with_host(Box::new(Page));
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

/// Put a finger down and lift it.
fn tap(harness: &mut Harness<'_, Desk>, at: Pos2) {
    for (phase, pressed) in [(TouchPhase::Start, true), (TouchPhase::End, false)] {
        // As the page and the desktop give them.
        let events = &mut harness.input_mut().events;
        events.push(egui::Event::PointerMoved(at));
        events.push(egui::Event::PointerButton {
            pos: at,
            button: egui::PointerButton::Primary,
            pressed,
            modifiers: egui::Modifiers::NONE,
        });
        if !pressed {
            events.push(egui::Event::PointerGone);
        }
        events.push(egui::Event::Touch {
            device_id: TouchDeviceId(0),
            id: TouchId(0),
            phase,
            pos: at,
            force: None,
        });
        harness.step();
    }
    harness.run_steps(8);
}

/// Every widget that is pressed, dragged or typed into: what it is, where it is.
fn targets(harness: &Harness<'_, Desk>) -> Vec<(String, Rect)> {
    let roles = [
        Role::Button,
        Role::CheckBox,
        Role::ComboBox,
        Role::RadioButton,
        Role::Slider,
        Role::SpinButton,
        Role::TextInput,
    ];
    let nodes = harness.root().children_recursive();
    nodes
        .filter(|node| roles.contains(&node.accesskit_node().role()))
        .map(|node| {
            let own = node.accesskit_node();
            let name = format!("{:?} {:?}", own.role(), own.label().or(own.value()));
            (name, node.rect())
        })
        .collect()
}

#[test]
fn a_training_on_a_phone_looks_like_this() {
    let mut results = SnapshotResults::new();
    for (theme, word) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        let mut harness = phone(theme, recorded("live"));
        harness.state_mut().window.view.tab = Tab::Curves;
        harness.run_steps(4);
        harness.snapshot(format!("phone_training_{word}_390x844"));
        results.extend(harness.take_snapshot_results());
    }
    let mut harness = phone(Theme::Dark, recorded("live"));
    harness.state_mut().window.view.tab = Tab::Samples;
    harness.set_size(TYPING.into());
    harness.run_steps(4);
    harness.snapshot("phone_typing_dark_390x480");
    results.extend(harness.take_snapshot_results());
}

#[test]
fn what_a_finger_hits_is_high_enough_and_inside() {
    let mut harness = phone(Theme::Dark, recorded("live"));
    let tabs = [
        Tab::Setup,
        Tab::Curves,
        Tab::Samples,
        Tab::Routing,
        Tab::Compare,
        Tab::Map,
    ];
    for size in [PHONE, TYPING, [844.0, 390.0]] {
        harness.set_size(size.into());
        for tab in tabs {
            harness.state_mut().window.view.tab = tab;
            harness.state_mut().window.view.log = true;
            harness.run_steps(4);
            let all = targets(&harness);
            assert!(all.len() > 10, "{all:?}");
            let low: Vec<_> = all
                .iter()
                .filter(|(_, rect)| rect.height() < FINGER)
                .collect();
            assert!(low.is_empty(), "{size:?} {tab:?}: {low:#?}");
            let bar = ["Step", "Stop", "Save", "menu", "stop conditions"];
            for (name, rect) in all {
                let own = bar.iter().any(|word| name.contains(&format!("\"{word}\"")));
                let screen = Rect::from_min_size(Pos2::ZERO, size.into());
                assert!(
                    !own || screen.contains_rect(rect),
                    "{size:?} {name}: {rect:?}"
                );
            }
        }
    }
}

#[test]
fn without_fingers_buttons_stay_small() {
    let mut harness = desk(PHONE, Theme::Dark, recorded("live"));
    harness.run_steps(4);
    let rect = harness.get_by_label("Curves").rect();
    assert!(rect.height() < 30.0, "{rect:?}");
    // A screen that is touched is a touch screen.
    tap(&mut harness, pos2(200.0, 560.0));
    let rect = harness.get_by_label("Curves").rect();
    assert!(rect.height() >= FINGER, "{rect:?}");
}

#[test]
fn a_tap_shows_what_a_mouse_shows() {
    let mut harness = phone(Theme::Dark, recorded("live"));
    // A line of figures.
    let line = harness
        .get_by(|node| {
            let words = node.value().unwrap_or_default();
            words.contains("tok/s ·") && node.role() == Role::Label
        })
        .rect();
    tap(&mut harness, line.left_center() + vec2(20.0, 0.0));
    let said = |harness: &Harness<'_, Desk>, words: &str| {
        harness
            .query_by(|node| {
                let text = node.label().or(node.value());
                text.is_some_and(|text| text.contains(words))
            })
            .is_some()
    };
    assert!(said(&harness, "Where the time of one update goes"));
    // A cell of the map: the tap selects it, and says where its value comes from. The hint of the line is gone.
    let row = harness
        .get_by(|node| {
            node.role() == Role::Row
                && node
                    .label()
                    .is_some_and(|words| words.starts_with("layer 1 MLP, stream 0"))
        })
        .rect();
    tap(&mut harness, row.left_center() + vec2(4.0, 0.0));
    assert_eq!(harness.state().window.view.selected, Some((1, 0)));
    assert!(said(&harness, "mean over"));
    assert!(!said(&harness, "Where the time of one update goes"));
    // A button is pressed, not asked.
    harness.state_mut().sent.clear();
    let button = harness.get_by_label("Curves").rect().center();
    tap(&mut harness, button);
    assert_eq!(harness.state().window.view.tab, Tab::Curves);
    assert!(!said(&harness, "mean over"));
}

/// The browser test `a_prompt_is_typed_on_a_phone` taps at these places.
#[test]
fn what_is_typed_stays_while_the_keyboard_takes_half_of_the_screen() {
    let mut events = recorded("live");
    events.push(Event::State(RunState::Paused));
    let mut harness = phone(Theme::Dark, events);
    let places = [
        ("Samples", pos2(175.0, 380.0)),
        ("Prompt", pos2(100.0, 425.0)),
    ];
    for (label, place) in places {
        let rect = harness.get_by_label(label).rect();
        assert!(rect.contains(place), "{label} is at {rect:?}");
        tap(&mut harness, place);
    }
    let typed = |harness: &mut Harness<'_, Desk>, text: &str| {
        let events = &mut harness.input_mut().events;
        events.push(egui::Event::Text(text.into()));
        harness.run_steps(2);
    };
    typed(&mut harness, "to ");
    harness.set_size(TYPING.into());
    harness.run_steps(3);
    assert!(
        harness.query_by_label("Map").is_some(),
        "the map is a tab now"
    );
    typed(&mut harness, "be");
    let prompt = harness.get_by_label("Prompt");
    assert_eq!(prompt.value().as_deref(), Some("to be"));
    assert!(prompt.rect().bottom() < TYPING[1], "{:?}", prompt.rect());
    harness.key_press(egui::Key::Enter);
    harness.run_steps(2);
    let sent = &harness.state().sent;
    let asked =
        |command: &Command| matches!(command, Command::Sample { prompt, .. } if prompt == "to be");
    assert!(sent.iter().any(asked), "{sent:?}");
}

#[test]
fn log_and_diagnostics_are_in_the_menu_of_a_phone() {
    let mut harness = phone(Theme::Dark, vec![devices()]);
    assert!(harness.query_by_label("copy diagnostics").is_none());
    harness.get_by_label("menu").click_accesskit();
    harness.run_steps(4);
    harness.get_by_label("Log");
    harness.get_by_label("Copy diagnostics").click_accesskit();
    harness.step();
    let copied = harness.output().platform_output.commands.iter().any(
        |command| matches!(command, egui::OutputCommand::CopyText(text) if text.contains("devices")),
    );
    assert!(copied);
}

#[test]
fn the_status_line_ends_before_its_buttons() {
    for width in [600.0, 700.0, 900.0, 1000.0] {
        let mut harness = desk([width, 700.0], Theme::Light, recorded("live"));
        harness.run_steps(4);
        let log = harness.get_by_label("log").rect();
        let nodes = harness.root().children_recursive();
        let labels = nodes.filter(|node| node.accesskit_node().role() == Role::Label);
        for label in labels {
            let rect = label.rect();
            let words = label.accesskit_node().value();
            let same_line = (rect.center().y - log.center().y).abs() < 4.0;
            assert!(
                !same_line || rect.right() <= log.left() + 1.0,
                "{width}: {words:?} at {rect:?}, log at {log:?}"
            );
        }
    }
}

#[test]
fn a_small_window_has_room_for_the_map_and_for_all_columns() {
    let mut results = SnapshotResults::new();
    let mut harness = desk([900.0, 600.0], Theme::Light, recorded("live"));
    let window = &mut harness.state_mut().window;
    let effect = window.heard.effect.clone().expect("an effect");
    let edit = effect.edits[0];
    window.view.edits = effect.edits;
    window.view.selected = Some((edit.site, edit.stream));
    window.view.source = Some(1);
    window.view.intervening = true;
    harness.run_steps(8);
    harness.snapshot("intervention_light_900x600");
    results.extend(harness.take_snapshot_results());

    let mut events = recorded("live");
    let others = recorded("dar").into_iter();
    events.extend(others.filter(|event| matches!(event, Event::History { .. })));
    let mut harness = desk([900.0, 600.0], Theme::Dark, events);
    harness.run_steps(4);
    harness.get_by_label("Compare · 3 runs").click_accesskit();
    harness.run_steps(24);
    let head = harness.get_by_label("tok/s").rect();
    assert!(head.right() <= 900.0, "{head:?}");
    harness.snapshot("compare_dark_900x600");
    results.extend(harness.take_snapshot_results());
}
