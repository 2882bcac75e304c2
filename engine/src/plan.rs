//! Plans: a list of kernel calls with every byte placed, executed unchanged once a step.
//!
//! Ops record [`Step`]s against symbolic `Storage`s. `Plan::build` finds each storage's first and last use and lets
//! storages whose lives do not meet share a buffer. A plan is a plain value: it can be printed, compared and checked
//! without any device.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::error::{Error, Result, bytes_for_people};
use crate::kernel::{Access, Element, Kernel, Params};

/// Number of a storage on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(pub(crate) usize);

/// Buffers that outlive a plan and are shared by several: the caller owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum External {
    /// All parameters.
    Values,
    /// The gradients of all parameters.
    Grads,
    /// First moments of the optimiser.
    FirstMoment,
    /// Second moments of the optimiser.
    SecondMoment,
    /// Numbers that change each step: learning rate, bias corrections (see `optim::adamw`).
    StepScalars,
    /// Loss, gradient norm and the non-finite flag of recent steps (see `optim::clip`).
    Status,
}

/// Where a storage lives.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// In a buffer shared with storages of other lifetimes.
    Transient,
    /// In a buffer of its own: inputs and watched tensors.
    Kept,
    /// Filled once when the plan is loaded, never written.
    Constant(Arc<Vec<f64>>),
    /// Part of a buffer that the caller owns.
    External(External),
    /// A part of another storage, from this element on.
    Within(StorageId, usize),
}

/// Memory as the tape sees it: a name, a length, no address.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub label: String,
    pub len: usize,
    pub element: Element,
    pub home: Home,
}

/// A range of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    pub(crate) storage: StorageId,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// Which part of an op recorded a kernel call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// The op itself.
    Forward,
    /// Its gradient.
    Backward,
}

/// Which op recorded a kernel call: measurements add up the calls of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the op.
    pub op: &'static str,
    /// Its number on the tape, in the order of recording.
    pub number: usize,
    /// Forward or backward.
    pub pass: Pass,
}

/// One kernel call, memory still symbolic.
#[derive(Clone, Debug)]
pub struct Step {
    /// The op that recorded it; `None` for calls without gradient, such as the optimiser's.
    pub origin: Option<Origin>,
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Its parameters.
    pub params: Arc<dyn Params>,
    /// One range for each of the kernel's bindings.
    pub args: Vec<Arg>,
    /// How many invocations have work.
    pub items: usize,
    /// The kernel that computes the same with larger tiles, and its invocations.
    pub large: Option<(&'static Kernel, usize)>,
    /// Where in the model this is, for messages: `layers.2.mlp / rms_norm`.
    pub label: String,
}

/// Which buffer a placed range is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BufferRef {
    /// Buffer of this plan.
    Own(usize),
    /// Buffer of the caller.
    External(External),
}

/// A placed range, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferRef,
    /// First element.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
}

/// A buffer that a plan needs.
#[derive(Clone, Debug)]
pub struct BufferSpec {
    /// The largest storage in it, for messages.
    pub label: String,
    /// Elements of four bytes on a GPU.
    pub len: usize,
    /// Element type.
    pub element: Element,
    /// Content from the start, for constants.
    pub content: Option<Arc<Vec<f64>>>,
}

/// A kernel call with all bytes placed.
#[derive(Clone, Debug)]
pub struct PlacedStep {
    /// The op that recorded it; `None` for calls without gradient, such as the optimiser's.
    pub origin: Option<Origin>,
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Its parameters.
    pub params: Arc<dyn Params>,
    /// One place for each binding.
    pub args: Vec<Place>,
    /// How many invocations have work.
    pub items: usize,
    /// Where in the model this is.
    pub label: String,
    /// What each argument is called, for messages about its content.
    pub names: Vec<String>,
}

/// What a device can hold. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Largest range that one binding can cover.
    pub binding: u64,
    /// Largest buffer.
    pub buffer: u64,
    /// All memory that may be used, if known.
    pub total: Option<u64>,
    /// Bytes of a float: 4, or 8 for the CPU executor in `f64`.
    pub float: u64,
    /// Whether kernels with large tiles are the faster ones: the GPU is a processor.
    pub large_tiles: bool,
}

/// Bytes that a plan needs, with and without sharing.
#[derive(Clone, Debug, Default)]
pub struct MemoryReport {
    /// Bytes of all buffers of the plan.
    pub planned: u64,
    /// Bytes if every storage had a buffer of its own.
    pub unshared: u64,
    /// The most bytes that are in use at once: no placement needs less.
    pub alive: u64,
    /// Largest storages: name and bytes.
    pub largest: Vec<(String, u64)>,
}

/// Everything a training step (or an evaluation) does, ready to be executed again and again.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Kernel calls in order.
    pub steps: Vec<PlacedStep>,
    /// Buffers to allocate.
    pub buffers: Vec<BufferSpec>,
    /// Inputs and watched tensors by name.
    pub places: BTreeMap<String, Place>,
    /// Memory figures.
    pub memory: MemoryReport,
}

