//! `braid sample`

use std::path::PathBuf;

use braid_engine::checkpoint;
use braid_engine::data::{StreamDecoder, Tokenizer};
use braid_engine::device::Precision;
use braid_engine::models::config::ModelConfig;
use braid_engine::sample::Sampling;
use clap::Args;

use super::{DeviceArgs, Outcome, notice, say, say_part};
use crate::config::RunConfig;
use crate::run_dir::{RunDir, Which, read_checkpoint};
use crate::sampler::{Sampler, parameters};

#[derive(Debug, Args)]
#[command(
    after_help = "Example: braid sample runs/20260101-120000-dar-input --prompt \"ROMEO:\" -n 300 --temperature 0.8"
)]
pub(super) struct SampleArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Text to continue [default: the beginning of the validation part]
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Tokens to add
    #[arg(short = 'n', long, default_value_t = 200, value_name = "N")]
    tokens: u64,
    /// Logits are divided by it; 0 always takes the most likely token
    #[arg(long, default_value_t = 0.8, value_name = "X")]
    temperature: f64,
    /// Choose among the K most likely tokens; 0: all
    #[arg(long, default_value_t = 0, value_name = "K")]
    top_k: usize,
    /// The same seed gives the same text
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The checkpoint with the lowest validation loss instead of the last one
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SampleArgs) -> Outcome {
    let sampling = Sampling {
        temperature: args.temperature,
        top_k: args.top_k,
        seed: args.seed,
    };
    sampling.validate()?;
    let run = RunDir::open(&args.run)?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let model = ModelConfig::from_json(&run.config_json()?)?;
    let tokenizer = Tokenizer::from_json(&run.tokenizer_json()?)?;
    let folder = run.need_checkpoint(if args.best { Which::Best } else { Which::Last })?;
    let files = read_checkpoint(&folder)?;
    let values = checkpoint::read(&*parameters(&model)?, &files.model, None)?.values;
    let prompt = prompt(args, &config, &tokenizer)?;

    let (device, _) = args.device.open(Precision::F32)?;
    let context = config.model.context;
    let mut sampler = Sampler::new(
        device.executor(),
        &model,
        context,
        &values,
        sampling,
        prompt.clone(),
    )?;
    let mut decoder = StreamDecoder::new(&tokenizer);
    let mut text = String::new();
    let mut put = |part: String| {
        if !args.json {
            say_part(&part);
        }
        text.push_str(&part);
    };
    for &id in &prompt {
        put(decoder.push(id));
    }
    for _ in 0..args.tokens {
        let id = pollster::block_on(sampler.next())?;
        put(decoder.push(id));
        if tokenizer.stop() == Some(id) {
            break;
        }
    }
    put(decoder.finish());
    if args.json {
        say(serde_json::json!({ "event": "sample", "seed": args.seed, "text": text }).to_string());
    } else {
        say("");
    }
    Ok(())
}

/// Tokens of the prompt; at least one.
fn prompt(
    args: &SampleArgs,
    config: &RunConfig,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, super::Failure> {
    let Some(text) = &args.prompt else {
        // A run's text may be gone; its model can be asked all the same.
        return Ok(match super::train::dataset(config, Some(tokenizer)) {
            Ok(data) => data.prompt(config.model.context as usize),
            Err(_) => vec![0],
        });
    };
    let encoded = tokenizer.encode(text);
    encoded.notice.iter().for_each(notice);
    if encoded.ids.is_empty() {
        notice(format!(
            "the prompt is empty: the text begins with `{}`",
            tokenizer.token_text(0)
        ));
        return Ok(vec![0]);
    }
    Ok(encoded.ids)
}
