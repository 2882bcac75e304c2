//! The window with keys alone, and its names for a screen reader.

use std::collections::{BTreeMap, BTreeSet};

use braid_app::protocol::{Command, Event, RunState};
use braid_app::ui::Moment;
use egui::accesskit::{Action, NodeId, Role};
use egui::{Key, Modifiers, Rect, Theme};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::harness::{Desk, answer_checks, desk, devices, recorded};

const LARGE: [f32; 2] = [1400.0, 900.0];
const SMALL: [f32; 2] = [900.0, 600.0];
const NARROW: [f32; 2] = [700.0, 800.0];
const PHONE: [f32; 2] = [390.0, 844.0];

type Screen = Harness<'static, Desk>;

fn first(size: [f32; 2]) -> Screen {
    let mut harness = desk(size, Theme::Dark, vec![devices()]);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

/// A run that is paused, and another one to compare with.
fn loaded(size: [f32; 2]) -> Screen {
    let mut events = recorded("live");
    let others = recorded("dar").into_iter();
    events.extend(others.filter(|event| matches!(event, Event::History { .. })));
    events.push(Event::State(RunState::Paused));
    let mut harness = desk(size, Theme::Dark, events);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

fn press(harness: &mut Screen, label: &str) {
    harness.get_by_label(label).click_accesskit();
    harness.run_steps(24);
}

/// What can have the focus: how each is called, and whether that is a name. Names of things that cannot be used now count
/// too, and places in the order of Tab do not.
fn controls(harness: &Screen) -> BTreeMap<NodeId, (Role, Option<String>, bool)> {
    let nodes = harness.root().children_recursive();
    nodes
        .map(|node| node.accesskit_node())
        .filter(|node| node.data().supports_action(Action::Focus))
        .map(|node| {
            let name = node.label().filter(|name| !name.trim().is_empty());
            (node.locate().0, (node.role(), name, node.is_disabled()))
        })
        .collect()
}

fn focused(harness: &Screen) -> Option<NodeId> {
    let mut nodes = harness.root().children_recursive();
    let node = nodes.find(|node| node.accesskit_node().is_focused())?;
    Some(node.accesskit_node().locate().0)
}

/// Everything that the window can look like, as far as it has controls of its own.
fn screens() -> Vec<(String, Screen)> {
    let mut all: Vec<(String, Screen)> = Vec::new();
    for size in [LARGE, SMALL, NARROW, PHONE] {
        all.push((format!("first start {size:?}"), first(size)));
        all.push((format!("a run {size:?}"), loaded(size)));
    }
    for tab in [
        "History",
        "Tokens",
        "Gates",
        "Sharpness",
        "Norms",
        "Unfolded",
    ] {
        let mut harness = loaded(LARGE);
        harness.state_mut().window.view.selected = Some((5, 0));
        press(&mut harness, tab);
        all.push((format!("routing, {tab}"), harness));
    }
    for tab in ["Setup", "Curves", "Samples", "Interventions", "Compare"] {
        let mut harness = loaded(NARROW);
        press(&mut harness, tab);
        all.push((format!("tab {tab}"), harness));
    }
    for opened in ["menu", "stop conditions", "Paste…", "log"] {
        let mut harness = first(LARGE);
        press(&mut harness, opened);
        all.push((format!("{opened} open"), harness));
    }
    let mut harness = first(LARGE);
    press(&mut harness, "open a run");
    all.push(("a run is being chosen".into(), harness));
    let mut harness = loaded(LARGE);
    press(&mut harness, "Compare · 3 runs");
    all.push(("compare".into(), harness));
    let mut harness = loaded(LARGE);
    let window = &mut harness.state_mut().window;
    let effect = window.heard.effect.clone().expect("an effect");
    let edit = effect.edits[0];
    window.view.edits = effect.edits;
    window.view.selected = Some((edit.site, edit.stream));
    window.view.source = Some(1);
    window.view.intervening = true;
    window.view.moment = Moment::At(3);
    harness.run_steps(4);
    all.push(("interventions".into(), harness));
    let mut harness = first(LARGE);
    harness.key_press(Key::F1);
    harness.run_steps(4);
    all.push(("list of keys".into(), harness));
    let mut harness = loaded(LARGE);
    let folded = harness.root().children_recursive();
    let more: Vec<_> = folded
        .filter(|node| node.accesskit_node().label().as_deref() == Some("more"))
        .collect();
    assert!(!more.is_empty());
    more.iter().for_each(|node| node.click_accesskit());
    drop(more);
    harness.run_steps(24);
    all.push(("all fields".into(), harness));
    for (kind, name) in [
        ("delta", "Delta"),
        ("attn_res", "Attention"),
        ("mhc", "mHC"),
        ("transparent", "Transparent"),
    ] {
        let mut harness = first(LARGE);
        let edits = &mut harness.state_mut().window.view.draft.edits;
        edits.set("residual.kind", kind.into());
        edits.set("feed_forward.kind", "moe".into());
        harness.run_steps(4);
        answer_checks(&mut harness);
        press(&mut harness, "Feed-forward");
        all.push((format!("setup of {name}"), harness));
    }
    let mut harness = loaded(LARGE);
    harness
        .state_mut()
        .window
        .hear(Event::State(RunState::Diverged {
            step: 137,
            tensor: Some("model.norm.weight".into()),
            message: "The loss of step 137 is not finite.".into(),
            good: Some(100),
        }));
    harness.run_steps(4);
    all.push(("diverged".into(), harness));
    all
}

#[test]
fn every_control_has_a_name() {
    let mut nameless = Vec::new();
    for (state, harness) in screens() {
        let all = controls(&harness);
        assert!(!all.is_empty(), "{state}: no controls at all");
        for (id, (role, name, _)) in all {
            if name.is_none() {
                let node = harness.root().children_recursive();
                let mut node = node.filter(|node| node.accesskit_node().locate().0 == id);
                let rect = node.next().map(|node| node.rect());
                nameless.push(format!("{state}: {role:?} at {rect:?}"));
            }
        }
    }
    assert!(nameless.is_empty(), "{}", nameless.join("\n"));
}

#[test]
fn tab_reaches_every_control_and_shows_it() {
    let mut failures = Vec::new();
    let whole = [
        "first start",
        "a run [1400",
        "a run [900",
        "interventions",
        "all fields",
    ];
    let screens = screens().into_iter();
    for (state, mut harness) in
        screens.filter(|(name, _)| whole.iter().any(|w| name.starts_with(w)))
    {
        let all = controls(&harness);
        let screen = Rect::from_min_size(egui::Pos2::ZERO, harness.ctx.content_rect().size());
        let mut reached = BTreeSet::new();
        let mut unseen = BTreeMap::new();
        for _ in 0..all.len() + 40 {
            harness.key_press(Key::Tab);
            // The control that is scrolled to is in sight one pass later.
            harness.run_steps(3);
            let Some(id) = focused(&harness) else {
                continue;
            };
            if !reached.insert(id) && reached.len() >= all.len() {
                break;
            }
            let mut nodes = harness.root().children_recursive();
            let node = nodes.find(|node| node.accesskit_node().is_focused());
            let Some(node) = node else { continue };
            if !screen.contains(node.rect().center()) {
                unseen.insert(id, node.rect());
            }
        }
        let layer_only = harness
            .ctx
            .memory(|memory| memory.top_modal_layer().is_some());
        for (id, (role, name, disabled)) in &all {
            let name = name.as_deref().unwrap_or("nameless");
            if !disabled && !layer_only && !reached.contains(id) {
                failures.push(format!("{state}: {role:?} \"{name}\" is not reached"));
            }
            if let Some(rect) = unseen.get(id) {
                failures.push(format!(
                    "{state}: {role:?} \"{name}\" is out of sight, {rect:?}"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Press Tab until this has the focus.
fn tab_to(harness: &mut Screen, label: &str) {
    for _ in 0..200 {
        let here = |node: &egui_kittest::Node<'_>| {
            let node = node.accesskit_node();
            node.is_focused() && node.label().as_deref() == Some(label)
        };
        if harness.root().children_recursive().any(|node| here(&node)) {
            return;
        }
        harness.key_press(Key::Tab);
        harness.run_steps(3);
    }
    panic!("Tab does not reach \"{label}\"");
}

fn sent(harness: &mut Screen) -> Vec<Command> {
    let mut sent = std::mem::take(&mut harness.state_mut().sent);
    let own = |command: &Command| {
        matches!(
            command,
            Command::Check { .. } | Command::Devices | Command::SampleEvery { .. }
        )
    };
    sent.retain(|command| !own(command));
    sent
}

fn hear(harness: &mut Screen, event: Event) {
    harness.state_mut().window.hear(event);
    harness.run_steps(3);
}

/// A person without a mouse chooses a preset, starts, pauses, goes back in time, selects a route, cuts it and goes on.
#[test]
fn a_training_is_started_paused_looked_into_and_resumed_with_keys_alone() {
    let mut harness = first(LARGE);
    sent(&mut harness);
    // The preset below the first one.
    tab_to(&mut harness, "Preset");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    tab_to(&mut harness, "Standard, recall");
    harness.key_press(Key::Enter);
    harness.run_steps(6);
    answer_checks(&mut harness);
    sent(&mut harness);
    tab_to(&mut harness, "Start");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    let started = sent(&mut harness);
    let [Command::Start { draft, .. }] = &started[..] else {
        panic!("{started:?}");
    };
    assert!(draft.toml.contains("\"standard\""), "{}", draft.toml);

    for event in recorded("live") {
        harness.state_mut().window.hear(event);
    }
    hear(&mut harness, Event::State(RunState::Running));
    sent(&mut harness);
    tab_to(&mut harness, "Pause");
    harness.key_press(Key::Space);
    harness.run_steps(3);
    assert_eq!(sent(&mut harness), [Command::Pause]);
    hear(&mut harness, Event::State(RunState::Paused));

    // Two frames back, and live again.
    tab_to(&mut harness, "Step of the routing frame");
    let count = harness.state().window.heard.frames().len();
    harness.key_press(Key::ArrowLeft);
    harness.key_press(Key::ArrowLeft);
    harness.run_steps(3);
    assert_eq!(
        harness.state().window.view.moment,
        Moment::At(count - 3),
        "of {count}"
    );
    tab_to(&mut harness, "Live");
    harness.key_press(Key::Space);
    harness.run_steps(3);
    assert_eq!(harness.state().window.view.moment, Moment::Live);

    // The top row of the map, the row below it, its first source; then cut it.
    tab_to(&mut harness, "routing map");
    for key in [Key::ArrowDown, Key::ArrowDown, Key::ArrowRight] {
        harness.key_press(key);
        harness.run_steps(3);
    }
    let view = &harness.state().window.view;
    let (selected, source) = (view.selected, view.source);
    assert!(
        selected.is_some() && source.is_some(),
        "{selected:?} {source:?}"
    );
    tab_to(&mut harness, "Test by intervening");
    harness.key_press(Key::Space);
    harness.run_steps(6);
    tab_to(&mut harness, "Cut");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    let asked = sent(&mut harness);
    assert!(
        matches!(&asked[..], [Command::Intervene { edits }] if edits.len() == 1),
        "{asked:?}"
    );
    // Esc takes it back.
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    assert_eq!(
        sent(&mut harness),
        [Command::Intervene { edits: Vec::new() }]
    );

    tab_to(&mut harness, "Resume");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    assert_eq!(sent(&mut harness), [Command::Resume]);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    assert_eq!(sent(&mut harness), [Command::Save]);
}
