//! What a mouse shows while it rests on something, a tap shows on a touch screen.
//!
//! A finger that is lifted leaves no pointer behind, so hints and the values in charts and maps would never be seen. After a
//! tap on something that is looked at, the pointer stays there until the next touch. What is pressed (buttons, fields) shows
//! its hint while the finger rests on it, as everywhere in egui.

use egui::{Context, Event, Plugin, Pos2, RawInput, TouchPhase, Ui};
use web_time::Duration;

/// Seconds between a tap and the pointer's return: egui shows no hint of what was clicked a moment ago.
const LATER: f64 = 0.15;

/// Buttons and fields are lower than this on a touch screen, maps and charts are higher; in points.
const TALL: f32 = 60.0;

/// Keeps the pointer where the last tap was.
#[derive(Debug, Default)]
pub(super) struct Taps {
    /// Where the finger was lifted, and when the pointer comes back.
    lifted: Option<(Pos2, f64)>,
}

impl Plugin for Taps {
    fn debug_name(&self) -> &'static str {
        "taps"
    }

    fn input_hook(&mut self, context: &Context, input: &mut RawInput) {
        let now = input
            .time
            .unwrap_or_else(|| context.input(|before| before.time) + f64::from(input.predicted_dt));
        let touches = |event: &Event| matches!(event, Event::Touch { .. });
        if input.events.iter().any(touches) {
            self.lifted = None;
            let ends = |event: &Event| matches!(event, Event::Touch { phase, .. } if *phase == TouchPhase::End);
            let released = |event: &Event| match event {
                Event::PointerButton {
                    pos,
                    pressed: false,
                    ..
                } => Some(*pos),
                _ => None,
            };
            if input.events.iter().any(ends) {
                let place = input.events.iter().rev().find_map(released);
                self.lifted = place.map(|place| (place, now + LATER));
            }
        } else if let Some((place, due)) = self.lifted
            && now >= due
        {
            input.events.push(Event::PointerMoved(place));
            self.lifted = None;
        }
    }

    fn on_end_pass(&mut self, ui: &mut Ui) {
        if self.lifted.is_none() {
            return;
        }
        let context = ui.ctx();
        let (released, clicked) = context.input(|input| {
            let pointer = &input.pointer;
            (pointer.any_released(), pointer.any_click())
        });
        if released {
            let pressed = context.interaction_snapshot(|snapshot| snapshot.clicked);
            let height = |id| context.read_response(id).map_or(0.0, |r| r.rect.height());
            // The end of a drag asks for nothing.
            if !clicked || pressed.is_some_and(|id| height(id) < TALL) {
                self.lifted = None;
                return;
            }
        }
        context.request_repaint_after(Duration::from_secs_f64(LATER));
    }
}
