//! Golden cases: a model's weights and inputs with the results of an independent program in 64-bit floats.
//!
//! Everything in `expected.safetensors` is compared by section 7.3 of the checkpoint format: logits, losses, every gradient,
//! depth weights, gates, the use of experts, and the losses, norms and parameters of ten training steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::executor::{Data, Executor, Values};
use crate::models::config::ModelConfig;
use crate::models::{decoder, plans};
use crate::nn::Batch;
use crate::nn::experts::Routed;
use crate::nn::residual::Routing;
use crate::optim::{RING_WIDTH, STATUS_LOSS, STATUS_RING, StepScalars, UpdateConfig, ring_entry};
use crate::params::Parameters;
use crate::plan::External;
use crate::runtime::{Loaded, Runtime};

/// The files of a case.
#[derive(Clone, Copy, Debug)]
pub struct CaseFiles<'a> {
    /// `config.json`
    pub config: &'a str,
    /// `case.json`
    pub case: &'a str,
    /// `model.safetensors`
    pub model: &'a [u8],
    /// `expected.safetensors`
    pub expected: &'a [u8],
}

#[derive(Debug, Deserialize)]
struct CaseJson {
    batch: u32,
    seq_len: u32,
    tolerances: BTreeMap<String, Entry>,
    #[serde(default)]
    noise_driven: Vec<String>,
    optimizer: Option<Optimizer>,
}

/// One entry of `tolerances`: the shares that section 7.3 names, or a bare number, which is `relative` (and, for gradients, a
/// floor of a hundredth of it).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Relative(f64),
    Rule(Rule),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    absolute: f64,
    relative: f64,
    floor: f64,
    step_fraction: f64,
    rounding: f64,
}

impl CaseJson {
    fn rule(&self, key: &str) -> Rule {
        match self.tolerances.get(key) {
            Some(Entry::Rule(rule)) => *rule,
            Some(Entry::Relative(relative)) => {
                let floor = if key == "grad" { 0.01 * relative } else { 0.0 };
                Rule {
                    relative: *relative,
                    floor,
                    ..Rule::default()
                }
            }
            None => Rule::default(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Optimizer {
    kind: String,
    #[serde(default = "constant")]
    schedule: String,
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    grad_clip: f64,
}

fn constant() -> String {
    "constant".into()
}

/// The worst error of a group of tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Error over limit; at most 1 passes.
    pub ratio: f64,
    /// Where.
    pub tensor: String,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether every tensor was there and within its limit.
    pub pass: bool,
    /// Worst error by group: `logits`, `loss`, `grad`, `routing`, `gate`, `moe`, `train`, `checksum`.
    pub groups: BTreeMap<String, Worst>,
    /// Sections that the case does not have.
    pub skipped: Vec<String>,
    /// Tensors that were expected and not computed, or have another shape.
    pub missing: Vec<String>,
}

/// A tensor of a file, or computed: its shape, and its numbers in `f64`.
#[derive(Clone, Debug, Default)]
struct Numbers {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Numbers {
    fn new(shape: impl IntoIterator<Item = usize>, values: Vec<f64>) -> Self {
        Self {
            shape: shape.into_iter().collect(),
            values,
        }
    }

    /// A list.
    fn list(values: Vec<f64>) -> Self {
        Self {
            shape: vec![values.len()],
            values,
        }
    }
}

/// All tensors of a file.
fn tensors(bytes: &[u8], file: &str) -> Result<BTreeMap<String, Numbers>> {
    let unusable =
        |error: &dyn std::fmt::Display| Error::File(format!("{file} cannot be used: {error}"));
    let parsed = SafeTensors::deserialize(bytes).map_err(|error| unusable(&error))?;
    let mut all = BTreeMap::new();
    for (name, view) in parsed.iter() {
        let data = view.data();
        let values = match view.dtype() {
            Dtype::F64 => data
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| f64::from_le_bytes(*b))
                .collect(),
            Dtype::F32 => data
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f64::from(f32::from_le_bytes(*b)))
                .collect(),
            Dtype::I32 => data
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f64::from(i32::from_le_bytes(*b)))
                .collect(),
            Dtype::I64 => data
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| i64::from_le_bytes(*b) as f64)
                .collect(),
            other => {
                return Err(unusable(&format!(
                    "`{name}` is {other:?}; F64, F32, I32 and I64 can be read"
                )));
            }
        };
        all.insert(
            name.to_owned(),
            Numbers::new(view.shape().iter().copied(), values),
        );
    }
    Ok(all)
}

/// A case, read and understood.
struct Case {
    config: ModelConfig,
    json: CaseJson,
    weights: BTreeMap<String, Numbers>,
    expected: BTreeMap<String, Numbers>,
    batch: Batch,
}

