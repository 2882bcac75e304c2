//! What a front end asks for.

use serde::{Deserialize, Serialize};

/// A configuration that is being edited, and the text that it learns from if it was dropped into the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// TOML, as in `config.toml`; what is left out has its default.
    pub toml: String,
    /// Name and content of a text that is not a file of this machine (dropped, or chosen in a browser).
    #[serde(with = "named_bytes")]
    pub text: Option<(String, Vec<u8>)>,
}

/// A name and bytes, written as bytes where a format has them.
mod named_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_bytes::{ByteBuf, Bytes};

    pub(super) fn serialize<S: Serializer>(
        text: &Option<(String, Vec<u8>)>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = text.as_ref();
        text.map(|(name, bytes)| (name, Bytes::new(bytes)))
            .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<(String, Vec<u8>)>, D::Error> {
        let text = Option::<(String, ByteBuf)>::deserialize(from)?;
        Ok(text.map(|(name, bytes)| (name, bytes.into_vec())))
    }
}

/// Files that came from outside: their paths below what was chosen or dropped, and their contents.
pub type NamedFiles = Vec<(String, Vec<u8>)>;

/// Several of them, written as bytes where a format has them.
mod named_files {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_bytes::{ByteBuf, Bytes};

    pub(super) fn serialize<S: Serializer>(
        files: &[(String, Vec<u8>)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let files = files.iter().map(|(name, bytes)| (name, Bytes::new(bytes)));
        files.collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, Vec<u8>)>, D::Error> {
        let files = Vec::<(String, ByteBuf)>::deserialize(from)?.into_iter();
        Ok(files
            .map(|(name, bytes)| (name, bytes.into_vec()))
            .collect())
    }
}

/// What is handed out of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// All of its files, as one archive.
    Run,
    /// The parameters of its last checkpoint.
    Checkpoint,
}

/// What to do to the weights of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteEdit {
    /// Take source `source` out: the others share its weight in proportion, where weights sum to one.
    Cut {
        /// Column of the source.
        source: usize,
    },
    /// All weight on one source.
    Pin {
        /// Column of the source.
        source: usize,
    },
    /// Exchange the weights of two sources.
    Swap {
        /// Column of a source.
        a: usize,
        /// Column of the other one.
        b: usize,
    },
    /// The same weight for all sources.
    Uniform,
}

/// An edit of the weights with which a site reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// The site; `L` is the read-out.
    pub site: u32,
    /// The stream, 0 for mechanisms with one.
    pub stream: usize,
    /// What is done.
    pub edit: RouteEdit,
}

/// Seconds between two checkpoints by time, unless somebody asks for others.
pub const AUTOSAVE: f64 = 600.0;

/// Share of the training time that goes into frames, unless somebody asks for another.
pub const SHARE: f64 = 0.03;

/// One wish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// List devices: answered by `Devices`.
    Devices,
    /// Look at a configuration: answered by `Checked` with the same number.
    Check {
        /// Number of this question; of several, only the last answer counts.
        number: u64,
        /// The configuration.
        draft: Draft,
        /// `auto`, `cpu`, `gpu` or a part of an adapter's name.
        device: String,
    },
    /// Begin a run and train: answered by `Ready` or `Failed`.
    Start {
        /// The configuration.
        draft: Draft,
        /// As in `Check`.
        device: String,
        /// Where to keep it; `None`: a new folder in `runs/`.
        folder: Option<String>,
        /// Begin paused.
        paused: bool,
    },
    /// Stop after the step that is under way; keep everything in memory.
    Pause,
    /// Go on.
    Resume,
    /// One update, then pause.
    Step,
    /// Save, and close the run.
    Stop,
    /// Change a field that is safe while running, such as `train.lr`: answered by `Configured` or `Failed`.
    Set {
        /// Key of the field.
        key: String,
        /// TOML value.
        value: String,
    },
    /// Pause after so many updates in all, or never.
    Until {
        /// Updates in all; `None`: the end of the schedule.
        step: Option<u64>,
        /// Pause once the validation loss is at most this.
        val_loss: Option<f64>,
        /// Pause after so many seconds.
        seconds: Option<f64>,
    },
    /// Write a checkpoint now.
    Save,
    /// How often to write a checkpoint by itself, besides `train.save_every`. Which steps are saved changes no step.
    Autosave {
        /// Seconds between two checkpoints; `None`: never.
        seconds: Option<f64>,
    },
    /// Look into a run's folder without opening it: answered by `Peeked`.
    Peek {
        /// The folder.
        folder: String,
    },
    /// Read a run on disk without opening it, even while another process trains it: answered by `Looked`. A run that is loaded
    /// is saved and closed first.
    Look {
        /// The folder.
        folder: String,
    },
    /// Open a run, paused at its last checkpoint: answered by `Ready` or `Failed`.
    Open {
        /// The folder.
        folder: String,
        /// As in `Check`.
        device: String,
    },
    /// List the runs in the folder of runs: answered by `Runs`.
    Runs,
    /// Look at files that came from outside: a run (its files, or an archive of them) is kept and answered by `Imported`; a
    /// checkpoint's parameters begin a run of the draft, paused, and are answered by `Ready`.
    Import {
        /// The files.
        #[serde(with = "named_files")]
        files: NamedFiles,
        /// What a checkpoint without a configuration belongs to.
        draft: Draft,
        /// As in `Check`.
        device: String,
    },
    /// Hand out a run, or its last checkpoint: answered by `Exported`.
    Export {
        /// The folder.
        folder: String,
        /// What of it.
        piece: Piece,
    },
    /// Delete a run that is not loaded: answered by `Runs`.
    Delete {
        /// The folder.
        folder: String,
    },
    /// Read the metrics and frames of a run on disk, to compare with: answered by `History`.
    History {
        /// The folder.
        folder: String,
    },
    /// Continue a prompt with the current parameters: answered by `Sampled`.
    Sample {
        /// The text to continue; empty: the beginning of a validation sequence.
        prompt: String,
        /// Tokens to add.
        tokens: usize,
        /// Temperature; 0: always the most likely token.
        temperature: f64,
        /// Seed of the choices.
        seed: u64,
    },
    /// Continue a prompt whenever so many updates are done, as `Sample` does, with the parameters of just that update. For all
    /// runs from now on.
    SampleEvery {
        /// Updates between two texts; `None`: never.
        every: Option<u64>,
        /// As in `Sample`, here and below.
        prompt: String,
        /// Tokens to add.
        tokens: usize,
        /// Temperature.
        temperature: f64,
        /// Seed of the choices.
        seed: u64,
    },
    /// Depth weights token by token on a text: answered by `Traced`.
    Trace {
        /// The text; empty: the first validation sequence.
        text: String,
    },
    /// Held-out loss with these edits of the routes, and without: answered by `Effect`. They touch no training.
    Intervene {
        /// The edits; none: only the loss without.
        edits: Vec<Intervention>,
    },
    /// Back to the last checkpoint.
    Rewind {
        /// Multiply the learning rate by this.
        lr_factor: f64,
    },
    /// How much of the time may go into routing frames. Each validation, pause and end gives one in any case; 0: no others.
    Watch {
        /// Share of the training time, such as 0.03.
        share: f64,
    },
    /// End the thread. Save first, if there is something to save.
    Quit {
        /// Whether to save.
        save: bool,
    },
}
