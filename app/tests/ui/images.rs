//! The pictures of the documentation, from recorded events of real trainings. `diverged_dark.png` is of a real window that
//! trained with a learning rate of 30.

use std::path::PathBuf;

use braid_app::protocol::Event;
use braid_app::ui::Moment;
use egui::Theme;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, answer_checks, desk, recorded};

const LARGE: [f32; 2] = [1400.0, 900.0];
const SMALL: [f32; 2] = [900.0, 600.0];

fn save(harness: &mut Harness<'_, Desk>, name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    std::fs::create_dir_all(&folder).expect("a folder");
    let image = harness.render().expect("a picture");
    let path = folder.join(format!("{name}.png"));
    image.save(path).expect("a file");
}

fn shown(size: [f32; 2], theme: Theme, events: Vec<Event>) -> Harness<'static, Desk> {
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

/// The devices of the machine that recorded it.
fn machine() -> Vec<Event> {
    let mut events = recorded("live");
    events.retain(|event| matches!(event, Event::Devices { .. }));
    events
}

#[test]
#[ignore = "writes docs/images: run it by name, then look at them"]
fn pictures_of_the_documentation() {
    for (theme, word) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        let mut first = shown(LARGE, theme, machine());
        if theme == Theme::Dark {
            save(&mut first, "no_gpu_dark");
        }
        if let Some(dismiss) = first.query_by_label("Dismiss") {
            dismiss.click_accesskit();
            first.run_steps(4);
        }
        save(&mut first, &format!("first_start_{word}"));
        let mut training = shown(LARGE, theme, until(136));
        save(&mut training, &format!("training_{word}"));
        let mut training = shown(SMALL, theme, until(136));
        save(&mut training, &format!("training_small_{word}"));
    }

    let mut scrubber = shown(LARGE, Theme::Dark, recorded("live"));
    let view = &mut scrubber.state_mut().window.view;
    view.moment = Moment::At(4);
    view.selected = Some((5, 0));
    scrubber.run_steps(4);
    save(&mut scrubber, "scrubber_dark");

    let mut intervention = shown(LARGE, Theme::Dark, recorded("live"));
    let window = &mut intervention.state_mut().window;
    let effect = window.heard.effect.clone().expect("an effect");
    let edit = effect.edits[0];
    window.view.edits = effect.edits;
    window.view.selected = Some((edit.site, edit.stream));
    window.view.source = Some(1);
    window.view.intervening = true;
    intervention.run_steps(4);
    save(&mut intervention, "intervention_dark");

    let mut events = recorded("live");
    let others = recorded("dar").into_iter();
    events.extend(others.filter(|event| matches!(event, Event::History { .. })));
    let mut compare = shown(LARGE, Theme::Dark, events);
    compare.get_by_label("Compare · 3 runs").click_accesskit();
    compare.run_steps(24);
    save(&mut compare, "compare_dark");
}
