//! What the window asks of the program around it: file dialogs, and to keep a text between starts. A desktop shell answers
//! with the system's dialogs and a file, a browser page with its own.
//!
//! A panel puts a wish into [`Dialogs`] and looks for the answer in later frames: nothing waits.

/// Which panel asked, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A text to learn.
    Text,
    /// A configuration to read.
    Config,
    /// A run to open.
    OpenRun,
    /// A run to compare with.
    CompareRun,
    /// Something was dropped on the window.
    Dropped,
    /// Something is handed out; no answer is needed.
    Export,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Choose a file and read it.
    OpenFile,
    /// Choose the folder of a run; where there are no folders, its files or an archive of them.
    OpenFolder,
    /// Write this where the person says.
    Save {
        /// Suggested name.
        name: String,
        /// What is written.
        bytes: Vec<u8>,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A file.
    File {
        /// Its path, or only its name in a browser.
        name: String,
        /// Whether `name` is a path that the engine's side can read itself.
        readable: bool,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// Several files, or those of a folder: their paths below what was chosen, and their contents.
    Files(Vec<(String, Vec<u8>)>),
    /// A folder.
    Folder(String),
    /// Written, and under which name.
    Saved(String),
    /// It went wrong: a sentence.
    Failed(String),
}

/// The program around the window. A dialog that is dismissed gives no answer.
pub trait Host {
    /// Open a dialog; returns at once.
    fn ask(&mut self, purpose: Purpose, wish: Wish);
    /// The next answer, if there is one.
    fn poll(&mut self) -> Option<(Purpose, Answer)>;
    /// A file was dropped on the window whose content only the host can read, as in a browser: answer with
    /// [`Purpose::Dropped`].
    fn dropped(&mut self, file: egui::DroppedFileHandle) {
        drop(file);
    }
    /// Whether runs are folders that can be chosen. A browser has none.
    fn has_folders(&self) -> bool {
        true
    }
    /// Beginning of a share link: the page, or `braid://`.
    fn link_base(&self) -> String {
        "braid://".into()
    }
    /// The text that [`Host::keep`] was given last, in this start or an earlier one; none, if there was none.
    ///
    /// # Errors
    /// A sentence, if there is something that cannot be read.
    fn kept(&mut self) -> Result<Option<String>, String> {
        Ok(None)
    }
    /// Keep this text until it is replaced, also over the end of the program.
    ///
    /// # Errors
    /// A sentence, if that is not possible.
    fn keep(&mut self, text: &str) -> Result<(), String> {
        let _ = text;
        Err("This program keeps nothing between starts.".into())
    }
    /// Whether the system asks programs for as little motion as possible.
    fn wants_calm(&self) -> bool {
        false
    }
    /// Whether fingers are what mostly points here. A screen that is touched for the first time is noticed without it.
    fn is_touch(&self) -> bool {
        false
    }
}

/// Wishes that wait for the host, and answers that wait for their panels.
#[derive(Clone, Debug, Default)]
pub struct Dialogs {
    wishes: Vec<(Purpose, Wish)>,
    answers: Vec<(Purpose, Answer)>,
    no_folders: bool,
    link_base: String,
}

impl Dialogs {
    /// Ask for something.
    pub fn ask(&mut self, purpose: Purpose, wish: Wish) {
        self.wishes.push((purpose, wish));
    }

    /// Hand a text out as a file.
    pub fn save_text(&mut self, name: &str, text: &str) {
        let (name, bytes) = (name.to_owned(), text.as_bytes().to_vec());
        self.ask(Purpose::Export, Wish::Save { name, bytes });
    }

    /// Whether runs are folders that can be chosen.
    #[must_use]
    pub fn has_folders(&self) -> bool {
        !self.no_folders
    }

    /// Beginning of a share link.
    #[must_use]
    pub fn link_base(&self) -> &str {
        match self.link_base.as_str() {
            "" => "braid://",
            base => base,
        }
    }

    /// An answer that came without a wish, such as a file that was dropped.
    pub(super) fn answer(&mut self, purpose: Purpose, answer: Answer) {
        self.answers.push((purpose, answer));
    }

    /// The answer for a purpose, once.
    pub fn take(&mut self, purpose: Purpose) -> Option<Answer> {
        let at = self.answers.iter().position(|(own, _)| *own == purpose)?;
        Some(self.answers.remove(at).1)
    }

    /// Pass wishes on and take answers in.
    pub(super) fn exchange(&mut self, host: &mut dyn Host) {
        self.no_folders = !host.has_folders();
        if self.link_base.is_empty() {
            self.link_base = host.link_base();
        }
        for (purpose, wish) in self.wishes.drain(..) {
            host.ask(purpose, wish);
        }
        while let Some(answer) = host.poll() {
            self.answers.push(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every wish for a folder at the second look.
    #[derive(Default)]
    struct Slow(Vec<Purpose>, bool);

    impl Host for Slow {
        fn ask(&mut self, purpose: Purpose, _: Wish) {
            self.0.push(purpose);
        }

        fn poll(&mut self) -> Option<(Purpose, Answer)> {
            if !std::mem::replace(&mut self.1, true) {
                return None;
            }
            let folder = Answer::Folder("runs/a".into());
            self.0.pop().map(|purpose| (purpose, folder))
        }
    }

    #[test]
    fn an_answer_reaches_the_panel_that_asked_once() {
        let (mut dialogs, mut host) = (Dialogs::default(), Slow::default());
        dialogs.ask(Purpose::CompareRun, Wish::OpenFolder);
        dialogs.exchange(&mut host);
        assert_eq!(dialogs.take(Purpose::CompareRun), None);
        dialogs.exchange(&mut host);
        assert_eq!(dialogs.take(Purpose::OpenRun), None);
        let folder = Answer::Folder("runs/a".into());
        assert_eq!(dialogs.take(Purpose::CompareRun), Some(folder));
        assert_eq!(dialogs.take(Purpose::CompareRun), None);
    }
}
