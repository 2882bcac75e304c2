//! `braid train`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use braid_engine::data::{Dataset, Tokenizer};
use braid_engine::device::{Device, Precision};
use braid_engine::models::config::ModelConfig;
use braid_engine::optim::muon::{Matrices, matrices};
use braid_engine::params::Parameters;
use braid_engine::trainer::{MemoryPlan, plan_memory};
use clap::Args;

use super::{
    ConfigArgs, DIVERGED, DeviceArgs, Failure, INTERRUPTED, Outcome, USAGE, notice, paint, say,
};
use crate::config::RunConfig;
use crate::expert_map::expert_map;
use crate::heat_map::heat_map;
use crate::progress::{Learning, Progress};
use crate::records::Record;
use crate::report::{active_parameters, duration, grouped, memory_table, parameter_table};
use crate::run_dir::{Identity, RunDir, RunWriter, Which, read_checkpoint, refuse_occupied};
use crate::run_name::default_folder;
use crate::sampler::parameters;
use crate::session::{Session, Start};
use crate::sweep::outcome::{self, refuse_another};
use crate::texts;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid train
  braid train --data input.txt --set data.tokenizer=char --set residual.kind=delta
  braid train --data input.txt --set data.tokenizer=bpe --set data.vocab=2048
  braid train --task depth-recall --set model.layers=6 --steps 3000 --seed 2
  braid train --resume runs/20260101-120000-dar-recall")]
pub(super) struct TrainArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Train on a text file
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    data: Option<PathBuf>,
    /// Train on a built-in task: recall, copy, sort, modular, depth-recall
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Updates; the learning rate's schedule ends there
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Stop and save after N updates; the schedule stays
    #[arg(long, value_name = "N")]
    until: Option<u64>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of initial values and batches
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder of the run [default: runs/<time>-<mechanism>-<data>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run, with its own configuration
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["config", "settings", "data", "task", "steps", "seed", "out", "dry_run"]
    )]
    resume: Option<PathBuf>,
    /// If the folder of --out holds this run already, go on with it; one that is finished is left alone
    #[arg(long = "continue", requires = "out", conflicts_with_all = ["resume", "dry_run", "ui"])]
    go_on: bool,
    /// Save and stop when the standard input ends: how a sweep holds its trainings
    #[arg(long, hide = true)]
    stop_with_input: bool,
    /// Print parameters, memory and kernel calls; train nothing
    #[arg(long)]
    dry_run: bool,
    /// Train in the window
    #[arg(long, conflicts_with_all = ["json", "dry_run", "until", "out"])]
    ui: bool,
    /// Print one JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &TrainArgs) -> Outcome {
    match &args.resume {
        Some(folder) if args.ui => super::ui::open_run(folder, &args.device.device),
        None if args.ui => super::ui::with(&configuration(args)?, &args.device.device, true),
        Some(folder) => resume(args, folder),
        None => begin(args),
    }
}

/// The configuration that file, settings and flags make together.
fn configuration(args: &TrainArgs) -> Result<RunConfig, Failure> {
    let text = args.config.text()?;
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let mut flags = Vec::new();
    if let Some(file) = &args.data {
        // The run may be resumed from another folder.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        flags.push(("--data", "data.file", quoted(&file.to_string_lossy())));
    }
    if let Some(task) = &args.task {
        flags.push(("--task", "data.task", quoted(task)));
    }
    if let Some(steps) = args.steps {
        flags.push(("--steps", "train.steps", steps.to_string()));
    }
    if let Some(seed) = args.seed {
        flags.push(("--seed", "train.seed", seed.to_string()));
    }
    let mut settings = Vec::new();
    for (flag, key, value) in flags {
        let same = |setting: &&String| {
            let other = setting.split('=').next().unwrap_or_default().trim();
            let data = |key: &str| key == "data.file" || key == "data.task";
            other == key || (data(other) && data(key))
        };
        if let Some(setting) = args.config.settings.iter().find(same) {
            let message =
                format!("`{flag}` and `--set {setting}` contradict each other; give one of them");
            return Err(Failure::new(USAGE, message));
        }
        settings.push(format!("{key}={value}"));
    }
    // Flags first: they name the data, which decides which settings there are.
    settings.extend(args.config.settings.iter().cloned());
    let mut config = RunConfig::parse(&text, &settings)?;
    texts::name_files_fully(&mut config);
    Ok(config)
}

