//! Every shader: conventions that the build does not check, a twin, an op, a test, and all of naga's back ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use braid_engine::cpu;
use braid_engine::kernel::kernels::ALL;
use braid_engine::kernel::{Field, Kernel};
use braid_tests::source::{root, rust_files, without_comments};
use naga::back::{PipelineConstants, hlsl, msl, pipeline_constants, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage};

/// What WebGPU promises on every device.
const MOST_BINDINGS: usize = 8;
const MOST_INVOCATIONS: u32 = 256;
const MOST_WORKGROUP_BYTES: u32 = 16 << 10;

/// All `shaders/*.wgsl`, without `shared/`.
fn shader_files() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("shaders")).expect("the folder exists");
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "wgsl"))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("files have names")
        .to_string_lossy()
        .into_owned()
}

/// Collect what is wrong everywhere before failing: one run shows all of it.
fn none(what: &str, failures: &[String]) {
    assert!(failures.is_empty(), "{what}:\n  {}", failures.join("\n  "));
}

#[test]
fn every_kernel_has_a_plain_twin() {
    let without = ALL.iter().filter(|kernel| !cpu::has_twin(kernel));
    none(
        "no twin in engine/src/cpu/twins.rs",
        &without.map(|kernel| kernel.id()).collect::<Vec<_>>(),
    );
}

#[test]
fn every_shader_has_a_kernel_and_no_more_bindings_than_webgpu_promises() {
    let mut failures = Vec::new();
    let with_kernel: BTreeSet<&str> = ALL.iter().map(|kernel| kernel.name).collect();
    for file in shader_files() {
        if !with_kernel.contains(&*stem(&file)) {
            failures.push(format!("{}: no entry point", file.display()));
        }
    }
    for kernel in ALL {
        let (id, count) = (kernel.id(), kernel.bindings.len());
        if count > MOST_BINDINGS {
            failures.push(format!("{id}: {count} storage buffers"));
        }
        if kernel.params.is_empty() {
            failures.push(format!("{id}: does not use its params"));
        }
    }
    none("broken conventions", &failures);
}

/// Fields of the `params!` structs of a Rust file, as the shader would declare them.
fn params_structs(text: &str) -> Vec<(String, Vec<(String, Field)>)> {
    let mut found = Vec::new();
    for block in text.split("params! {").skip(1) {
        let Some((head, rest)) = block.split_once('{') else {
            continue;
        };
        let name = head.split_whitespace().last().unwrap_or_default();
        let body = rest.split('}').next().unwrap_or_default();
        let fields = body.split(',').filter_map(|field| {
            // `[u32; 8]` has no comma, so fields are between commas; attributes were removed with the comments.
            let (name, ty) = field.trim().trim_start_matches("pub ").split_once(':')?;
            let kind = match ty.trim() {
                "u32" => Field::Int,
                "f64" => Field::Float,
                list => {
                    let count = list.trim_matches(['[', ']']).split(';').nth(1)?;
                    // A named constant is resolved by `Plan::build`; here only literals are known.
                    Field::Ints(count.trim().parse().unwrap_or(0))
                }
            };
            Some((name.trim().to_owned(), kind))
        });
        found.push((name.to_owned(), fields.collect()));
    }
    found
}

/// Equal, where a length that is a named constant in Rust (0) fits any.
fn same_fields(ours: &[(String, Field)], shaders: &[(&str, Field)]) -> bool {
    let fits = |a: Field, b: Field| a == b || matches!((a, b), (Field::Ints(0), Field::Ints(_)));
    ours.len() == shaders.len()
        && ours
            .iter()
            .zip(shaders)
            .all(|((name, kind), (other, field))| name == other && fits(*kind, *field))
}

#[test]
fn every_params_struct_is_the_one_of_its_shader() {
    let mut structs = BTreeMap::new();
    for file in rust_files(&root().join("engine/src")) {
        if file.ends_with("kernel.rs") {
            continue; // the macro's own definition
        }
        let text = without_comments(&fs::read_to_string(&file).expect("readable"));
        for (name, fields) in params_structs(&text) {
            structs.insert(format!("{}::{name}", stem(&file)), fields);
        }
    }
    let mut failures = Vec::new();
    for kernel in ALL {
        if !structs
            .values()
            .any(|fields| same_fields(fields, kernel.params))
        {
            failures.push(format!(
                "{}: no params! struct is {:?}",
                kernel.id(),
                kernel.params
            ));
        }
    }
    for (name, fields) in &structs {
        if !ALL.iter().any(|kernel| same_fields(fields, kernel.params)) {
            failures.push(format!("{name}: no shader declares {fields:?}"));
        }
    }
    none("params differ between Rust and WGSL", &failures);
}

