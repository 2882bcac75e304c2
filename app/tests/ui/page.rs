//! The window on a page, where runs are no folders that a person can go to.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use braid_app::protocol::{Command, Event, Exported, KeptRun, Piece, RunState};
use braid_app::ui::Window;
use braid_app::ui::host::{Answer, Host, Purpose, Wish};
use egui::Theme;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::harness::{Desk, desk_of, devices, recorded};

/// What was wished, and the answers that wait.
type Talk = (Vec<(Purpose, Wish)>, VecDeque<(Purpose, Answer)>);

#[derive(Clone, Default)]
struct Page(Rc<RefCell<Talk>>);

impl Host for Page {
    fn ask(&mut self, purpose: Purpose, wish: Wish) {
        self.0.borrow_mut().0.push((purpose, wish));
    }

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        self.0.borrow_mut().1.pop_front()
    }

    fn has_folders(&self) -> bool {
        false
    }
}

impl Page {
    fn drop_on(&self, harness: &mut Harness<'_, Desk>, answer: Answer) {
        self.0.borrow_mut().1.push_back((Purpose::Dropped, answer));
        harness.run_steps(4);
    }
}

fn file(name: &str, content: &str) -> Answer {
    Answer::Files(vec![(name.into(), content.as_bytes().to_vec())])
}

fn page(size: [f32; 2], mut events: Vec<Event>) -> (Harness<'static, Desk>, Page) {
    events.insert(0, devices());
    let page = Page::default();
    let window = Window::default().with_host(Box::new(page.clone()));
    let mut harness = desk_of(window, size, Theme::Dark, events);
    harness.run_steps(4);
    (harness, page)
}

fn kept(name: &str, last: Option<u64>) -> KeptRun {
    KeptRun {
        folder: format!("runs/{name}"),
        name: if last.is_some() {
            "dar recall".into()
        } else {
            String::new()
        },
        last,
        steps: 300,
        saved: last,
        bytes: 1_200_000,
    }
}

fn sent(harness: &Harness<'_, Desk>, wanted: &Command) -> bool {
    harness.state().sent.contains(wanted)
}

#[test]
fn the_run_that_was_saved_last_is_offered_beside_start() {
    for size in [[1400.0, 900.0], [390.0, 844.0]] {
        let (mut harness, _) = page(size, Vec::new());
        assert!(sent(&harness, &Command::Runs), "{:?}", harness.state().sent);
        let autosave = Command::Autosave {
            seconds: Some(120.0),
        };
        assert!(sent(&harness, &autosave));
        assert!(harness.query_by_label("Resume last run").is_none());
        let runs = vec![
            kept("torn", None),
            kept("b", Some(200)),
            kept("a", Some(300)),
        ];
        harness.state_mut().window.hear(Event::Runs(runs));
        harness.run_steps(3);
        harness.get_by_label("Resume last run").click();
        harness.run_steps(3);
        let open = Command::Open {
            folder: "runs/b".into(),
            device: "auto".into(),
        };
        assert!(sent(&harness, &open));
        // Not while one is loaded.
        for event in recorded("dar") {
            harness.state_mut().window.hear(event);
        }
        let paused = Event::State(RunState::Paused);
        harness.state_mut().window.hear(paused);
        harness.run_steps(3);
        assert!(harness.query_by_label("Resume last run").is_none());
    }
}

#[test]
fn open_lists_what_is_kept_and_deletes_it_when_asked_twice() {
    let (mut harness, page) = page([1400.0, 900.0], Vec::new());
    let runs = vec![kept("b", Some(200)), kept("a", Some(300))];
    harness.state_mut().window.hear(Event::Runs(runs));
    harness.state_mut().window.view.opening = true;
    harness.run_steps(4);
    harness.get_by_label_contains("dar recall · step 300 of 300");
    harness.get_by_label("delete a").click();
    harness.run_steps(3);
    let delete = Command::Delete {
        folder: "runs/a".into(),
    };
    assert!(!sent(&harness, &delete));
    harness.get_by_label("Delete it for good").click();
    harness.run_steps(3);
    assert!(sent(&harness, &delete));
    harness.get_by_label("b").click();
    harness.run_steps(3);
    assert!(sent(
        &harness,
        &Command::Peek {
            folder: "runs/b".into()
        }
    ));
    harness.get_by_label("Choose files …").click();
    harness.run_steps(3);
    let wish = (Purpose::OpenRun, Wish::OpenFolder);
    assert!(page.0.borrow().0.contains(&wish));
}

