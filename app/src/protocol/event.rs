//! What a front end hears.

use serde::{Deserialize, Serialize};

use super::frame::{Frame, Site, SiteKind};
use super::line::Line;
use super::not_finite;

/// A device that could compute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// What to ask for it by.
    pub choice: String,
    /// Name, backend and driver.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `other`, `software`, `host`
    pub kind: String,
    /// Largest range that a kernel can see, in bytes; `None`: only memory limits it.
    pub binding_bytes: Option<u64>,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// Key of the field, if it is one field's fault.
    pub field: Option<String>,
    /// A sentence.
    pub message: String,
}

/// Parameters of one part of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// `embedding`, `attention`, `feed-forward`, `norms`, `head`, `routing`
    pub name: String,
    /// Trained numbers.
    pub numbers: u64,
}

/// What a mechanism is; see `braid list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// One line.
    pub summary: String,
    /// Title and place of the paper, if there is one.
    pub paper: String,
    /// The definition, plain text.
    pub equations: String,
    /// Where the paper is silent: what we chose.
    pub choices: Vec<String>,
}

/// What follows from a configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// Parameters by part.
    pub parameters: Vec<Part>,
    /// Bytes: parameters with gradients and moments, training, evaluation.
    pub memory: Vec<(String, u64)>,
    /// Bytes that the device has, if known.
    pub memory_limit: Option<u64>,
    /// Largest tensor of a step, name and bytes.
    pub largest: Option<(String, u64)>,
    /// Tokens of one update.
    pub tokens_per_step: u64,
    /// Tokens that a text must have at least; `None` for tasks.
    pub least_tokens: Option<u64>,
    /// Kernel calls of one update.
    pub kernel_calls: u64,
    /// The data in one line.
    pub data: String,
    /// Size of the vocabulary.
    pub vocab: u32,
    /// Learning rate over the schedule: `(step, rate)`.
    pub schedule: Vec<(f64, f64)>,
    /// Which site can read which source, with uniform weights: the shape of the map before training.
    pub shape: Vec<Site>,
    /// The mechanism.
    pub about: About,
}

/// Answer to `Check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Number of the question.
    pub number: u64,
    /// All keys with their effective values (TOML), as far as the configuration could be read.
    pub values: Vec<(String, String)>,
    /// Why it cannot run.
    pub error: Option<FieldError>,
    /// What follows from it, if it can run.
    pub derived: Option<Derived>,
}

/// A run that is loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its folder; empty if it is kept in none.
    pub folder: String,
    /// Short name.
    pub name: String,
    /// Effective configuration, TOML.
    pub toml: String,
    /// Same, key by key.
    pub values: Vec<(String, String)>,
    /// The device it runs on.
    pub device: String,
    /// Updates done.
    pub step: u64,
    /// Updates in all.
    pub steps: u64,
    /// Names of the sites, bottom first.
    pub sites: Vec<(u32, SiteKind)>,
    /// What it allocated, in bytes.
    pub bytes: u64,
    /// Its last checkpoint, in updates.
    #[serde(default)]
    pub saved: Option<u64>,
    /// Records so far.
    pub lines: Vec<Line>,
    /// Recorded frames so far, oldest first.
    #[serde(default)]
    pub frames: Vec<Frame>,
    /// The last texts that its model wrote, oldest first.
    #[serde(default)]
    pub samples: Vec<Sampled>,
    /// Share of right answers of who draws an answer at random; tasks only.
    #[serde(default)]
    pub chance: Option<f64>,
    /// It was loaded before and is kept in no folder: what is known of it holds up to `step`, and is not repeated here.
    #[serde(default)]
    pub again: bool,
}

/// What is inside a run's folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peek {
    /// The folder.
    pub folder: String,
    /// Effective configuration, TOML.
    pub toml: String,
    /// Last checkpoint, in updates.
    pub last: Option<u64>,
    /// Best checkpoint: validation loss, updates.
    pub best: Option<(f64, u64)>,
    /// Size of the vocabulary.
    pub vocab: u32,
    /// Parameters.
    pub parameters: u64,
    /// Bytes of the last checkpoint.
    pub bytes: u64,
    /// Another process is writing it now.
    #[serde(default)]
    pub busy: bool,
}

/// A run in the folder of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    /// The folder.
    pub folder: String,
    /// Short name; empty if its configuration cannot be read.
    pub name: String,
    /// Last checkpoint, in updates.
    pub last: Option<u64>,
    /// Updates in all.
    pub steps: u64,
    /// When that was written, in seconds since 1970.
    pub saved: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A file that is handed out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Suggested name.
    pub name: String,
    /// Its content.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// Whether something is being trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// No run is loaded.
    Empty,
    /// Being loaded: what is done, how far.
    Preparing {
        /// `opening the device`, `compiling kernels`, ..
        stage: String,
        /// Parts done.
        done: u32,
        /// Of so many; 0: unknown.
        of: u32,
    },
    /// Training.
    Running,
    /// Paused after a step.
    Paused,
    /// All updates of the schedule are done.
    Finished,
    /// A loss was not finite.
    Diverged {
        /// The update that failed.
        step: u64,
        /// The first tensor that is not finite.
        tensor: Option<String>,
        /// A sentence with the likely cause.
        message: String,
        /// The checkpoint to go back to.
        good: Option<u64>,
    },
}