/// The data of a run; reads its file.
pub(super) fn dataset(
    config: &RunConfig,
    vocabulary: Option<&Tokenizer>,
) -> Result<Dataset, Failure> {
    let (mut learning, terminal) = (Learning::new(), std::io::stderr().is_terminal());
    let mut show = |merges: usize, of: usize| match terminal {
        true => learning.show(merges, of),
        false if merges == 1 => notice(format!(
            "learning {} tokens from the text",
            grouped(of as u64)
        )),
        false => {}
    };
    let data = texts::dataset(config, None, vocabulary, &mut show);
    learning.finish();
    Ok(data?)
}

/// `--until`, or the end of the schedule.
fn until(args: &TrainArgs, config: &RunConfig) -> Result<u64, Failure> {
    let steps = config.train.steps;
    match args.until {
        Some(until) if until == 0 || until > steps => {
            let message = format!("--until {until}: it must be between 1 and train.steps, {steps}");
            Err(Failure::new(USAGE, message))
        }
        Some(until) => Ok(until),
        None => Ok(steps),
    }
}

fn begin(args: &TrainArgs) -> Outcome {
    let config = configuration(args)?;
    let until = until(args, &config)?;
    if let Some(folder) = args.out.as_deref().filter(|_| args.go_on)
        && folder.join("config.toml").is_file()
    {
        refuse_another(folder, &config)?;
        let shown = folder.display();
        return match outcome::progress(folder)? {
            outcome::Progress::Finished(done) => {
                notice(format!(
                    "nothing to do: the run in {shown} is finished, its val loss is {:.4}",
                    done.val_loss
                ));
                Ok(())
            }
            outcome::Progress::Diverged(step) => {
                let message = format!(
                    "the run in {shown} diverged at step {step}, and would again; train it with a lower train.lr in another folder"
                );
                Err(Failure::new(DIVERGED, message))
            }
            _ => resume(args, folder),
        };
    }
    let data = dataset(&config, None)?;
    let model = config.model_config(data.vocab_size())?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&config, crate::desk::calendar()));
    if !args.dry_run {
        refuse_occupied(&out)?;
    }
    // Refuses what is not implemented before a device is opened.
    parameters(&model)?;
    let (device, why) = args.device.open(Precision::F32)?;
    let memory = plan_memory(&model, &config.train_config(), &device.executor().limits())?;
    if args.dry_run {
        return dry_run(
            args,
            &config,
            &model,
            &data,
            &memory,
            &headline(&device, &why),
        );
    }
    let run = RunWriter::create(
        &out,
        &Identity {
            config_toml: &config.to_toml(),
            config_json: &model.to_json(),
            tokenizer_json: &data.tokenizer().to_json(),
            text: None,
        },
    )?;
    if !args.json {
        say(config.to_toml());
        introduce(&config, &model, &data, &memory, &headline(&device, &why))?;
        say(format!("run        {}\n", out.display()));
    }
    data.notices().iter().for_each(notice);
    let clock = clock();
    let session = Session::new(Start {
        config,
        model,
        data,
        device: &device,
        run: Some(run),
        until,
        clock,
    })?;
    train(args, session, &out)
}

fn resume(args: &TrainArgs, folder: &Path) -> Outcome {
    let run = RunDir::open(folder)?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let until = until(args, &config)?;
    let tokenizer = Tokenizer::from_json(&run.tokenizer_json()?)?;
    let data = dataset(&config, Some(&tokenizer))?;
    let model = config.model_config(data.vocab_size())?;
    run.same_model(&model)?;
    let writer = RunWriter::resume(folder)?;
    let checkpoint = run.checkpoint(Which::Last)?;
    let files = checkpoint.as_deref().map(read_checkpoint).transpose()?;
    let (device, why) = args.device.open(Precision::F32)?;
    let headline = headline(&device, &why);
    let mut session = Session::new(Start {
        config,
        model: model.clone(),
        data,
        device: &device,
        run: Some(writer),
        until,
        clock: clock(),
    })?;
    let notices = match &files {
        Some(files) => session.restore(files)?,
        None => {
            session.restart()?;
            vec!["the run has no checkpoint yet: it begins anew".into()]
        }
    };
    notices.iter().for_each(notice);
    session.take_notices().iter().for_each(notice);
    let step = session.trainer().steps_done();
    if !args.json {
        introduce(
            session.config(),
            &model,
            session.trainer().data(),
            session.trainer().memory(),
            &headline,
        )?;
        say(format!(
            "run        {}, from step {} to {until}\n",
            folder.display(),
            grouped(step)
        ));
    }
    if session.is_over() {
        notice(format!(
            "nothing to do: {step} of {until} steps are done; raise --until, or begin a new run with more --steps"
        ));
    }
    train(args, session, folder)
}

