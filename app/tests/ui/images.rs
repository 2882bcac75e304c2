//! The window in every state that the documentation shows, from recorded events of real trainings.

use std::path::PathBuf;

use braid_app::protocol::Event;
use braid_app::ui::{Moment, Tab};
use egui::Theme;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, answer_checks, desk, devices, recorded};

const SIZES: [[f32; 2]; 2] = [[1400.0, 900.0], [900.0, 600.0]];

type Screen = Harness<'static, Desk>;

/// Draws a state of the window.
type State = fn([f32; 2], Theme) -> Screen;

fn shown(size: [f32; 2], theme: Theme, events: Vec<Event>) -> Screen {
    let mut harness = desk(size, theme, events);
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

/// What a training gave until the frame of this step.
fn until(step: u64) -> Vec<Event> {
    let mut events = recorded("live");
    let end = |event: &Event| matches!(event, Event::Frame(frame) if frame.step >= step);
    let at = events.iter().position(end).expect("a frame");
    events.truncate(at + 1);
    events
}

fn first_start(size: [f32; 2], theme: Theme) -> Screen {
    shown(size, theme, vec![devices()])
}

/// The machine that recorded the trainings has no GPU.
fn no_gpu(size: [f32; 2], theme: Theme) -> Screen {
    let mut events = recorded("live");
    events.retain(|event| matches!(event, Event::Devices { .. }));
    shown(size, theme, events)
}

fn training(size: [f32; 2], theme: Theme) -> Screen {
    shown(size, theme, until(136))
}

fn scrubber(size: [f32; 2], theme: Theme) -> Screen {
    let mut harness = shown(size, theme, recorded("live"));
    let view = &mut harness.state_mut().window.view;
    view.moment = Moment::At(4);
    view.selected = Some((5, 0));
    harness.run_steps(4);
    harness
}

fn intervention(size: [f32; 2], theme: Theme) -> Screen {
    let mut harness = shown(size, theme, recorded("live"));
    let window = &mut harness.state_mut().window;
    let effect = window.heard.effect.clone().expect("an effect");
    let edit = effect.edits[0];
    window.view.edits = effect.edits;
    window.view.selected = Some((edit.site, edit.stream));
    window.view.source = Some(1);
    window.view.intervening = true;
    window.view.tab = Tab::Routing;
    harness.run_steps(4);
    harness
}

fn compare(size: [f32; 2], theme: Theme) -> Screen {
    let mut events = recorded("live");
    let others = recorded("dar").into_iter();
    events.extend(others.filter(|event| matches!(event, Event::History { .. })));
    let mut harness = shown(size, theme, events);
    harness.get_by_label("Compare · 3 runs").click_accesskit();
    harness.run_steps(24);
    harness
}

fn diverged(size: [f32; 2], theme: Theme) -> Screen {
    shown(size, theme, recorded("diverged"))
}

/// Written to the folder `BRAID_PICTURES`, or else to docs/images.
#[test]
#[ignore = "writes pictures: run it by name, then look at them"]
fn pictures_of_the_documentation() {
    let documentation = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    let folder = std::env::var_os("BRAID_PICTURES").map_or(documentation, PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder");
    let states: [(&str, State); 7] = [
        ("first_start", first_start),
        ("training", training),
        ("scrubber", scrubber),
        ("intervention", intervention),
        ("compare", compare),
        ("diverged", diverged),
        ("no_gpu", no_gpu),
    ];
    for (name, state) in states {
        for size in SIZES {
            for (theme, word) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
                let mut harness = state(size, theme);
                let image = harness.render().expect("a picture");
                let path = folder.join(format!("{name}_{}_{word}.png", size[0]));
                image.save(path).expect("a file");
            }
        }
    }
}
