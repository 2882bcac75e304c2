//! What the window asks of the desktop: the system's file dialogs, and a place to keep things.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use eframe::egui;
use rfd::AsyncFileDialog;

use super::shelf::Shelf;
use crate::run_dir::read_bytes;
use crate::ui::host::{Answer, Host, Purpose, Wish};

/// Dialogs that are open, each on a thread of its own, and their answers.
#[derive(Debug)]
pub(super) struct Dialogs {
    answers: Receiver<(Purpose, Answer)>,
    outbox: Sender<(Purpose, Answer)>,
    context: egui::Context,
    shelf: Shelf,
}

impl Dialogs {
    pub(super) fn new(context: egui::Context) -> Self {
        let (outbox, answers) = mpsc::channel();
        Self {
            answers,
            outbox,
            context,
            shelf: Shelf::of_person(),
        }
    }
}

fn file(path: &std::path::Path) -> Answer {
    match read_bytes(path) {
        Ok(bytes) => Answer::File {
            name: path.to_string_lossy().into_owned(),
            readable: true,
            bytes,
        },
        Err(error) => Answer::Failed(error.to_string()),
    }
}

impl Host for Dialogs {
    fn ask(&mut self, purpose: Purpose, wish: Wish) {
        let (outbox, context) = (self.outbox.clone(), self.context.clone());
        let dialog = AsyncFileDialog::new();
        // Some systems want a dialog to be made on the main thread; waiting for it may be anywhere.
        let answer: std::pin::Pin<Box<dyn Future<Output = Option<Answer>> + Send>> = match wish {
            Wish::OpenFile => {
                let chosen = dialog.pick_file();
                Box::pin(async move { Some(file(chosen.await?.path())) })
            }
            Wish::OpenFolder => {
                let chosen = dialog.pick_folder();
                Box::pin(async move {
                    let path = chosen.await?.path().to_string_lossy().into_owned();
                    Some(Answer::Folder(path))
                })
            }
            Wish::Save { name, bytes } => {
                let chosen = dialog.set_file_name(&name).save_file();
                Box::pin(async move {
                    let path = chosen.await?.path().to_owned();
                    Some(match std::fs::write(&path, bytes) {
                        Ok(()) => Answer::Saved(path.to_string_lossy().into_owned()),
                        Err(error) => {
                            Answer::Failed(format!("{} cannot be written: {error}", path.display()))
                        }
                    })
                })
            }
        };
        let refused = self.outbox.clone();
        let waiting = thread::Builder::new()
            .name("file dialog".into())
            .spawn(move || {
                // No answer: it was dismissed.
                if let Some(answer) = pollster::block_on(answer) {
                    let _ = outbox.send((purpose, answer));
                    context.request_repaint();
                }
            });
        if let Err(error) = waiting {
            let message = format!("the file dialog cannot be opened: {error}");
            let _ = refused.send((purpose, Answer::Failed(message)));
        }
    }

    fn poll(&mut self) -> Option<(Purpose, Answer)> {
        self.answers.try_recv().ok()
    }

    fn kept(&mut self) -> Result<Option<String>, String> {
        self.shelf.read()
    }

    fn keep(&mut self, text: &str) -> Result<(), String> {
        self.shelf.write(text)
    }
}