/// The operands next to each `operator` in a line of code.
fn operands<'a>(line: &'a str, operator: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let part = |c: char| c.is_alphanumeric() || "_.[]".contains(c);
    line.match_indices(operator).map(move |(at, _)| {
        let (before, after) = (
            line[..at].trim_end(),
            line[at + operator.len()..].trim_start(),
        );
        let start = before.rfind(|c| !part(c)).map_or(0, |last| last + 1);
        let end = after.find(|c| !part(c)).unwrap_or(after.len());
        (&before[start..], &after[..end])
    })
}

/// Why a line of WGSL may not stay, if so.
fn forbidden(line: &str) -> Option<String> {
    for operator in ["!=", "==", "-", "/"] {
        for (left, right) in operands(line, operator) {
            if !left.is_empty() && left == right && left.parse::<f64>().is_err() {
                return Some(format!(
                    "`{left} {operator} {right}`: devices assume that NaN and infinity do not occur"
                ));
            }
        }
    }
    let words: Vec<&str> = line
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .collect();
    for word in ["enable", "requires", "diagnostic"] {
        if line.trim_start().starts_with(word) && words.contains(&word) {
            return Some(format!("`{word}`: not on every device"));
        }
    }
    for word in ["inf", "INF", "infinity", "INFINITY", "nan", "NAN"] {
        if words.contains(&word) {
            return Some(format!(
                "`{word}`: WGSL has no such number; use a finite sentinel"
            ));
        }
    }
    if words.contains(&"arrayLength") {
        return Some("`arrayLength`: a binding may be longer than its tensor".into());
    }
    if line.contains("bitcast<f32>(0x") {
        return Some("`bitcast<f32>(0x..)`: browsers refuse constants that are not finite".into());
    }
    // Float literals beyond f32 overflow to infinity.
    for word in line.split(|c: char| !(c.is_alphanumeric() || ".+-_".contains(c))) {
        let word = word.trim_end_matches('f');
        let number = word.contains(['e', 'E']) && !word.starts_with("0x");
        if number
            && word
                .parse::<f64>()
                .is_ok_and(|v| v.abs() > f64::from(f32::MAX))
        {
            return Some(format!("`{word}`: is infinite in f32"));
        }
    }
    None
}

#[test]
fn no_shader_relies_on_nan_infinities_or_extensions() {
    let mut failures = Vec::new();
    let shared = fs::read_dir(root().join("shaders/shared")).expect("the folder exists");
    let shared = shared.map(|entry| entry.expect("readable").path());
    for file in shader_files().into_iter().chain(shared) {
        let text = fs::read_to_string(&file).expect("readable");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(why) = forbidden(code) {
                failures.push(format!("{}:{}: {why}", stem(&file), number + 1));
            }
        }
    }
    none("forbidden in shaders", &failures);
}

#[test]
fn the_search_for_forbidden_lines_finds_them() {
    for bad in [
        "if x != x {",
        "if row[i]!=row[i] {",
        "let d = v - v;",
        "let q = 1.0e39;",
        "enable f16;",
        "let m = bitcast<f32>(0xff800000u);",
        "let n = arrayLength(&x);",
        "let m = -inf;",
    ] {
        assert!(forbidden(bad).is_some(), "{bad}");
    }
    for good in [
        "if a != b {",
        "let m = -1.0e30;",
        "let d = x_1 - x_2;",
        "if (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u {",
        "let half = 1.0 / 1.0;",
        "let i = n - 1u;",
        "let information = 3u;",
    ] {
        assert!(forbidden(good).is_none(), "{good}: {:?}", forbidden(good));
    }
}