impl Case {
    fn read(files: &CaseFiles<'_>) -> Result<Self> {
        let json: CaseJson = serde_json::from_str(files.case)
            .map_err(|error| Error::File(format!("case.json cannot be used: {error}")))?;
        let batch = Batch {
            sequences: json.batch,
            context: json.seq_len,
        };
        let config = ModelConfig::from_json(files.config)?;
        let weights = tensors(files.model, "model.safetensors")?;
        Ok(Self {
            config,
            json,
            weights,
            expected: tensors(files.expected, "expected.safetensors")?,
            batch,
        })
    }

    /// Token numbers of an input `[.., B, T]`, flattened.
    fn tokens(&self, name: &str) -> Result<Vec<u32>> {
        let missing = || Error::File(format!("expected.safetensors lacks `{name}`"));
        let Numbers { shape, values } = self.expected.get(name).ok_or_else(missing)?;
        let batch = [self.batch.sequences as usize, self.batch.context as usize];
        let vocab = f64::from(self.config.vocab_size);
        if values.is_empty()
            || !shape.ends_with(&batch)
            || values.iter().any(|&v| !(0.0..vocab).contains(&v))
        {
            return Err(Error::File(format!(
                "`{name}` of expected.safetensors has shape {shape:?}; it must be [.., {}, {}] tokens below {vocab}",
                batch[0], batch[1]
            )));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Ok(values.iter().map(|&v| v as u32).collect())
    }

    /// The arena with the case's weights.
    fn arena(&self, parameters: &Parameters) -> Result<Vec<f64>> {
        let mut arena = vec![0.0; parameters.arena_len()];
        for (number, spec) in parameters.specs().iter().enumerate() {
            let (range, name) = (parameters.range(number), &spec.name);
            let shape: Vec<usize> = spec.shape.dims().iter().map(|&dim| dim as usize).collect();
            match self.weights.get(name) {
                Some(given) if given.shape == shape => arena[range].copy_from_slice(&given.values),
                Some(given) => {
                    let message = format!(
                        "`{name}` of model.safetensors has shape {:?}, expected {shape:?}",
                        given.shape
                    );
                    return Err(Error::File(message));
                }
                None => return Err(Error::File(format!("model.safetensors lacks `{name}`"))),
            }
        }
        Ok(arena)
    }
}

/// Run a case on an executor and compare everything.
///
/// # Errors
/// If a file cannot be read, the configuration is not implemented, or the device fails.
pub async fn verify(files: &CaseFiles<'_>, executor: Box<dyn Executor>) -> Result<Verdict> {
    let case = Case::read(files)?;
    let parameters = Arc::new(decoder::parameters(&case.config)?);
    let mut runtime = Runtime::new(executor, parameters.clone())?;
    let arena = case.arena(&parameters)?;
    let exact = runtime.limits().float == 8;

    let how = plans::Training {
        batch: case.batch,
        accumulate: 1,
        checkpoint: false,
        watch: true,
    };
    let plan = plans::training(&case.config, &parameters, &how, &runtime.limits())?;
    let train = runtime.load_model(&plan)?;
    let mut got = evaluate(&case, &mut runtime, &train, &plan, &arena).await?;
    if case.json.optimizer.is_some() && case.expected.contains_key("train.input_ids") {
        got.extend(ten_steps(&case, &mut runtime, &train, &arena).await?);
    }
    Ok(compare(&case, &got, exact))
}

/// Logits, losses, gradients, depth weights, gates and the use of experts of the evaluation batch.
async fn evaluate(
    case: &Case,
    runtime: &mut Runtime,
    train: &Loaded,
    plan: &plans::ModelPlan,
    arena: &[f64],
) -> Result<BTreeMap<String, Numbers>> {
    let mut got = BTreeMap::new();
    runtime.write_external(External::Values, Data::F64(arena))?;
    runtime.write_batch(train, &case.tokens("input_ids")?, &case.tokens("labels")?)?;
    runtime.submit(true, &[train])?;

    let [loss, logits] = [plans::LOSS, plans::LOGITS].map(str::to_owned);
    let routing = plan.routing.iter().map(Routing::tensor);
    let gates = plan.gates.iter().map(|gate| gate.tensor.clone());
    let mut names: Vec<String> = [loss, logits]
        .into_iter()
        .chain(routing)
        .chain(gates)
        .collect();
    if !plan.experts.is_empty() {
        names.extend([plans::BALANCE, plans::Z].map(str::to_owned));
        names.extend(plan.experts.iter().map(Routed::gates));
        names.extend(plan.experts.iter().map(Routed::statistics));
    }
    let mut read = runtime
        .read(train, &names)
        .await?
        .into_iter()
        .map(|values| values.to_f64());
    let mut next = || read.next().unwrap_or_default();

    let loss = next();
    let mut objective = loss.clone();
    got.insert("loss".to_owned(), Numbers::list(loss));
    let rows = [case.batch.sequences as usize, case.batch.context as usize];
    let per_token = |values: Vec<f64>| {
        let columns = values.len() / (rows[0] * rows[1]).max(1);
        Numbers::new([rows[0], rows[1], columns], values)
    };
    got.insert("logits".to_owned(), per_token(next()));
    for routing in &plan.routing {
        let weights = if routing.shared {
            Numbers::list(next())
        } else {
            per_token(next())
        };
        got.insert(routing.tensor(), weights);
    }
    for gate in &plan.gates {
        let values = next();
        let columns = values
            .chunks(gate.width)
            .flat_map(|row| row[gate.columns.clone()].to_vec());
        got.insert(
            format!("gate.{}.{}", gate.site, gate.name),
            Numbers::new(rows.iter().chain(&gate.shape).copied(), columns.collect()),
        );
    }
    if !plan.experts.is_empty() {
        for name in [plans::BALANCE, plans::Z] {
            let part = next();
            objective[0] += part.first().copied().unwrap_or(f64::NAN);
            got.insert(name.to_owned(), Numbers::list(part));
        }
        for routed in &plan.experts {
            got.insert(routed.gates(), per_token(next()));
        }
        for routed in &plan.experts {
            let mut counts = next();
            counts.truncate(routed.experts as usize);
            got.insert(
                format!("moe.{}.counts", routed.layer),
                Numbers::list(counts),
            );
        }
    }
    got.insert("objective".to_owned(), Numbers::list(objective));

    let grads = runtime.read_external(External::Grads).await?.to_f64();
    let parameters = runtime.parameters().clone();
    for (number, spec) in parameters.trained() {
        let shape = spec.shape.dims().iter().map(|&dim| dim as usize);
        let values = grads[parameters.range(number)].to_vec();
        got.insert(format!("grad.{}", spec.name), Numbers::new(shape, values));
    }
    Ok(got)
}

/// Losses and norms of the training steps, and sums over the final parameters.
async fn ten_steps(
    case: &Case,
    runtime: &mut Runtime,
    train: &Loaded,
    arena: &[f64],
) -> Result<BTreeMap<String, Numbers>> {
    let Some(optimizer) = case.json.optimizer.clone() else {
        return Ok(BTreeMap::new());
    };
    if optimizer.kind != "adamw" || optimizer.schedule != "constant" {
        let message = format!(
            "optimizer {} with schedule {} is not known",
            optimizer.kind, optimizer.schedule
        );
        return Err(Error::File(format!("case.json: {message}")));
    }
    let config = UpdateConfig {
        beta1: optimizer.beta1,
        beta2: optimizer.beta2,
        eps: optimizer.eps,
        weight_decay: optimizer.weight_decay,
        clip: optimizer.grad_clip,
        routing_lr_mult: 1.0,
        muon: None,
    };
    let parameters = runtime.parameters().clone();
    let update = plans::update(&case.config, &parameters, &config, &runtime.limits())?;
    let update = runtime.load(&update)?;
    runtime.write_external(External::Values, Data::F64(arena))?;
    runtime.write_external(External::Status, Data::F64(&[0.0; STATUS_RING]))?;

    let rows = case.batch.rows() as usize;
    let (ids, labels) = (
        case.tokens("train.input_ids")?,
        case.tokens("train.labels")?,
    );
    let (mut losses, mut objectives, mut norms) = (Vec::new(), Vec::new(), Vec::new());
    for (step, (ids, labels)) in (1..).zip(ids.chunks(rows).zip(labels.chunks(rows))) {
        runtime.write_batch(train, ids, labels)?;
        let scalars = StepScalars {
            lr: optimizer.lr,
            step,
            beta1: optimizer.beta1,
            beta2: optimizer.beta2,
        };
        runtime.write_scalars(&scalars)?;
        runtime.submit(true, &[train, &update])?;
        let status = runtime.read_external(External::Status).await?.to_f64();
        let entry = &status[ring_entry(step)..][..RING_WIDTH];
        losses.push(entry[0]);
        objectives.push(entry[0] + entry[3] + entry[4]);
        norms.push(entry[1]);
        debug_assert!(
            status[STATUS_LOSS] == 0.0,
            "the update closes the step's books"
        );
    }
    let mut got = BTreeMap::from([
        ("train.loss".to_owned(), Numbers::list(losses)),
        ("train.objective".to_owned(), Numbers::list(objectives)),
        ("train.grad_norm".to_owned(), Numbers::list(norms)),
    ]);
    let values = runtime.read_external(External::Values).await?;
    let values = Values::to_f64(&values);
    for (number, spec) in parameters.specs().iter().enumerate() {
        let values = &values[parameters.range(number)];
        let sums = vec![values.iter().sum(), values.iter().map(|v| v * v).sum()];
        got.insert(format!("train.checksum.{}", spec.name), Numbers::list(sums));
    }
    Ok(got)
}

const INPUTS: [&str; 4] = ["input_ids", "labels", "train.input_ids", "train.labels"];
const SECTIONS: [&str; 7] = ["logits", "loss", "grad", "routing", "gate", "moe", "train"];

fn compare(case: &Case, got: &BTreeMap<String, Numbers>, exact: bool) -> Verdict {
    let expected = case
        .expected
        .iter()
        .filter(|(name, _)| !INPUTS.contains(&name.as_str()));
    let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let grads = case
        .expected
        .iter()
        .filter(|(name, _)| name.starts_with("grad."));
    let largest_grad = grads
        .map(|(_, want)| largest(&want.values))
        .fold(0.0, f64::max);
    let mut verdict = Verdict {
        pass: true,
        groups: BTreeMap::new(),
        skipped: Vec::new(),
        missing: Vec::new(),
    };
    for section in SECTIONS {
        if !case
            .expected
            .keys()
            .any(|name| name.split('.').next() == Some(section))
        {
            verdict.skipped.push(section.into());
        }
    }
    let tighten = |limit: f64| {
        if exact {
            (0.01 * limit).max(1e-12)
        } else {
            limit
        }
    };
    for (name, want) in expected {
        let Some(got) = got.get(name).filter(|got| got.shape == want.shape) else {
            verdict.missing.push(name.clone());
            continue;
        };
        let want = &want.values;
        let errors = got.values.iter().zip(want).map(|(a, b)| (a - b).abs());
        let (group, ratio) = if let Some(parameter) = name.strip_prefix("train.checksum.") {
            let limits = checksum_limits(case, parameter, want);
            (
                "checksum",
                errors
                    .zip(limits)
                    .map(|(error, limit)| share(error, tighten(limit)))
                    .fold(0.0, worse),
            )
        } else {
            let (group, rule) = rule(case, name);
            let limit = rule.absolute + rule.relative * largest(want) + rule.floor * largest_grad;
            (group, share(errors.fold(0.0, worse), tighten(limit)))
        };
        let worst = verdict.groups.entry(group.into()).or_insert(Worst {
            ratio: 0.0,
            tensor: name.clone(),
        });
        if worse(worst.ratio, ratio) > worst.ratio || ratio.is_nan() {
            *worst = Worst {
                ratio,
                tensor: name.clone(),
            };
        }
    }
    // NaN is not at most 1.
    verdict.pass = verdict.missing.is_empty()
        && !verdict.groups.is_empty()
        && verdict.groups.values().all(|worst| worst.ratio <= 1.0);
    verdict
}

/// An error as a share of its limit. No error is fine under any limit: a loss that is switched off is exactly 0, and so is
/// what it may differ by.
fn share(error: f64, limit: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / limit }
}