fn clock() -> crate::session::Clock {
    let start = Instant::now();
    Box::new(move || start.elapsed().as_secs_f64())
}

/// The device, and why.
fn headline(device: &Device, why: &str) -> String {
    if why.is_empty() {
        device.report().to_string()
    } else {
        format!("{} ({why})", device.report())
    }
}

/// A word for the mechanism and its setting.
fn mechanism(model: &ModelConfig) -> String {
    let text = serde_json::to_value(&model.residual).unwrap_or_default();
    let mut words = vec![model.residual.kind().to_owned()];
    for (key, value) in text
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "kind")
    {
        words.push(format!(
            "{key} {}",
            value
                .as_str()
                .map_or_else(|| value.to_string(), String::from)
        ));
    }
    words.join(", ")
}

/// What Muon updates, if it does.
fn optimizer(config: &RunConfig, parameters: &Parameters) -> Option<String> {
    config.train_config().update.muon?;
    let all = matrices(parameters);
    let range = |matrices: &Matrices| parameters.range(matrices.number).len();
    let numbers: usize = all.iter().map(range).sum();
    let count: u32 = all.iter().map(|matrices| matrices.count).sum();
    Some(format!(
        "muon for {count} matrices ({} parameters), adamw for the rest",
        grouped(numbers as u64)
    ))
}

fn introduce(
    config: &RunConfig,
    model: &ModelConfig,
    data: &Dataset,
    memory: &MemoryPlan,
    device: &str,
) -> Outcome {
    let parameters = parameters(model)?;
    say(format!(
        "model      {} layers, width {}, {} heads; {} parameters, {} of them for routing",
        model.num_hidden_layers,
        model.hidden_size,
        model.num_attention_heads,
        grouped(parameters.count() as u64),
        grouped(parameters.routing_count() as u64),
    ));
    say(format!("residual   {}", mechanism(model)));
    if let Some(moe) = model.experts() {
        say(format!(
            "experts    {} of {} for each token, {} shared, width {}; {} parameters are active",
            moe.top_k,
            moe.experts,
            moe.shared_experts,
            moe.intermediate_size,
            grouped(active_parameters(model, &parameters) as u64),
        ));
    }
    say(format!("data       {}", data.summary()));
    if let Some(optimizer) = optimizer(config, &parameters) {
        say(format!("optimiser  {optimizer}"));
    }
    say(format!("device     {device}"));
    say(format!(
        "memory     {}",
        braid_engine::error::bytes_for_people(memory.total())
    ));
    Ok(())
}

fn dry_run(
    args: &TrainArgs,
    config: &RunConfig,
    model: &ModelConfig,
    data: &Dataset,
    memory: &MemoryPlan,
    device: &str,
) -> Outcome {
    let parameters = parameters(model)?;
    if args.json {
        let parts: serde_json::Map<_, _> = crate::report::parts(&parameters)
            .into_iter()
            .map(|part| (part.name.to_owned(), part.numbers.into()))
            .collect();
        let largest: Vec<_> = memory
            .training
            .largest
            .iter()
            .map(|(name, bytes)| serde_json::json!({"tensor": name, "bytes": bytes}))
            .collect();
        say(serde_json::json!({
            "event": "plan",
            "device": device,
            "parameters": parameters.count(),
            "active_parameters": active_parameters(model, &parameters),
            "parts": parts,
            "bytes": {
                "parameters": memory.parameters,
                "training": memory.training.planned,
                "evaluation": memory.evaluation.planned,
                "update": memory.update.planned,
                "total": memory.total(),
            },
            "largest": largest,
            "dispatches_per_step": memory.steps,
        })
        .to_string());
        return Ok(());
    }
    say(config.to_toml());
    introduce(config, model, data, memory, device)?;
    say(format!("\nparameters\n{}", parameter_table(&parameters)));
    say(format!("memory\n{}", memory_table(memory, 8)));
    say("nothing was allocated: this was a dry run");
    Ok(())
}

