//! A control that gets the focus by a key is brought into sight: egui leaves it behind the edge of its scroll area.

use egui::accesskit::{Action, ActionRequest, TreeId};
use egui::{Context, Event, Id, Key};

/// Passes after a key in which the focus may move because of it.
const PASSES: u32 = 3;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Focus {
    /// What had the focus in the last pass.
    before: Option<Id>,
    /// Passes that are left.
    left: u32,
}

impl Focus {
    /// Look at the start of each pass where the focus is.
    pub(super) fn follow(&mut self, context: &Context) {
        let keys = [
            Key::Tab,
            Key::ArrowUp,
            Key::ArrowDown,
            Key::ArrowLeft,
            Key::ArrowRight,
        ];
        if context.input(|input| keys.iter().any(|key| input.key_pressed(*key))) {
            self.left = PASSES;
        }
        let focused = context.memory(|memory| memory.focused());
        if std::mem::replace(&mut self.before, focused) == focused || self.left == 0 {
            self.left = self.left.saturating_sub(1);
            return;
        }
        let Some(id) = focused else { return };
        let response = context.read_response(id);
        // What is clipped is smaller than it is.
        if response.is_some_and(|seen| !seen.interact_rect.contains_rect(seen.rect)) {
            let request = ActionRequest {
                action: Action::ScrollIntoView,
                target_tree: TreeId::ROOT,
                target_node: id.accesskit_id(),
                data: None,
            };
            context.input_mut(|input| {
                input.events.push(Event::AccessKitActionRequest(request));
            });
            context.request_repaint();
        }
    }
}
