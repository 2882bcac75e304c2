//! Parameters: names, shapes, initial values, and where each lives in the one flat arena.
//!
//! Values, gradients and both Adam moments are each one buffer with the same layout, so that the optimiser and the gradient
//! norm are a dispatch or two. A mechanism declares its parameters as [`ParamSpec`]s; names are those of the checkpoint.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Error, Result, bytes_for_people};
use crate::random;
use crate::shape::Shape;

/// Every parameter starts on this many elements (256 bytes of `f32`), the offset alignment that WebGPU promises.
pub const ALIGNMENT: usize = 64;

/// Initial values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All the same value.
    Constant(f64),
    /// Given values, row-major.
    Values(Vec<f64>),
    /// The identity matrix.
    Identity,
    /// Independent normal numbers with this standard deviation.
    Normal(f64),
    /// Independent uniform numbers between minus and plus this.
    Uniform(f64),
    /// One of these lists of values, each as likely as the others.
    OneOf(Vec<Vec<f64>>),
}

/// What a parameter belongs to: the optimiser treats each group alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Belongs to the residual mechanism: its learning rate is multiplied by `train.lr_mult.routing`.
    pub routing: bool,
    /// Is decayed by AdamW (group D of the checkpoint format).
    pub decay: bool,
    /// Is not the optimiser's: no gradient, no moments, no part in the gradient norm. Its owner changes it by a rule of its
    /// own, and may use its range of the gradients, which is cleared once a step, for sums over the step's passes.
    pub untrained: bool,
}

/// Declaration of one parameter.
#[derive(Clone, Debug)]
pub struct ParamSpec {
    /// Name in the checkpoint, such as `model.layers.0.attn_dar.query`.
    pub name: String,
    /// Shape in the checkpoint; matrices are `[out, in]`.
    pub shape: Shape,
    /// Initial values.
    pub init: Init,
    /// Optimiser group.
    pub group: Group,
}

impl ParamSpec {
    /// A parameter of the base model.
    pub fn base(name: impl Into<String>, shape: impl Into<Shape>, init: Init, decay: bool) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
            init,
            group: Group {
                decay,
                ..Group::default()
            },
        }
    }

    /// A parameter that is saved with the others, but not the optimiser's.
    pub fn untrained(name: impl Into<String>, shape: impl Into<Shape>, init: Init) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
            init,
            group: Group {
                untrained: true,
                ..Group::default()
            },
        }
    }

    /// The same parameter, decayed.
    #[must_use]
    pub fn decayed(mut self) -> Self {
        self.group.decay = true;
        self
    }

    /// A parameter of the residual mechanism, not decayed.
    pub fn routing(name: impl Into<String>, shape: impl Into<Shape>, init: Init) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
            init,
            group: Group {
                routing: true,
                ..Group::default()
            },
        }
    }
}

/// In WebAssembly, whose addresses have 32 bits, places in a larger arena would wrap around.
fn refuse_unaddressable(specs: &[ParamSpec]) -> Result<()> {
    const MOST: u64 = isize::MAX as u64 / 4;
    let numbers = |spec: &ParamSpec| {
        let dims = spec.shape.dims().iter().map(|&dim| u64::from(dim));
        dims.fold(1, u64::saturating_mul)
    };
    let total = specs.iter().map(numbers).fold(0, u64::saturating_add);
    if total <= MOST {
        return Ok(());
    }
    Err(Error::Memory {
        tensor: "the buffer of all parameters".into(),
        need: bytes_for_people(total.saturating_mul(4)),
        limit: format!("addresses here reach {}", bytes_for_people(MOST * 4)),
        advice: "lower model.width, model.layers or the vocabulary".into(),
    })
}

/// All parameters of a model and their places in the arena.
#[derive(Clone, Debug)]
pub struct Parameters {
    specs: Vec<ParamSpec>,
    offsets: Vec<usize>,
    index: HashMap<String, usize>,
    groups: Vec<(Group, Range<usize>)>,
    trained_len: usize,
    len: usize,
}