#[test]
fn what_is_dropped_goes_where_it_belongs() {
    let (mut harness, page) = page([1400.0, 900.0], Vec::new());
    page.drop_on(&mut harness, file("mine.toml", "[train]\nseed = 77\n"));
    let edits = &harness.state().window.view.draft.edits;
    assert_eq!(edits.value("train.seed"), Some(77.into()));
    page.drop_on(&mut harness, file("fox.txt", "the quick brown fox"));
    let edits = &harness.state().window.view.draft.edits;
    assert_eq!(edits.word("data.file"), Some("fox.txt"));
    let imported = |harness: &Harness<'_, Desk>| {
        harness
            .state()
            .sent
            .iter()
            .rev()
            .find_map(|command| match command {
                Command::Import { files, .. } => Some(files.len()),
                _ => None,
            })
    };
    assert_eq!(imported(&harness), None);
    page.drop_on(&mut harness, file("MODEL.SAFETENSORS", "1234567"));
    assert_eq!(imported(&harness), Some(1));
    let run = ["config.toml", "config.json"].map(|name| (format!("a/{name}"), Vec::new()));
    page.drop_on(&mut harness, Answer::Files(run.to_vec()));
    assert_eq!(imported(&harness), Some(2));
    page.drop_on(&mut harness, file("broken.toml", "[train"));
    assert!(harness.query_by_label_contains("broken.toml: ").is_some());
    let imported = Event::Imported {
        folder: "runs/a".into(),
    };
    harness.state_mut().window.hear(imported);
    harness.run_steps(4);
    assert!(sent(
        &harness,
        &Command::Peek {
            folder: "runs/a".into()
        }
    ));
}

#[test]
fn runs_that_are_not_kept_are_said_and_handed_out() {
    let mut events = recorded("dar");
    events.push(Event::State(RunState::Paused));
    let (mut harness, page) = page([1400.0, 900.0], events);
    let trouble = |trouble: Option<&str>| Event::Keeping {
        trouble: trouble.map(str::to_owned),
    };
    let full = "The browser's storage for this page is full.";
    harness.state_mut().window.hear(trouble(Some(full)));
    harness.run_steps(3);
    harness.get_by_label("Runs are not kept");
    harness.get_by_label("Download this run").click();
    harness.run_steps(3);
    let exports = harness.state().sent.iter().any(|command| {
        matches!(
            command,
            Command::Export {
                piece: Piece::Run,
                ..
            }
        )
    });
    assert!(exports);
    let exported = Exported {
        name: "a.zip".into(),
        bytes: b"PK".to_vec(),
    };
    harness
        .state_mut()
        .window
        .hear(Event::Exported(Box::new(exported)));
    harness.run_steps(3);
    let save = Wish::Save {
        name: "a.zip".into(),
        bytes: b"PK".to_vec(),
    };
    assert!(page.0.borrow().0.contains(&(Purpose::Export, save)));
    // Once there is room again, nothing is said.
    harness.state_mut().window.hear(trouble(None));
    harness.run_steps(3);
    assert!(harness.query_by_label("Runs are not kept").is_none());
    harness.state_mut().window.hear(trouble(Some(full)));
    harness.run_steps(3);
    harness.get_by_label("Dismiss").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Runs are not kept").is_none());
}

#[test]
fn an_engine_that_was_started_again_is_asked_again() {
    let mut events = recorded("dar");
    events.push(Event::State(RunState::Running));
    let (mut harness, _) = page([1400.0, 900.0], events);
    harness.state_mut().sent.clear();
    let window = &mut harness.state_mut().window;
    window.hear(Event::State(RunState::Empty));
    window.hear(Event::Failed {
        what: "worker".into(),
        message: "out of bounds".into(),
        field: None,
    });
    let greeting = window.greet_again();
    assert!(greeting.contains(&Command::Devices) && greeting.contains(&Command::Runs));
    harness.run_steps(4);
    let checks = harness.state().sent.iter();
    assert!(
        checks
            .into_iter()
            .any(|c| matches!(c, Command::Check { .. }))
    );
    // The run is opened again: what happened stays on the screen.
    for event in recorded("dar") {
        harness.state_mut().window.hear(event);
    }
    harness.run_steps(3);
    harness.get_by_label("The engine stopped and was started again");
}
