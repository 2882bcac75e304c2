//! Bytes and float operations of kernel calls, counted from their arguments and parameters.
//!
//! *Bytes* are those that have to move between memory and the processor if it could keep everything it has seen: each range
//! read once, each written once, one that is added to both. Kernels that bind a whole history or table count the parts that
//! they use. *Operations* are counted for matrix products and attention, whose number of them can be the limit.

use crate::kernel::{Access, Field, Params};
use crate::plan::{BufferRef, PlacedStep};

/// What a computation needs at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read and written.
    pub bytes: u64,
    /// Float operations of products; a multiplication and an addition are two.
    pub operations: u64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            operations: self.operations + other.operations,
        }
    }
}

/// A range that a kernel call uses, in elements of four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) buffer: BufferRef,
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) read: bool,
    pub(crate) written: bool,
}

/// What a kernel call by itself needs.
#[must_use]
pub fn call_cost(step: &PlacedStep) -> Cost {
    let elements = |part: Use| part.len * (usize::from(part.read) + usize::from(part.written));
    Cost {
        bytes: uses(step).into_iter().map(elements).sum::<usize>() as u64 * 4,
        operations: operations(step),
    }
}

/// The parameters of a kernel call by name.
struct Numbers {
    fields: Vec<(&'static str, Field)>,
    words: Vec<u32>,
}

impl Numbers {
    fn of(params: &dyn Params) -> Self {
        Self {
            fields: params.fields(),
            words: params.words(),
        }
    }

    /// The words of a field; empty if there is no such field.
    fn list(&self, name: &str) -> &[u32] {
        let mut at = 0_usize;
        for &(field, kind) in &self.fields {
            let len = match kind {
                Field::Int | Field::Float => 1,
                Field::Ints(len) => {
                    at = at.next_multiple_of(4);
                    len
                }
            };
            if field == name {
                return self.words.get(at..at + len).unwrap_or_default();
            }
            at += len;
        }
        &[]
    }

    /// An integer; 0 if there is no such field.
    fn get(&self, name: &str) -> usize {
        self.list(name).first().map_or(0, |&word| word as usize)
    }

    /// The values of `add`, `add_<output>`, .. in order.
    fn adds(&self) -> Vec<bool> {
        let names = self.fields.iter().map(|(name, _)| *name);
        names
            .filter(|name| *name == "add" || name.starts_with("add_"))
            .map(|name| self.get(name) != 0)
            .collect()
    }
}

/// The family of a kernel: what its files for other shapes are called too.
fn family(step: &PlacedStep) -> &'static str {
    let name = step.kernel.name;
    let suffixes = ["_vec4", "_wide", "_16", "_32", "_64", "_128"];
    suffixes
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name)
}

/// The ranges that a kernel call uses.
pub(crate) fn uses(step: &PlacedStep) -> Vec<Use> {
    let numbers = Numbers::of(&*step.params);
    let adds = numbers.adds();
    let mut outputs = 0;
    let mut found = Vec::new();
    for (number, (place, binding)) in step.args.iter().zip(step.kernel.bindings).enumerate() {
        let part = |offset: usize, len: usize, read: bool, written: bool| Use {
            buffer: place.buffer,
            offset: place.offset + offset,
            len,
            read,
            written,
        };
        if let Some(parts) = parts(step, &numbers, number) {
            found.extend(parts.into_iter().map(|(offset, len, read, written)| {
                part(offset, len.min(place.len), read, written)
            }));
        } else if binding.access == Access::Read {
            found.push(part(0, place.len, true, false));
        } else {
            let add = adds.get(outputs).or(adds.last()).copied();
            outputs += 1;
            found.push(part(0, place.len, add.unwrap_or(false), true));
        }
    }
    found.sort_by_key(|part| (part.buffer, part.offset, part.len));
    // The same range twice: keys that are values, one stream for both.
    found.dedup_by(|later, kept| {
        let same = (later.buffer, later.offset, later.len) == (kept.buffer, kept.offset, kept.len);
        if same {
            kept.read |= later.read;
            kept.written |= later.written;
        }
        same
    });
    found
}

/// Offset and length of a part of an argument, whether it is read, and whether it is written.
type Part = (usize, usize, bool, bool);