impl Parameters {
    /// Lay out the arena: parameters of one group lie together, in the order of declaration; those that are not trained at
    /// the end.
    ///
    /// # Errors
    /// If two parameters have the same name.
    pub fn layout(specs: Vec<ParamSpec>) -> Result<Self> {
        let mut index = HashMap::new();
        for (number, spec) in specs.iter().enumerate() {
            if index.insert(spec.name.clone(), number).is_some() {
                return Err(Error::Op {
                    op: "parameters",
                    message: format!("`{}` is declared twice", spec.name),
                });
            }
        }
        refuse_unaddressable(&specs)?;
        let mut order: Vec<usize> = (0..specs.len()).collect();
        order.sort_by_key(|&number| (specs[number].group.untrained, specs[number].group));
        let (mut offsets, mut groups, mut len) =
            (vec![0; specs.len()], Vec::<(Group, Range<usize>)>::new(), 0);
        for number in order {
            let group = specs[number].group;
            let end = len + specs[number].shape.len().next_multiple_of(ALIGNMENT);
            match groups.last_mut() {
                Some((last, range)) if *last == group => range.end = end,
                _ => groups.push((group, len..end)),
            }
            offsets[number] = len;
            len = end;
        }
        let mut trained = groups.iter().filter(|(group, _)| !group.untrained);
        let trained_len = trained.next_back().map_or(0, |(_, range)| range.end);
        Ok(Self {
            specs,
            offsets,
            index,
            groups,
            trained_len,
            len,
        })
    }

    /// Declarations in order.
    #[must_use]
    pub fn specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// Length of the arena in elements, padding included.
    #[must_use]
    pub fn arena_len(&self) -> usize {
        self.len
    }

    /// Length of the part of the arena that the optimiser changes: it begins at 0.
    #[must_use]
    pub fn trained_len(&self) -> usize {
        self.trained_len
    }

    /// Number of trained numbers, padding not included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.trained().map(|(_, spec)| spec.shape.len()).sum()
    }

    /// The parameters that the optimiser changes, with their numbers.
    pub fn trained(&self) -> impl Iterator<Item = (usize, &ParamSpec)> {
        let all = self.specs.iter().enumerate();
        all.filter(|(_, spec)| !spec.group.untrained)
    }

    /// Number of trained numbers of the residual mechanism.
    #[must_use]
    pub fn routing_count(&self) -> usize {
        self.specs
            .iter()
            .filter(|spec| spec.group.routing)
            .map(|spec| spec.shape.len())
            .sum()
    }

    /// The groups and their ranges of the arena.
    #[must_use]
    pub fn groups(&self) -> &[(Group, Range<usize>)] {
        &self.groups
    }

    /// Number of a parameter.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Range of a parameter in the arena.
    #[must_use]
    pub fn range(&self, number: usize) -> Range<usize> {
        self.offsets[number]..self.offsets[number] + self.specs[number].shape.len()
    }

    /// Name of the parameter that holds element `offset` of the arena.
    #[must_use]
    pub fn name_at(&self, offset: usize) -> Option<&str> {
        (0..self.specs.len())
            .find(|&number| self.range(number).contains(&offset))
            .map(|number| self.specs[number].name.as_str())
    }

    /// The arena filled with initial values. Each parameter has a random stream of its own that depends on the seed and its
    /// name only: with one seed, models that differ in mechanism share their common weights.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
    pub fn initial_values(&self, seed: u64) -> Vec<f32> {
        let mut arena = vec![0.0; self.len];
        for (number, spec) in self.specs.iter().enumerate() {
            let values = &mut arena[self.range(number)];
            match &spec.init {
                Init::Constant(value) => values.fill(*value as f32),
                Init::Values(given) => values
                    .iter_mut()
                    .zip(given)
                    .for_each(|(to, from)| *to = *from as f32),
                Init::Identity => values
                    .iter_mut()
                    .step_by(spec.shape.last() as usize + 1)
                    .for_each(|v| *v = 1.0),
                Init::Normal(deviation) => {
                    random::fill_normal(values, *deviation, seed, &spec.name)
                }
                Init::Uniform(bound) => {
                    let mut rng = random::stream(seed, &spec.name);
                    for value in values {
                        *value = ((2.0 * random::uniform(&mut rng) - 1.0) * bound) as f32;
                    }
                }
                Init::OneOf(lists) => {
                    let mut rng = random::stream(seed, &spec.name);
                    let chosen = lists.get(random::below(&mut rng, lists.len().max(1)));
                    for (to, from) in values.iter_mut().zip(chosen.into_iter().flatten()) {
                        *to = *from as f32;
                    }
                }
            }
        }
        arena
    }
}
