//! Runs to begin with.

/// A configuration with a name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// A few words.
    pub name: &'static str,
    /// What there is to see, a sentence.
    pub about: &'static str,
    /// What differs from the defaults, TOML.
    pub toml: &'static str,
}

/// The first one is what a new window opens with: it learns within a minute on a CPU.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "DAR, recall",
        about: "Two streams with blocks of two layers learn to look up values. Small: it learns within a minute on a CPU.",
        toml: "[residual]\nkind = \"dar\"\nlayers_per_block = 2\n[train]\nsteps = 1000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "Delta block, recall",
        about: "One ordinary stream, and a choice among what each block of two sublayers added to it.",
        toml: "[residual]\nkind = \"delta\"\ngranularity = \"block\"\nsublayers_per_block = 2\n[train]\nsteps = 1000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "Attention residuals, recall",
        about: "No stream at all: each sublayer chooses among the embedding and all earlier outputs.",
        toml: "[residual]\nkind = \"attn_res\"\n[train]\nsteps = 1000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "Standard, recall",
        about: "The baseline: every sublayer adds to one stream. Nothing is routed; compare its loss with the others.",
        toml: "[residual]\nkind = \"standard\"\n[train]\nsteps = 1000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "Hyper-connections, recall",
        about: "Four streams that are read, mixed and written with learned weights.",
        toml: "[residual]\nkind = \"hyper_connections\"\nstreams = 4\n[train]\nsteps = 1000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "DAR, depth-recall",
        about: "A task whose answer needs early notes in a late layer: you can judge which sources ought to be read.",
        toml: "[model]\nlayers = 6\n[residual]\nkind = \"dar\"\nlayers_per_block = 2\n[data]\ntask = \"depth-recall\"\n[train]\nsteps = 4000\neval_every = 50\neval_batches = 4\n",
    },
    Preset {
        name: "DAR, your text",
        about: "Learns a text of yours byte by byte. Choose a file, or drop one on the window.",
        toml: "[model]\nlayers = 6\ncontext = 128\n[residual]\nkind = \"dar\"\nlayers_per_block = 2\n[data]\nfile = \"\"\n[train]\nsteps = 5000\neval_every = 100\neval_batches = 4\n",
    },
];