/// The parts of argument `number` that are used, for kernels that bind more than they use, or read what they write.
fn parts(step: &PlacedStep, numbers: &Numbers, number: usize) -> Option<Vec<Part>> {
    /// What a kernel may do with a gradient (`SKIP` and `ADD` of `shaders/shared/depth_attention.wgsl`).
    const SKIP: u32 = 0;
    const ADD: u32 = 2;
    let get = |name| numbers.get(name);
    let len = get("rows") * get("dim");
    let slots = |names: &[&str]| -> Vec<Part> {
        let of = |name: &&str| numbers.list(name).iter().take(get("count"));
        let all = names.iter().flat_map(of);
        all.map(|&slot| (slot as usize * get("stride"), len, true, false))
            .collect()
    };
    let updates = |slots: &str, update: &str, len: usize| -> Vec<Part> {
        let pairs = numbers.list(slots).iter().zip(numbers.list(update));
        let used = pairs
            .take(get("count"))
            .filter(|&(_, &update)| update != SKIP);
        used.map(|(&slot, &update)| (slot as usize * get("stride"), len, update == ADD, true))
            .collect()
    };
    Some(match (family(step), step.kernel.entry, number) {
        ("depth_attention", "scores" | "backward_query", 0) => slots(&["key_slots"]),
        ("depth_attention", "forward" | "backward_scores", 0) => slots(&["value_slots"]),
        ("depth_attention", "backward", 0) => slots(&["key_slots"]),
        ("depth_attention", "backward", 6) => {
            // A key that is its own value is written with it, as `value_update` says.
            let mut all = updates("key_slots", "key_update", len);
            let values = updates("value_slots", "value_update", len);
            all.retain(|key| values.iter().all(|value| value.0 != key.0));
            all.extend(values);
            all
        }
        // These change what an earlier call has written.
        ("depth_attention", "backward_softmax" | "backward_sigmoid" | "backward_log_sum", _)
            if step.kernel.bindings[number].access == Access::Write =>
        {
            vec![(0, step.args[number].len, true, true)]
        }
        ("depth_merge", "forward" | "backward_share", _)
            if step.kernel.bindings[number].name == "history" =>
        {
            vec![(get("partial"), len, true, false)]
        }
        ("dual_write", "forward", 2) => {
            let old = get("has_old") != 0;
            let mut all = vec![
                (get("new0"), len, false, true),
                (get("new1"), len, false, true),
            ];
            if old {
                all.extend([
                    (get("old0"), len, true, false),
                    (get("old1"), len, true, false),
                ]);
            }
            all
        }
        ("dual_write", "backward_gates", 0) if get("has_old") == 0 => Vec::new(),
        ("dual_write", "backward_gates", 0) => {
            vec![
                (get("old0"), len, true, false),
                (get("old1"), len, true, false),
            ]
        }
        ("dual_write", "backward_gates", 2) | ("dual_write", "backward", 1) => {
            let mut all = Vec::new();
            for (new, has) in [("new0", "has_grad0"), ("new1", "has_grad1")] {
                if get(has) != 0 {
                    all.push((get(new), len, true, false));
                }
            }
            if step.kernel.entry == "backward" {
                for (old, put) in [("old0", "put_old0"), ("old1", "put_old1")] {
                    // Store 0, add 1, skip 2.
                    if get(put) != 2 {
                        all.push((get(old), len, get(put) == 1, true));
                    }
                }
            }
            all
        }
        ("slot_add", "forward", 1) | ("slot_add", "backward", 0) => {
            let at = |slot| get(slot) * get("stride");
            let (from, to) = (at("slot_in"), at("slot_out"));
            if number == 1 {
                vec![
                    (from, get("len"), true, false),
                    (to, get("len"), false, true),
                ]
            } else {
                let add = get("old_add") != 0;
                vec![(to, get("len"), true, false), (from, get("len"), add, true)]
            }
        }
        ("static_mix", "forward" | "backward_weights", 0) => {
            let used = numbers.list("slots").iter().take(get("count"));
            used.map(|&slot| (slot as usize * get("stride"), get("len"), true, false))
                .collect()
        }
        ("static_mix", "backward", 2) => updates("slots", "update", get("len")),
        ("embedding", "forward", 1) => vec![(0, len, true, false)],
        ("adamw", _, 3..=5) => vec![(0, step.args[number].len, true, true)],
        _ => return None,
    })
}

/// Float operations of the products in a kernel call.
fn operations(step: &PlacedStep) -> u64 {
    let numbers = Numbers::of(&*step.params);
    let get = |name| numbers.get(name) as u64;
    match (family(step), step.kernel.entry) {
        ("matmul" | "grouped_matmul", _) => 2 * get("m") * get("n") * get("k"),
        ("attention", entry) => {
            // Pairs of a query and a key that it may see.
            let pairs = get("batch") * get("heads") * get("tokens") * (get("tokens") + 1) / 2;
            let products = match entry {
                "forward" => 2,
                "backward_query" => 3,
                "backward_key_value" => 4,
                _ => 0,
            };
            2 * products * pairs * get("dim")
        }
        ("anchor", "multiply_add") => get("len") * get("rounds") * crate::ops::anchor::OPERATIONS,
        _ => 0,
    }
}