/// A token of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// Its probability when it was chosen; `None` in the prompt.
    pub probability: Option<f64>,
}

/// A text that the model wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Updates done.
    pub step: u64,
    /// Prompt and continuation.
    pub tokens: Vec<Token>,
    /// Temperature it was drawn with.
    pub temperature: f64,
    /// Seed it was drawn with.
    pub seed: u64,
}

/// Depth weights of one stream at one site, token by token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSite {
    /// The site.
    pub site: u32,
    /// The stream.
    pub stream: usize,
    /// Columns.
    pub sources: Vec<String>,
    /// `[tokens][sources]`
    #[serde(deserialize_with = "not_finite::table")]
    pub weights: Vec<Vec<f64>>,
}

/// Answer to `Trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Updates done.
    pub step: u64,
    /// Text of each token.
    pub tokens: Vec<String>,
    /// All sites.
    pub sites: Vec<TraceSite>,
}

/// Answer to `Intervene`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Updates done.
    pub step: u64,
    /// The edits.
    pub edits: Vec<super::Intervention>,
    /// Mean held-out loss without them; nats.
    #[serde(deserialize_with = "not_finite::number")]
    pub clean: f64,
    /// With them.
    #[serde(deserialize_with = "not_finite::number")]
    pub edited: f64,
    /// Standard error of the difference, over batches.
    #[serde(deserialize_with = "not_finite::number")]
    pub error: f64,
    /// Held-out batches.
    pub batches: usize,
}

/// Where the time of a step goes, in milliseconds, means of lately; and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// One update, wall clock.
    pub step: f64,
    /// Of it: writing batches, recording commands, records.
    pub host: f64,
    /// Of it: waiting for the device, or computing on the CPU.
    pub device: f64,
    /// One routing frame.
    pub frame: f64,
    /// Bytes that the process uses; `None`: nobody says.
    #[serde(default)]
    pub memory: Option<u64>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// Devices of this machine.
    Devices {
        /// All of them, best first.
        list: Vec<DeviceInfo>,
        /// Which one `auto` takes, and why.
        auto: String,
    },
    /// No GPU can be used here: why, and what to do about it. A desktop has nothing to add to the list of devices.
    NoGpu {
        /// Some sentences.
        message: String,
    },
    /// A configuration was looked at.
    Checked(Box<Checked>),
    /// A run was loaded.
    Ready(Box<RunInfo>),
    /// A safe field was changed: all values now.
    Configured {
        /// Key and TOML value.
        values: Vec<(String, String)>,
        /// All of it, TOML.
        toml: String,
        /// Updates in all.
        steps: u64,
    },
    /// Where the run pauses by itself; nothing: at the end of the schedule.
    Goal {
        /// Updates in all.
        step: Option<u64>,
        /// Validation loss that is low enough.
        val_loss: Option<f64>,
        /// Seconds from when it was asked for.
        seconds: Option<f64>,
    },
    /// The state changed.
    State(RunState),
    /// Records since the last message.
    Lines(Vec<Line>),
    /// Routing now.
    Frame(Box<Frame>),
    /// Speed, lately.
    Timing(Timing),
    /// A run on disk as it is now, to be looked at while nobody here trains it: of its `device`, nothing is known.
    Looked(Box<RunInfo>),
    /// A folder was looked into.
    Peeked(Box<Peek>),
    /// The runs in the folder of runs, the one that was saved last first.
    Runs(Vec<KeptRun>),
    /// A run from outside is kept now.
    Imported {
        /// Its folder.
        folder: String,
    },
    /// A file to hand out.
    Exported(Box<Exported>),
    /// Whether what is written is there after the end of this program. Only said where it may not be, as in a browser.
    Keeping {
        /// Why it is not: some sentences.
        trouble: Option<String>,
    },
    /// Metrics and frames of a run on disk.
    History {
        /// The folder.
        folder: String,
        /// Effective configuration, TOML.
        toml: String,
        /// All records.
        lines: Vec<Line>,
        /// All recorded frames, oldest first.
        #[serde(default)]
        frames: Vec<Frame>,
    },
    /// A text was written.
    Sampled(Box<Sampled>),
    /// Weights token by token.
    Traced(Box<Trace>),
    /// What an intervention does.
    Effect(Box<Effect>),
    /// A checkpoint was written.
    Saved {
        /// Updates done.
        step: u64,
        /// Where.
        path: String,
    },
    /// A sentence for the log.
    Notice {
        /// The sentence.
        message: String,
    },
    /// The device was lost, opened again, and the training goes on from a checkpoint.
    DeviceLost {
        /// The step that it goes on from.
        step: u64,
        /// A sentence.
        message: String,
    },
    /// A wish could not be fulfilled; everything is as before.
    Failed {
        /// What was wished: `start`, `open`, `save`, ..
        what: String,
        /// A sentence.
        message: String,
        /// The field at fault, if it is one.
        field: Option<String>,
    },
    /// The thread has ended; everything that had to be saved is.
    Ended,
}