/// The larger of two errors; NaN is larger than everything.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.max(b)
    }
}

/// Group and tolerance of a tensor.
fn rule(case: &Case, name: &str) -> (&'static str, Rule) {
    let (group, key) = match name.split('.').next().unwrap_or_default() {
        "logits" => ("logits", "logits"),
        "loss" | "objective" => ("loss", "loss"),
        "grad" => ("grad", "grad"),
        "routing" => ("routing", "routing"),
        "gate" => ("gate", "gate"),
        "moe" => ("moe", "moe"),
        _ if name == "train.grad_norm" => ("train", "train_grad_norm"),
        _ => ("train", "train_loss"),
    };
    (group, case.json.rule(key))
}

/// Limits of the sum and of the sum of squares of a parameter after training.
fn checksum_limits(case: &Case, parameter: &str, want: &[f64]) -> [f64; 2] {
    let rule = case.json.rule("checksum");
    let lr = case
        .json
        .optimizer
        .as_ref()
        .map_or(0.0, |optimizer| optimizer.lr);
    let rows = case.batch.rows() as usize;
    let steps = case
        .expected
        .get("train.input_ids")
        .map_or(0, |ids| ids.values.len() / rows.max(1)) as f64;
    let n = case
        .weights
        .get(parameter)
        .map_or(1, |weights| weights.values.len()) as f64;
    let (q, r) = (want.get(1).copied().unwrap_or(0.0).max(0.0), rule.rounding);
    if case.json.noise_driven.iter().any(|name| name == parameter) {
        let u = 1.5 * lr * steps;
        [
            u * n + r * (n * q).sqrt(),
            2.0 * u * (n * q).sqrt() + n * u * u + 2.0 * r * q,
        ]
    } else {
        let u = rule.step_fraction * lr * steps;
        [
            3.0 * u * n.sqrt() + r * (n * q).sqrt(),
            6.0 * u * q.sqrt() + n * u * u + 2.0 * r * q,
        ]
    }
}
