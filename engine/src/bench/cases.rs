//! The ops of a plan, each with the kernel calls that compute it and what they need at least.

use std::collections::{BTreeMap, BTreeSet};

use super::cost::{Cost, call_cost, uses};
use crate::kernel::Field;
use crate::plan::{BufferRef, Pass, PlacedStep, Plan};

/// Kernel calls of one op, forward or backward, at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct OpCase {
    /// Name of the op; of the kernel for calls that belong to none, such as the optimiser's.
    pub op: &'static str,
    /// Forward or backward.
    pub pass: Pass,
    /// The size: the largest call's integer parameters.
    pub size: String,
    /// Number of the first call in the plan.
    pub first: usize,
    /// Number of the last call.
    pub last: usize,
    /// Ops of the plan that cost the same.
    pub count: usize,
    /// What one of them needs, if nothing that only its own calls see had to be written to memory.
    pub cost: Cost,
}

impl OpCase {
    /// Kernel calls of one op.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.last - self.first + 1
    }
}

/// All ops of a plan, those that cost the same once, most bytes and operations in all first.
///
/// The plan must have a buffer for every tensor ([`crate::tape::Tape::sharing`]): what only one op uses is recognised by
/// its buffer.
#[must_use]
pub fn cases(plan: &Plan) -> Vec<OpCase> {
    let private = private_buffers(plan);
    let mut found: BTreeMap<_, OpCase> = BTreeMap::new();
    for range in groups(plan) {
        let steps = &plan.steps[range.clone()];
        let cost = cost(steps, |buffer| {
            private
                .get(&buffer)
                .is_some_and(|&(first, last)| range.contains(&first) && range.contains(&last))
        });
        let (op, pass) = match steps[0].origin {
            Some(origin) => (origin.op, origin.pass),
            None => (steps[0].kernel.name, Pass::Forward),
        };
        let key = (op, pass, cost.bytes, cost.operations, steps.len());
        let case = OpCase {
            op,
            pass,
            size: size(steps),
            first: range.start,
            last: range.end - 1,
            count: 0,
            cost,
        };
        found.entry(key).or_insert(case).count += 1;
    }
    let mut all: Vec<OpCase> = found.into_values().collect();
    let weight = |case: &OpCase| case.count as u64 * (case.cost.bytes + case.cost.operations);
    all.sort_by_key(|case| std::cmp::Reverse(weight(case)));
    all
}

/// Ranges of calls that belong to one op, forward or backward; calls without an op are alone.
fn groups(plan: &Plan) -> Vec<std::ops::Range<usize>> {
    let mut all: Vec<std::ops::Range<usize>> = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        match all.last_mut() {
            Some(last) if step.origin.is_some() && plan.steps[last.start].origin == step.origin => {
                last.end = number + 1;
            }
            _ => all.push(number..number + 1),
        }
    }
    all
}

/// First and last use of each buffer that the plan owns and does not publish.
fn private_buffers(plan: &Plan) -> BTreeMap<BufferRef, (usize, usize)> {
    let published: BTreeSet<BufferRef> = plan.places.values().map(|place| place.buffer).collect();
    let mut lives = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        for place in &step.args {
            if matches!(place.buffer, BufferRef::Own(_)) && !published.contains(&place.buffer) {
                lives.entry(place.buffer).or_insert((number, number)).1 = number;
            }
        }
    }
    lives
}

/// What calls need together: each range read once unless one of them has written it, and written once unless nobody else
/// sees it.
fn cost(steps: &[PlacedStep], hidden: impl Fn(BufferRef) -> bool) -> Cost {
    let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
    let mut total = Cost::default();
    for step in steps {
        total.operations += call_cost(step).operations;
        for part in uses(step) {
            let range = (part.buffer, part.offset, part.len);
            if part.read && !written.contains(&range) && read.insert(range) {
                total.bytes += 4 * part.len as u64;
            }
            if part.written && written.insert(range) && !hidden(part.buffer) {
                total.bytes += 4 * part.len as u64;
            }
        }
    }
    total
}

/// `rows 768 dim 128`: the first integer parameters of the call that moves most.
fn size(steps: &[PlacedStep]) -> String {
    const SHOWN: usize = 5;
    let largest = steps.iter().max_by_key(|step| call_cost(step).bytes);
    let Some(step) = largest else {
        return String::new();
    };
    let fields = step.params.fields();
    let words = step.params.words();
    let numbers = fields.iter().zip(&words);
    let integers = numbers.take_while(|((_, kind), _)| *kind == Field::Int);
    let shown = integers
        .take(SHOWN)
        .filter(|((name, _), _)| !["stride", "slab", "chunk", "add"].contains(name));
    let words: Vec<String> = shown
        .map(|((name, _), word)| format!("{name} {word}"))
        .collect();
    words.join(" ")
}