/// Ctrl-C, pressed how many times.
static PRESSED: AtomicU8 = AtomicU8::new(0);

/// The first press finishes the step and saves; the second one ends the process.
fn watch_ctrl_c() {
    let pressed = || {
        if PRESSED.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(INTERRUPTED.into());
        }
        notice("finishing the step and saving; press Ctrl-C again to stop at once");
    };
    if let Err(error) = ctrlc::set_handler(pressed) {
        notice(format!("Ctrl-C will not save: {error}"));
    }
}

/// The standard input has ended.
static INPUT_ENDED: AtomicBool = AtomicBool::new(false);

/// Read the standard input to its end, which comes when the process that holds the other side ends or lets go.
fn watch_input() {
    let watch = || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        INPUT_ENDED.store(true, Ordering::SeqCst);
    };
    if let Err(error) = std::thread::Builder::new()
        .name("input".into())
        .spawn(watch)
    {
        notice(format!("the end of the input will not be seen: {error}"));
    }
}

/// Whether somebody wants this to save and end.
fn asked_to_stop() -> bool {
    PRESSED.load(Ordering::SeqCst) > 0 || INPUT_ENDED.load(Ordering::SeqCst)
}

fn train(args: &TrainArgs, mut session: Session, folder: &Path) -> Outcome {
    watch_ctrl_c();
    if args.stop_with_input {
        watch_input();
    }
    let began = Instant::now();
    let from = session.trainer().steps_done();
    let bar = !args.json && std::io::stderr().is_terminal();
    let mut progress = Progress::new(from, session.until(), bar);
    let show = |progress: &mut Progress, records: &[Record]| {
        if args.json {
            records.iter().for_each(|record| say(record.to_line()));
            return;
        }
        let lines = progress.show(records);
        progress.suspend(|| lines.iter().for_each(say));
    };
    while !session.is_over() && !asked_to_stop() {
        match pollster::block_on(session.advance()) {
            Ok(records) => {
                show(&mut progress, &records);
                let notices = session.take_notices();
                progress.suspend(|| notices.iter().for_each(notice));
            }
            Err(error) => {
                progress.finish();
                return Err(error.into());
            }
        }
    }
    if !session.is_over() {
        let records = pollster::block_on(session.interrupt())?;
        show(&mut progress, &records);
    }
    progress.finish();
    let step = session.trainer().steps_done();
    let shown = folder.display();
    if let Some(diverged) = session.diverged() {
        return Err(Failure::new(
            DIVERGED,
            format!("{}\nthe run is in {shown}", diverged.message),
        ));
    }
    if !session.is_over() {
        let message =
            format!("stopped at step {step} and saved; go on with\n  braid train --resume {shown}");
        if args.json {
            notice(message);
        } else {
            say(message);
        }
        return Err(Failure::silent(INTERRUPTED));
    }
    if step > from {
        let done = session.finish()?;
        if args.json {
            say(done.to_line());
        } else {
            conclude(&session, step - from, began.elapsed().as_secs_f64());
        }
    }
    if !args.json {
        say(format!("run        {shown}"));
        if step < session.config().train.steps {
            say(format!("go on      braid train --resume {shown}"));
        }
        say(format!("look       braid sample {shown}"));
    }
    Ok(())
}

/// The end of a training, for people.
fn conclude(session: &Session, steps: u64, seconds: f64) {
    let map = heat_map(session.sites(), paint(), 80);
    if !map.is_empty() {
        say(format!(
            "\nwhat each sublayer reads, after {} steps\n\n{map}",
            session.trainer().steps_done()
        ));
    }
    let experts = expert_map(session.experts(), paint());
    if !experts.is_empty() {
        say(format!("which experts the tokens go to\n\n{experts}"));
    }
    say(format!(
        "trained    {} steps in {}",
        grouped(steps),
        duration(seconds)
    ));
    if let Some(last) = session.last() {
        say(format!("loss       {:.4}", last.loss));
    }
    if let Some(evaluation) = session.evaluation() {
        let tokens = grouped(evaluation.tokens);
        say(format!(
            "val loss   {:.4}, over {tokens} tokens",
            evaluation.val_loss
        ));
        if let Some(bits) = evaluation.bits_per_byte {
            say(format!("           {bits:.4} bits per byte of text"));
        }
        if let Some(accuracy) = evaluation.accuracy {
            say(format!("answers    {:.1} % right", 100.0 * accuracy));
        }
    }
}
