//! What `dense_former` and `transparent` share: ordinary residual adds within a layer, and a history of layer outputs that
//! is mixed, if at all, between layers.
//!
//! ```text
//! X_0 = e;  for i = 1 .. N:  h = Y_(i-1);  h <- h + attention(h);  h <- h + feed_forward(h);  X_i = h
//! ```
//!
//! `Y_i` is `X_i`, or a mix of `X_0 .. X_i` with weights that all tokens share.

use super::path::{Routing, Weighting};
use super::states::States;
use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::ops::add::add;
use crate::ops::edit_weights::edited;
use crate::ops::static_mix::static_mix;
use crate::tape::{History, Slot, Tape, Tensor};

/// The stream and the layer outputs.
#[derive(Debug)]
pub(super) struct WholeLayers {
    history: History,
    outputs: Vec<Slot>,
    stream: Option<Tensor>,
    pub(super) routing: Vec<Routing>,
    pub(super) states: States,
}

fn layer_name(layer: usize) -> String {
    match layer {
        0 => "embed".to_owned(),
        layer => format!("layer {layer}"),
    }
}

impl WholeLayers {
    pub(super) fn new(tape: &mut Tape, config: &ModelConfig, rows: u32) -> Self {
        Self {
            history: tape.history("layer outputs", rows, config.hidden_size),
            outputs: Vec::new(),
            stream: None,
            routing: Vec::new(),
            states: States::default(),
        }
    }

    pub(super) fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.outputs.push(tape.push(self.history, e)?);
        self.stream = Some(e);
        Ok(())
    }

    /// Publish the layer outputs that `site` can read.
    pub(super) fn visit(&mut self, tape: &mut Tape, site: u32) -> Result<()> {
        self.states
            .history(tape, site, &[&self.outputs], layer_name)
    }

    /// What the next sublayer reads.
    pub(super) fn stream(&self) -> Result<Tensor> {
        self.stream.ok_or_else(|| Error::Op {
            op: "layer outputs",
            message: "expand comes first".into(),
        })
    }

    /// Add a sublayer's output. The sum after a feed-forward is a layer output and stays.
    pub(super) fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        let sum = add(tape, self.stream()?, y)?;
        if site % 2 == 1 {
            self.outputs.push(tape.push(self.history, sum)?);
        }
        self.stream = Some(sum);
        Ok(())
    }

    /// Mix the layer outputs of these numbers, in this order, for the sublayer at `site` to read; publishes the weights.
    pub(super) fn mix(
        &mut self,
        tape: &mut Tape,
        site: u32,
        layers: &[usize],
        weights: Tensor,
        weighting: Weighting,
    ) -> Result<()> {
        let weights = edited(tape, weights)?;
        let slots: Vec<Slot> = layers.iter().map(|&layer| self.outputs[layer]).collect();
        self.stream = Some(static_mix(tape, self.history, &slots, weights)?);
        let names = layers.iter().map(|&layer| layer_name(layer));
        let routing = Routing::shared(site, names.collect(), weighting);
        tape.watch(|| routing.tensor(), weights);
        self.routing.push(routing);
        Ok(())
    }
}
