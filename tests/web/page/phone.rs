//! The page on a phone: fingers, and a keyboard on the screen.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use braid_app::protocol::{Command, Event, RunState};
use braid_web::wire;
use serde_json::{Value, json};

use super::{PATIENCE, TOY, Visit};
use crate::cdp::Tab;
use crate::chromium::Gpu;
use crate::server::Files;

/// What the window asks its worker for.
const ASKED: &str = "{
    const post = Worker.prototype.postMessage;
    const asked = [];
    Worker.prototype.postMessage = function (data, ...how) {
        if (data instanceof Uint8Array) asked.push(btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join('')));
        return post.call(this, data, ...how);
    };
    window.asked = () => asked.splice(0);
}";

impl Tab {
    /// A phone's screen of this size. Emulated densities do not reach the sizes that a canvas is told in pixels.
    pub(crate) fn phone(&mut self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", screen);
        let touch = json!({ "enabled": true, "maxTouchPoints": 5 });
        self.call("Emulation.setTouchEmulationEnabled", touch);
    }

    /// Put a finger down and lift it.
    pub(crate) fn tap(&mut self, x: f64, y: f64) {
        for (kind, points) in [
            ("touchStart", json!([{ "x": x, "y": y }])),
            ("touchEnd", json!([])),
        ] {
            let event = json!({ "type": kind, "touchPoints": points });
            self.call("Input.dispatchTouchEvent", event);
            self.frames();
        }
    }

    /// Let the window draw some frames.
    pub(crate) fn frames(&mut self) {
        self.eval(
            "new Promise((done) => { let n = 4; const next = () => n-- ? requestAnimationFrame(next) : done(true); next(); })",
        );
    }
}

impl Visit {
    fn asked(&mut self) -> Vec<Command> {
        let all = self.tab.eval("window.asked()");
        let all = all.as_array().into_iter().flatten();
        all.filter_map(Value::as_str)
            .map(|text| {
                let bytes = STANDARD.decode(text).expect("base 64");
                wire::decode(&bytes).expect("a command")
            })
            .collect()
    }
}

/// `app/tests/ui/phone.rs` holds the places to what lies there.
#[test]
fn a_prompt_is_typed_on_a_phone() {
    let Some(mut visit) = Visit::open(Gpu::None, Files::new(), ASKED, None) else {
        return;
    };
    visit.tab.phone(390, 844);
    visit.load("");
    let Command::Start { draft, device, .. } = super::start(TOY, "cpu") else {
        return;
    };
    visit.send(&Command::Start {
        draft,
        device,
        folder: None,
        paused: true,
    });
    visit.until("the run", |event| *event == Event::State(RunState::Paused));
    visit.tab.frames();
    let agent = "document.activeElement.tagName";
    visit.tab.tap(175.0, 380.0);
    assert_ne!(visit.tab.eval(agent), "INPUT", "nothing is typed into");
    visit.tab.tap(100.0, 425.0);
    assert_eq!(
        visit.tab.eval(agent),
        "INPUT",
        "the keyboard has a field to type into"
    );
    visit.tab.call("Input.insertText", json!({ "text": "ab" }));
    visit.tab.frames();
    // The keyboard comes: the page gets lower, the window with it, and the field keeps the focus.
    visit.tab.phone(390, 480);
    visit.tab.frames();
    let height = visit
        .tab
        .eval("document.getElementById('window').getBoundingClientRect().height");
    assert_eq!(height, 480);
    assert_eq!(visit.tab.eval(agent), "INPUT");
    visit.tab.call("Input.insertText", json!({ "text": "c" }));
    visit.tab.frames();
    visit.asked();
    visit.tab.press("Enter", "Enter", "\r");
    let late = std::time::Instant::now() + PATIENCE;
    loop {
        let asked = visit.asked();
        let prompts: Vec<&str> = asked
            .iter()
            .filter_map(|command| match command {
                Command::Sample { prompt, .. } => Some(prompt.as_str()),
                _ => None,
            })
            .collect();
        if !prompts.is_empty() {
            assert_eq!(prompts, ["abc"]);
            break;
        }
        assert!(std::time::Instant::now() < late, "{asked:?}");
    }
    visit.was_clean();
}
