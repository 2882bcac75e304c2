//! Small whole models for tests: any mechanism, any parameter values, on any executor.

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::executor::{Data, Executor};
use braid_engine::models::config::ModelConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::nn::Batch;
use braid_engine::nn::residual::Routing;
use braid_engine::params::{Init, Parameters};
use braid_engine::plan::External;
use braid_engine::random::{below, stream};
use braid_engine::runtime::Runtime;
use rand_distr::{Distribution, StandardNormal};

use crate::oracle;

/// A model with values for all its parameters, and a batch of tokens.
#[derive(Clone, Debug)]
pub struct Net {
    /// Its configuration.
    pub config: ModelConfig,
    /// Names and places.
    pub parameters: Arc<Parameters>,
    /// The arena.
    pub values: Vec<f64>,
    /// Tokens `[rows]`.
    pub ids: Vec<u32>,
    /// Next tokens `[rows]`.
    pub labels: Vec<u32>,
    /// Batch.
    pub batch: Batch,
    /// Recompute activations.
    pub checkpoint: bool,
}

/// What a forward and backward pass gives, by name: `logits`, `loss`, `objective`, `routing.*`, `gates.*`, `moe.*`, `grad.*`.
pub type Outcome = BTreeMap<String, Vec<f64>>;

impl Net {
    /// A model of `layers` layers with this `residual` object (more keys of `config.json` may follow it) and random values for every parameter, far from the
    /// initial ones.
    ///
    /// # Panics
    /// If the configuration is refused.
    #[must_use]
    pub fn random(residual: &str, layers: u32, seed: u64) -> Self {
        let mut net = Self::initial(residual, layers, seed);
        let parameters = net.parameters.clone();
        for (number, spec) in parameters.specs().iter().enumerate() {
            let mut rng = stream(seed, &format!("random/{}", spec.name));
            let matrix = spec.shape.dims().len() == 2 && spec.shape.dims()[0] > 2;
            // Reads of equal streams that cancel leave nothing for the norm behind them: their sum stays near one.
            let spread =
                if spec.name.contains(".attn_hc.read") || spec.name.contains(".mlp_hc.read") {
                    0.1
                } else if matrix {
                    0.7 / f64::from(spec.shape.last()).sqrt()
                } else {
                    0.3
                };
            for (element, value) in net.values[parameters.range(number)].iter_mut().enumerate() {
                let start = match &spec.init {
                    Init::Constant(value) => *value,
                    Init::Values(values) => values[element],
                    Init::Identity if element % (spec.shape.last() as usize + 1) == 0 => 1.0,
                    _ => 0.0,
                };
                let normal: f64 = StandardNormal.sample(&mut rng);
                *value = f64::from((start + spread * normal) as f32);
            }
        }
        net
    }