#[test]
fn every_entry_point_is_called_by_an_op_that_has_a_test() {
    let tests = rust_files(&root().join("tests"));
    let tests: BTreeSet<String> = tests.iter().map(|file| stem(file)).collect();
    let mut callers: Vec<(PathBuf, String)> = Vec::new();
    for file in ["ops", "optim"]
        .iter()
        .flat_map(|folder| rust_files(&root().join("engine/src").join(folder)))
    {
        let text = without_comments(&fs::read_to_string(&file).expect("readable"));
        callers.push((file, text));
    }
    let mut failures = Vec::new();
    for kernel in ALL {
        let constant = format!("{}_{}", kernel.name, kernel.entry).to_uppercase();
        let word = |text: &str| {
            text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .any(|word| word == constant)
        };
        let Some((file, _)) = callers.iter().find(|(_, text)| word(text)) else {
            failures.push(format!("{}: no op calls kernels::{constant}", kernel.id()));
            continue;
        };
        // `tests/ops/matmul.rs` for `ops/matmul.rs`, `tests/training/optim.rs` for all of `optim/`.
        let folder = file.parent().map(stem).unwrap_or_default();
        if !tests.contains(&stem(file)) && !tests.contains(&folder) {
            failures.push(format!("{}: no test is called {}", kernel.id(), stem(file)));
        }
    }
    none("incomplete", &failures);
}

/// Parse and validate as the build does.
fn module(source: &str) -> (Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(source).expect("the build parsed it");
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module).expect("the build validated it");
    (module, info)
}

/// Write one entry point for every platform; returns what failed.
fn write_everywhere(kernel: &Kernel, module: &Module, info: &ModuleInfo) -> Vec<String> {
    let stage = (ShaderStage::Compute, kernel.entry.to_owned());
    let mut constants = PipelineConstants::default();
    if kernel.source.contains("override WG") {
        constants.insert("WG".into(), 64.0);
    }
    let at = Some((ShaderStage::Compute, kernel.entry));
    let resolved = pipeline_constants::process_overrides(module, info, at, &constants);
    let (module, info) = match resolved {
        Ok(resolved) => resolved,
        Err(error) => return vec![format!("{}: overrides: {error:?}", kernel.id())],
    };

    let mut failures = Vec::new();
    let mut fail = |what: &str, error: String| {
        failures.push(format!("{}: {what}: {error}", kernel.id()));
    };
    let entry = module
        .entry_points
        .iter()
        .find(|entry| entry.name == kernel.entry)
        .expect("the build listed it");
    let invocations = entry.workgroup_size.iter().product::<u32>();
    if invocations > MOST_INVOCATIONS {
        fail("workgroup", format!("{invocations} invocations"));
    }
    let shared: u32 = module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == AddressSpace::WorkGroup)
        .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()))
        .sum();
    if shared > MOST_WORKGROUP_BYTES {
        fail("workgroup", format!("{shared} bytes of shared memory"));
    }

    let options = spv::PipelineOptions {
        shader_stage: stage.0,
        entry_point: stage.1.clone(),
    };
    if let Err(error) = spv::write_vec(&module, &info, &spv::Options::default(), Some(&options)) {
        fail("SPIR-V", error.to_string());
    }
    let options = msl::PipelineOptions {
        entry_point: Some(stage.clone()),
        ..Default::default()
    };
    let language = msl::Options {
        lang_version: (2, 0),
        ..Default::default()
    };
    if let Err(error) = msl::write_string(&module, &info, &language, &options) {
        fail("MSL", error.to_string());
    }
    let options = hlsl::PipelineOptions {
        entry_point: Some(stage),
    };
    let (mut text, language) = (String::new(), hlsl::Options::default());
    let mut writer = hlsl::Writer::new(&mut text, &language, &options);
    if let Err(error) = writer.write(&module, &info, None) {
        fail("HLSL", error.to_string());
    }
    failures
}

#[test]
fn every_entry_point_can_be_written_for_vulkan_metal_and_direct3d() {
    let mut modules = BTreeMap::new();
    let mut failures = Vec::new();
    for kernel in ALL {
        let (module, info) = modules
            .entry(kernel.name)
            .or_insert_with(|| module(kernel.source));
        failures.extend(write_everywhere(kernel, module, info));
    }
    none("back ends", &failures);
}