/// Find the storage that owns the bytes, and the offset in it.
fn root(storages: &[Storage], mut id: StorageId, mut offset: usize) -> (StorageId, usize) {
    while let Home::Within(parent, start) = storages[id.0].home {
        (id, offset) = (parent, offset + start);
    }
    (id, offset)
}

impl Plan {
    /// Place every storage; without `sharing`, each in a buffer of its own.
    ///
    /// # Errors
    /// If a step is malformed, aliases itself, or something does not fit `limits`.
    pub(crate) fn build(
        storages: &[Storage],
        steps: Vec<Step>,
        named: &BTreeMap<String, Arg>,
        sharing: bool,
        limits: &Limits,
    ) -> Result<Self> {
        let mut lives: HashMap<StorageId, (usize, usize)> = HashMap::new();
        for (time, step) in steps.iter().enumerate() {
            check(storages, step, limits)?;
            for arg in &step.args {
                let (owner, _) = root(storages, arg.storage, arg.offset);
                lives.entry(owner).or_insert((time, time)).1 = time;
            }
        }
        // Inputs are filled before the first step, watched tensors are read after the last.
        for arg in named.values() {
            let (owner, _) = root(storages, arg.storage, arg.offset);
            lives.insert(owner, (0, steps.len()));
        }

        if !sharing {
            lives.values_mut().for_each(|life| *life = (0, steps.len()));
        }

        let (buffers, homes, memory) = place(storages, &lives, limits)?;
        let locate = |arg: &Arg| {
            let (owner, offset) = root(storages, arg.storage, arg.offset);
            let buffer = match storages[owner.0].home {
                Home::External(external) => BufferRef::External(external),
                _ => BufferRef::Own(homes[&owner]),
            };
            Place {
                buffer,
                offset,
                len: arg.len,
            }
        };
        let places = named
            .iter()
            .map(|(name, arg)| (name.clone(), locate(arg)))
            .collect();
        let steps = steps
            .into_iter()
            .map(|step| {
                let large = step.large.filter(|_| limits.large_tiles);
                let (kernel, items) = large.unwrap_or((step.kernel, step.items));
                (step, kernel, items)
            })
            .map(|(step, kernel, items)| PlacedStep {
                args: step.args.iter().map(locate).collect(),
                names: step
                    .args
                    .iter()
                    .map(|arg| storages[arg.storage.0].label.clone())
                    .collect(),
                origin: step.origin,
                kernel,
                params: step.params,
                items,
                label: step.label,
            })
            .collect();
        Ok(Self {
            steps,
            buffers,
            places,
            memory,
        })
    }
}

/// The bindings must be as many, of the type and as disjoint as the kernel and the browser demand.
fn check(storages: &[Storage], step: &Step, limits: &Limits) -> Result<()> {
    let kernel = step.kernel;
    let broken = |message: String| Error::Plan {
        kernel: kernel.id(),
        message,
    };
    if step.args.len() != kernel.bindings.len() {
        return Err(broken(format!(
            "{} arguments for {} bindings",
            step.args.len(),
            kernel.bindings.len()
        )));
    }
    if step.params.fields() != kernel.params {
        return Err(broken(format!(
            "params are {:?}, the shader declares {:?}",
            step.params.fields(),
            kernel.params
        )));
    }
    for (arg, binding) in step.args.iter().zip(kernel.bindings) {
        let storage = &storages[arg.storage.0];
        if storage.element != binding.element {
            return Err(broken(format!(
                "`{}` is {:?}, `{}` is {:?}",
                binding.name, binding.element, storage.label, storage.element
            )));
        }
        if arg.len == 0 || arg.offset + arg.len > storage.len {
            return Err(broken(format!(
                "`{}` is outside of `{}`",
                binding.name, storage.label
            )));
        }
        let (owner, offset) = root(storages, arg.storage, arg.offset);
        let bytes = size(arg.len, storage.element, limits);
        if bytes > limits.binding && matches!(storages[owner.0].home, Home::External(_)) {
            return Err(Error::Memory {
                tensor: format!("`{}`", storage.label),
                need: bytes_for_people(bytes),
                limit: format!(
                    "one binding of this device holds {}",
                    bytes_for_people(limits.binding)
                ),
                advice: if storage.label.contains(".experts.") {
                    "the experts of a layer share one: lower feed_forward.experts or feed_forward.intermediate_size, raise the limits (--raise-limits), or set feed_forward.compute = \"dense\""
                } else {
                    "lower model.width or the vocabulary, or raise the limits (--raise-limits)"
                }
                .into(),
            });
        }
        if offset % crate::params::ALIGNMENT != 0 {
            return Err(broken(format!(
                "`{}` starts at element {offset} of its buffer, not on 256 bytes",
                binding.name
            )));
        }
        if binding.access == Access::Write && matches!(storages[owner.0].home, Home::Constant(_)) {
            return Err(broken(format!(
                "`{}` would write to the constant `{}`",
                binding.name, storage.label
            )));
        }
    }
    // Browsers reject two overlapping writable ranges (wgpu on native does not), and both reject a buffer that is bound
    // readable and writable at once, even in disjoint ranges.
    let placed: Vec<_> = step
        .args
        .iter()
        .map(|arg| (root(storages, arg.storage, arg.offset), arg.len))
        .collect();
    for later in 0..placed.len() {
        for earlier in 0..later {
            let (((a, a_start), a_len), ((b, b_start), b_len)) = (placed[earlier], placed[later]);
            let same = match (&storages[a.0].home, &storages[b.0].home) {
                (Home::External(one), Home::External(two)) => one == two,
                _ => a == b,
            };
            let (one, two) = (&kernel.bindings[earlier], &kernel.bindings[later]);
            let overlap = a_start < b_start + b_len && b_start < a_start + a_len;
            let mixed = one.access != two.access;
            let both_written = one.access == Access::Write && two.access == Access::Write;
            if same && (mixed || (both_written && overlap)) {
                return Err(Error::Aliasing {
                    kernel: kernel.id(),
                    a: one.name,
                    b: two.name,
                });
            }
        }
    }
    Ok(())
}

