//! What the window keeps between starts: presets of a person, and how it looks.

use std::cell::RefCell;
use std::rc::Rc;

use braid_app::form::PRESETS;
use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use egui::Theme;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, answer_checks, desk, devices};

/// A machine: what programs keep on it, and whether its person wants as little motion as possible.
#[derive(Clone, Default)]
struct Machine {
    text: Rc<RefCell<Option<String>>>,
    calm: bool,
    full: bool,
}

impl Host for Machine {
    fn ask(&mut self, _: Purpose, _: Wish) {}

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        None
    }

    fn kept(&mut self) -> Result<Option<String>, String> {
        Ok(self.text.borrow().clone())
    }

    fn keep(&mut self, text: &str) -> Result<(), String> {
        if self.full {
            return Err("No space is left on the disk.".into());
        }
        *self.text.borrow_mut() = Some(text.into());
        Ok(())
    }

    fn wants_calm(&self) -> bool {
        self.calm
    }
}

/// A start of the program on this machine.
fn start(machine: &Machine) -> Harness<'static, Desk> {
    let mut harness = desk([1400.0, 900.0], Theme::Dark, vec![devices()]);
    let desk = harness.state_mut();
    let window = std::mem::take(&mut desk.window);
    desk.window = window.with_host(Box::new(machine.clone()));
    harness.run_steps(4);
    answer_checks(&mut harness);
    harness
}

fn press(harness: &mut Harness<'_, Desk>, label: &str) {
    harness.get_by_label(label).click();
    harness.run_steps(4);
}

fn seed(harness: &mut Harness<'_, Desk>, seed: i64) {
    let draft = &mut harness.state_mut().window.view.draft;
    draft.edits.set("train.seed", seed.into());
    harness.run_steps(4);
}

fn seed_of(harness: &Harness<'_, Desk>) -> Option<i64> {
    let edits = &harness.state().window.view.draft.edits;
    edits.get("train.seed").and_then(|seed| seed.as_integer())
}

/// Open the list, write a name and press Keep.
fn keep(harness: &mut Harness<'_, Desk>, name: &str) {
    press(harness, "Keep…");
    let title = "Keep this configuration";
    let field = harness.get_all_by_label(title).last().expect("a field");
    field.focus();
    harness.run_steps(2);
    harness.event(egui::Event::Text(name.into()));
    harness.run_steps(2);
    press(harness, "Keep");
}

#[test]
fn a_preset_is_kept_loaded_replaced_deleted_and_brought_back() {
    let machine = Machine::default();
    let mut harness = start(&machine);
    seed(&mut harness, 77);
    keep(&mut harness, "seven");
    harness.get_by_label("Kept as \"seven\".");
    press(&mut harness, "Close");

    // The next start: it is in the list, and is shown as what is chosen.
    let mut harness = start(&machine);
    assert_eq!(seed_of(&harness), None);
    press(&mut harness, "Preset");
    press(&mut harness, "seven");
    assert_eq!(seed_of(&harness), Some(77));

    // A name that is there is asked about.
    seed(&mut harness, 78);
    keep(&mut harness, "seven");
    harness.get_by_label("\"seven\" is there already. Replace it?");
    press(&mut harness, "Leave it");
    press(&mut harness, "Load seven");
    assert_eq!(seed_of(&harness), Some(77));
    seed(&mut harness, 78);
    press(&mut harness, "Keep");
    press(&mut harness, "Replace");
    seed(&mut harness, 5);
    press(&mut harness, "Load seven");
    assert_eq!(seed_of(&harness), Some(78));
    harness.snapshot("presets_dark");

    press(&mut harness, "Delete seven");
    assert!(harness.query_by_label("Load seven").is_none());
    press(&mut harness, "Undo");
    press(&mut harness, "Load seven");
    press(&mut harness, "Delete seven");
    press(&mut harness, "Close");
    let mut harness = start(&machine);
    press(&mut harness, "Keep…");
    assert!(harness.query_by_label("Load seven").is_none());
    harness.get_by_label_contains("Nothing is kept yet.");
}

#[test]
fn a_name_that_comes_with_the_program_is_refused() {
    let mut harness = start(&Machine::default());
    seed(&mut harness, 3);
    keep(&mut harness, PRESETS[1].name);
    assert!(harness.query_by_label_contains("Kept as").is_none());
    assert_eq!(harness.state().window.view.kept.names().count(), 0);
}

#[test]
fn what_cannot_be_kept_is_said_and_stays_until_the_window_closes() {
    let machine = Machine {
        full: true,
        ..Machine::default()
    };
    let mut harness = start(&machine);
    seed(&mut harness, 9);
    keep(&mut harness, "nine");
    let said = harness.query_all_by_label_contains("No space is left on the disk.");
    assert!(said.count() > 0);
    press(&mut harness, "Load nine");
    press(&mut harness, "Close");
    harness.get_by_label("Presets and appearance are not kept");
    press(&mut harness, "Dismiss");
    let gone = harness.query_by_label("Presets and appearance are not kept");
    assert!(gone.is_none());
}

/// Seconds that something fades for, and whether the cursor in a text blinks.
fn motion(harness: &Harness<'_, Desk>) -> (f32, bool) {
    let style = harness.ctx.global_style();
    (style.animation_time, style.visuals.text_cursor.blink)
}

#[test]
fn reduced_motion_follows_the_system_until_it_is_chosen() {
    let machine = Machine {
        calm: true,
        ..Machine::default()
    };
    let mut harness = start(&machine);
    assert_eq!(motion(&harness), (0.0, false));
    // The person decides otherwise, also for the next start.
    press(&mut harness, "menu");
    press(&mut harness, "Reduced motion");
    assert!(motion(&harness).0 > 0.0 && motion(&harness).1);
    let harness = start(&machine);
    assert!(motion(&harness).0 > 0.0);
    let mut harness = start(&Machine::default());
    assert!(motion(&harness).0 > 0.0);
    press(&mut harness, "menu");
    press(&mut harness, "Reduced motion");
    assert_eq!(motion(&harness), (0.0, false));
}

#[test]
fn dark_or_light_is_kept() {
    let machine = Machine::default();
    let mut harness = start(&machine);
    press(&mut harness, "menu");
    press(&mut harness, "Light");
    assert_eq!(harness.ctx.theme(), Theme::Light);
    let harness = start(&machine);
    assert_eq!(harness.ctx.theme(), Theme::Light);
}