    /// As [`Net::random`], with the specified initial values.
    ///
    /// # Panics
    /// If the configuration is refused.
    #[must_use]
    pub fn initial(residual: &str, layers: u32, seed: u64) -> Self {
        let text = format!(
            r#"{{"vocab_size": 23, "hidden_size": 12, "intermediate_size": 14, "num_hidden_layers": {layers},
                "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6, "initializer_range": 0.3,
                "residual": {residual}}}"#
        );
        let config = ModelConfig::from_json(&text).expect("a valid configuration");
        let parameters = Arc::new(decoder::parameters(&config).expect("an implemented mechanism"));
        let values = parameters
            .initial_values(seed)
            .into_iter()
            .map(f64::from)
            .collect();
        let batch = Batch {
            sequences: 2,
            context: 5,
        };
        let mut rng = stream(seed, "tokens");
        let mut tokens = || {
            (0..batch.rows())
                .map(|_| below(&mut rng, 23) as u32)
                .collect()
        };
        Self {
            config,
            parameters,
            values,
            ids: tokens(),
            labels: tokens(),
            batch,
            checkpoint: false,
        }
    }

    /// Change a parameter, element by element.
    ///
    /// # Panics
    /// If there is none of this name.
    pub fn set(&mut self, name: &str, value: impl Fn(usize, f64) -> f64) {
        let number = self
            .parameters
            .position(name)
            .unwrap_or_else(|| panic!("no parameter {name}"));
        for (element, number) in self.parameters.range(number).enumerate() {
            self.values[number] = value(element, self.values[number]);
        }
    }

    /// Change every parameter whose name ends so.
    pub fn set_all(&mut self, ending: &str, value: impl Fn(usize, f64) -> f64) {
        for spec in self.parameters.clone().specs() {
            if spec.name.ends_with(ending) {
                self.set(&spec.name, &value);
            }
        }
    }

    /// Values of a parameter.
    ///
    /// # Panics
    /// If there is none of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> &[f64] {
        &self.values[self
            .parameters
            .range(self.parameters.position(name).expect("a known parameter"))]
    }

    /// Take over all parameters that both models have.
    pub fn share(&mut self, other: &Self) {
        for (number, spec) in self.parameters.clone().specs().iter().enumerate() {
            if other.parameters.position(&spec.name).is_some() {
                let range = self.parameters.range(number);
                self.values[range].copy_from_slice(other.get(&spec.name));
            }
        }
    }

    /// Forward and backward pass in `f64`.
    #[must_use]
    pub fn run(&self) -> Outcome {
        self.run_on(oracle())
    }

    /// Forward and backward pass on an executor.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn run_on(&self, executor: Box<dyn Executor>) -> Outcome {
        let mut runtime = Runtime::new(executor, self.parameters.clone()).expect("fits");
        let how = plans::Training {
            batch: self.batch,
            accumulate: 1,
            checkpoint: self.checkpoint,
            watch: true,
        };
        let plan = plans::training(&self.config, &self.parameters, &how, &runtime.limits())
            .expect("records");
        let loaded = runtime.load_model(&plan).expect("loads");
        runtime
            .write_external(External::Values, Data::F64(&self.values))
            .expect("fits");
        runtime
            .write_batch(&loaded, &self.ids, &self.labels)
            .expect("fits");
        runtime.submit(true, &[&loaded]).expect("runs");
        let names: Vec<String> = plan
            .plan
            .places
            .keys()
            .filter(|name| !["ids", "labels"].contains(&name.as_str()))
            .cloned()
            .collect();
        let values = pollster::block_on(runtime.read(&loaded, &names)).expect("reads");
        let mut outcome: Outcome = names
            .into_iter()
            .zip(values.iter().map(|values| values.to_f64()))
            .collect();
        let grads = pollster::block_on(runtime.read_external(External::Grads))
            .expect("reads")
            .to_f64();
        let parts = ["loss", plans::BALANCE, plans::Z].map(|name| outcome.get(name));
        let objective = parts.into_iter().flatten().map(|part| part[0]).sum();
        outcome.insert("objective".to_owned(), vec![objective]);
        for (number, spec) in self.parameters.trained() {
            outcome.insert(
                format!("grad.{}", spec.name),
                grads[self.parameters.range(number)].to_vec(),
            );
        }
        outcome
    }

    /// What the model publishes about its reads.
    ///
    /// # Panics
    /// If the model cannot be recorded.
    #[must_use]
    pub fn routing(&self) -> Vec<Routing> {
        let limits = oracle().limits();
        let how = plans::Training {
            batch: self.batch,
            accumulate: 1,
            checkpoint: false,
            watch: true,
        };
        plans::training(&self.config, &self.parameters, &how, &limits)
            .expect("records")
            .routing
    }

    /// Number of sources that each published read has, by tensor name.
    ///
    /// # Panics
    /// If the model cannot be recorded.
    #[must_use]
    pub fn sources(&self) -> BTreeMap<String, usize> {
        self.routing()
            .iter()
            .map(|routing| (routing.tensor(), routing.sources.len()))
            .collect()
    }
}
