//! Looking at a configuration that is being edited.

use braid_engine::Result;
use braid_engine::data::Dataset;
use braid_engine::device::Device;
use braid_engine::error::Error;
use braid_engine::optim::Schedule;
use braid_engine::trainer::{Preview, preview};

use crate::config::RunConfig;
use crate::form::values;
use crate::protocol::{About, Checked, Derived, Draft, FieldError, Part, Site, SiteKind, Stream};
use crate::report::parts;
use crate::texts::dataset;

/// Points of the schedule's preview.
const SCHEDULE_POINTS: u64 = 128;

/// Remembers the data of the last look: a text is read and cut into tokens once, not with every keystroke.
#[derive(Debug, Default)]
pub(super) struct Checker {
    data: Option<(String, Dataset)>,
}

impl Checker {
    /// Values as far as they can be read, what is wrong, and what follows.
    pub(super) fn check(
        &mut self,
        number: u64,
        draft: &Draft,
        device: Result<&Device, &Error>,
    ) -> Checked {
        let mut checked = Checked {
            number,
            values: Vec::new(),
            error: None,
            derived: None,
        };
        let wrong = |error: &Error| {
            let field = match error {
                Error::Config { field, .. } => Some(field.clone()),
                _ => None,
            };
            let message = error.to_string();
            Some(FieldError { field, message })
        };
        let config = match RunConfig::parse(&draft.toml, &[]) {
            Ok(config) => config,
            Err(error) => {
                checked.error = wrong(&error);
                return checked;
            }
        };
        checked.values = values(&config.to_toml());
        let derived = device
            .map_err(wrong)
            .and_then(|device| self.derive(&config, draft, device).map_err(|e| wrong(&e)));
        match derived {
            Ok(derived) => checked.derived = Some(derived),
            Err(error) => checked.error = error,
        }
        checked
    }

    fn derive(&mut self, config: &RunConfig, draft: &Draft, device: &Device) -> Result<Derived> {
        let key = format!(
            "{:?} {} {:?}",
            config.data,
            config.model.context,
            draft.text.as_ref().map(|(name, bytes)| (name, bytes.len()))
        );
        if self.data.as_ref().is_none_or(|(known, _)| *known != key) {
            self.data = None;
            let text = draft.text.as_ref().map(|(_, bytes)| bytes.as_slice());
            self.data = Some((key, dataset(config, text, None, &mut |_, _| {})?));
        }
        let Some((_, data)) = &self.data else {
            return Ok(Derived::default());
        };
        let model = config.model_config(data.vocab_size())?;
        let training = config.train_config();
        let limits = device.executor().limits();
        let Preview {
            memory,
            parameters,
            routing,
            ..
        } = preview(&model, &training, &limits)?;
        let part = |part: crate::report::Part| Part {
            name: part.name.into(),
            numbers: part.numbers as u64,
        };
        let about = config.residual.about();
        Ok(Derived {
            parameters: parts(&parameters).into_iter().map(part).collect(),
            memory: vec![
                ("parameters, gradients, moments".into(), memory.parameters),
                ("forward and backward pass".into(), memory.training.planned),
                ("evaluation".into(), memory.evaluation.planned),
            ],
            memory_limit: limits.total,
            largest: memory.training.largest.first().cloned(),
            tokens_per_step: u64::from(config.batch().rows()) * u64::from(config.train.accumulate),
            least_tokens: config.data.file.as_ref().map(|_| {
                // Training and validation part each need one window and the token after it.
                let window = f64::from(config.model.context) + 1.0;
                let share = config.data.val_fraction.min(1.0 - config.data.val_fraction);
                (window / share).ceil() as u64
            }),
            kernel_calls: memory.steps as u64,
            data: data.summary(),
            vocab: data.vocab_size(),
            schedule: schedule(&training.schedule),
            shape: shape(model.sublayers(), &routing),
            about: About {
                summary: about.summary.into(),
                paper: about.paper.into(),
                equations: about.equations.into(),
                choices: about.choices.iter().map(|&choice| choice.into()).collect(),
            },
        })
    }
}

fn schedule(schedule: &Schedule) -> Vec<(f64, f64)> {
    let steps = schedule.steps.max(1);
    let points = SCHEDULE_POINTS.min(steps);
    (0..points)
        .map(|point| {
            let step = point * (steps - 1) / (points - 1).max(1);
            (step as f64 + 1.0, schedule.rate(step))
        })
        .collect()
}

/// Which site can read which source; all weights the same.
fn shape(sublayers: u32, routing: &[braid_engine::nn::residual::Routing]) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for read in routing {
        let n = read.sources.len();
        let stream = Stream {
            sources: read.sources.clone(),
            weight: vec![1.0 / n.max(1) as f64; n],
            max: None,
            entropy: None,
            floor: None,
        };
        match sites.iter_mut().find(|site| site.site == read.site) {
            Some(site) => site.streams.push(stream),
            None => sites.push(Site {
                site: read.site,
                kind: SiteKind::of(read.site, sublayers),
                streams: vec![stream],
                alpha: None,
                rho: None,
                beta: None,
                read: None,
                write: None,
                mix: None,
            }),
        }
    }
    sites.sort_by_key(|site| site.site);
    sites
}
