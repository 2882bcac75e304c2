//! The model of a run, as its checkpoint has it: what `eval` and `analyze` begin with.

use std::path::{Path, PathBuf};

use braid_engine::checkpoint;
use braid_engine::data::Tokenizer;
use braid_engine::device::{Device, Precision};
use braid_engine::trainer::Trainer;

use super::{DeviceArgs, Failure, notice};
use crate::config::RunConfig;
use crate::run_dir::{RunDir, Which, read_checkpoint};

/// A trained model on a device.
pub(super) struct Trained {
    /// Has the weights of the checkpoint.
    pub(super) trainer: Trainer,
    pub(super) device: Device,
    /// Updates that the checkpoint has seen.
    pub(super) step: u64,
    /// Of the checkpoint.
    pub(super) folder: PathBuf,
}

impl Trained {
    /// Load it. `adjust` may change how the run is configured; `figures` ends the sentence about data that have changed.
    pub(super) fn open(
        path: &Path,
        best: bool,
        device: &DeviceArgs,
        figures: &str,
        adjust: impl FnOnce(&mut RunConfig),
    ) -> Result<Self, Failure> {
        let run = RunDir::open(path)?;
        let mut config = RunConfig::parse(&run.config_toml()?, &[])?;
        adjust(&mut config);
        let folder = run.need_checkpoint(if best { Which::Best } else { Which::Last })?;
        let files = read_checkpoint(&folder)?;
        let tokenizer = Tokenizer::from_json(&run.tokenizer_json()?)?;
        let data = super::train::dataset(&config, Some(&tokenizer))?;
        let state = files
            .state
            .as_deref()
            .map(checkpoint::read_state)
            .transpose()?;
        if let Some(state) = state
            .as_ref()
            .filter(|state| state.data != data.fingerprint())
        {
            notice(format!(
                "the data are not those that the run was trained on (fingerprint {}, now {}): {figures}",
                state.data,
                data.fingerprint()
            ));
        }
        let step = state.map_or(0, |state| state.step);
        let model = config.model_config(data.vocab_size())?;
        run.same_model(&model)?;
        let (device, _) = device.open(Precision::F32)?;
        let mut trainer = Trainer::new(device.executor(), model, config.train_config(), data)?;
        let tensors = checkpoint::read(trainer.parameters(), &files.model, None)?;
        trainer.restore(step, &tensors.values, None)?;
        Ok(Self {
            trainer,
            device,
            step,
            folder,
        })
    }
}