/// Which setting makes a tensor smaller.
const ADVICE: &str =
    "lower train.batch, model.context or model.width, or set train.checkpoint = true";

type Placement = (Vec<BufferSpec>, HashMap<StorageId, usize>, MemoryReport);

/// Give every storage a buffer; storages whose lives do not meet share.
///
/// The largest come first, and each goes to the smallest buffer that is free for its whole life: large buffers are made
/// for large tensors only, and the many small ones fill the gaps ("greedy by size", Pisarchyk and Lee, arXiv 2001.03288).
fn place(
    storages: &[Storage],
    lives: &HashMap<StorageId, (usize, usize)>,
    limits: &Limits,
) -> Result<Placement> {
    let mut order: Vec<_> = lives.iter().map(|(&id, &life)| (life, id)).collect();
    order.sort_by_key(|&(life, id)| (std::cmp::Reverse(storages[id.0].len), life, id));
    let mut buffers: Vec<BufferSpec> = Vec::new();
    let mut homes = HashMap::new();
    // Buffers that may be shared, and when they are taken.
    let mut shared: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
    let mut memory = MemoryReport::default();
    // What begins and ends to be in use at a step.
    let mut changes: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (life, id) in order {
        let storage = &storages[id.0];
        if let Home::External(_) = storage.home {
            continue; // the caller allocated it
        }
        let bytes = size(storage.len, storage.element, limits);
        if bytes > limits.binding.min(limits.buffer) {
            return Err(Error::Memory {
                tensor: format!("`{}`", storage.label),
                need: bytes_for_people(bytes),
                limit: format!(
                    "one binding of this device holds {}",
                    bytes_for_people(limits.binding.min(limits.buffer))
                ),
                advice: ADVICE.into(),
            });
        }
        memory.unshared += bytes;
        let (first, last) = match storage.home {
            Home::Transient => life,
            _ => (0, usize::MAX - 1),
        };
        changes.entry(first).or_default().0 += bytes;
        changes.entry(last + 1).or_default().1 += bytes;
        memory.largest.push((storage.label.clone(), bytes));
        if let Home::Transient = storage.home {
            let apart = |&(from, until): &(usize, usize)| until < life.0 || life.1 < from;
            let fits = shared.iter_mut().rev().find(|(buffer, taken)| {
                buffers[*buffer].element == storage.element && taken.iter().all(apart)
            });
            if let Some((buffer, taken)) = fits {
                homes.insert(id, *buffer);
                taken.push(life);
                continue;
            }
            shared.push((buffers.len(), vec![life]));
        }
        homes.insert(id, buffers.len());
        buffers.push(BufferSpec {
            label: storage.label.clone(),
            len: storage.len,
            element: storage.element,
            content: match &storage.home {
                Home::Constant(content) => Some(content.clone()),
                _ => None,
            },
        });
    }
    let mut alive = 0;
    for (begins, ends) in changes.into_values() {
        alive = alive + begins - ends;
        memory.alive = memory.alive.max(alive);
    }
    memory.planned = buffers
        .iter()
        .map(|buffer| size(buffer.len, buffer.element, limits))
        .sum();
    memory
        .largest
        .sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    if let (Some(total), Some((tensor, bytes))) = (limits.total, memory.largest.first())
        && memory.planned > total
    {
        return Err(Error::Memory {
            tensor: format!(
                "the plan (largest tensor: `{tensor}`, {})",
                bytes_for_people(*bytes)
            ),
            need: bytes_for_people(memory.planned),
            limit: format!("{} of memory are available", bytes_for_people(total)),
            advice: ADVICE.into(),
        });
    }
    memory.largest.truncate(8);
    Ok((buffers, homes, memory))
}

fn size(len: usize, element: Element, limits: &Limits) -> u64 {
    len as u64
        * if element == Element::F32 {
            limits.float
        } else {
            4
        }
}
