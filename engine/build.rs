//! Compose, validate and reflect every shader, so that a broken one fails the build and not a user.
//!
//! Each entry point of `shaders/*.wgsl` becomes a `static Kernel` in `OUT_DIR/kernels.rs`. Validation uses the *empty*
//! capability set, which is what WebGPU promises everywhere; `tests/` compiles the same text with a browser's compiler.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, ArraySize, Module, ScalarKind, StorageAccess, TypeInner};

fn main() {
    let shaders = Path::new("../shaders");
    println!("cargo::rerun-if-changed=../shaders");
    println!("cargo::rerun-if-changed=build.rs");

    let mut files: Vec<PathBuf> = read_dir(shaders)
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wgsl")
        })
        .collect();
    files.sort();

    let mut out = String::new();
    let mut all = Vec::new();
    for path in files {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let source = compose(shaders, &path, &mut BTreeSet::new());
        emit(&name, &path, &source, &mut out, &mut all);
    }
    let list = all
        .iter()
        .map(|name| format!("&{name}"))
        .collect::<Vec<_>>()
        .join(", ");
    _ = writeln!(
        out,
        "/// Every kernel, in the order of the shader files.\npub static ALL: &[&Kernel] = &[{list}];"
    );
    let target = PathBuf::from(env::var("OUT_DIR").unwrap_or_default()).join("kernels.rs");
    if let Err(error) = fs::write(&target, out) {
        fail(&target.display().to_string(), &error.to_string());
    }
}

/// Validate one shader and write a `static` for each of its entry points.
fn emit(name: &str, path: &Path, source: &str, out: &mut String, all: &mut Vec<String>) {
    let file = path.display().to_string();
    let module = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| fail(name, &error.emit_to_string_with_path(source, &file)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|error| fail(name, &error.emit_to_string_with_path(source, &file)));

    _ = writeln!(
        out,
        "static {}_SOURCE: &str = {source:?};",
        name.to_uppercase()
    );
    for (index, entry) in module.entry_points.iter().enumerate() {
        let uses = info.get_entry_point(index);
        let mut bindings = Vec::new();
        let mut params = String::new();
        for (handle, variable) in module.global_variables.iter() {
            let Some(binding) = &variable.binding else {
                continue;
            };
            if uses[handle].is_empty() {
                continue;
            }
            let label = variable.name.clone().unwrap_or_default();
            match variable.space {
                AddressSpace::Uniform if binding.binding == 0 => {
                    params = fields(&module, variable.ty)
                }
                AddressSpace::Storage { access } => {
                    let access = if access.contains(StorageAccess::STORE) {
                        "Write"
                    } else {
                        "Read"
                    };
                    bindings.push((
                        binding.binding,
                        access,
                        element(&module, variable.ty),
                        label,
                    ));
                }
                _ => fail(
                    name,
                    &format!(
                        "`{label}`: binding 0 is the uniform `params`, all others are storage buffers"
                    ),
                ),
            }
        }
        bindings.sort();
        for (position, (number, .., label)) in bindings.iter().enumerate() {
            if *number as usize != position + 1 {
                fail(
                    name,
                    &format!(
                        "{}: `{label}` is binding {number}, expected {}",
                        entry.name,
                        position + 1
                    ),
                );
            }
        }
        if bindings.len() > 8 {
            fail(
                name,
                &format!(
                    "{}: {} storage buffers, WebGPU promises 8",
                    entry.name,
                    bindings.len()
                ),
            );
        }
        let bindings = bindings
            .iter()
            .map(|(_, access, element, label)| {
                format!("Binding {{ access: Access::{access}, element: Element::{element}, name: {label:?} }}")
            })
            .collect::<Vec<_>>()
            .join(", ");
        let constant = format!("{}_{}", name, entry.name).to_uppercase();
        _ = writeln!(
            out,
            "/// `{entry}` of `shaders/{name}.wgsl`.\npub static {constant}: Kernel = Kernel {{ name: {name:?}, entry: {entry:?}, \
             source: {upper}_SOURCE, bindings: &[{bindings}], params: &[{params}], workgroup: {workgroup:?} }};",
            entry = entry.name,
            upper = name.to_uppercase(),
            workgroup = match entry.workgroup_size_overrides {
                Some(_) => None, // `@workgroup_size(WG)`
                None => Some(entry.workgroup_size.iter().product::<u32>()),
            },
        );
        all.push(constant);
    }
}

/// The fields of the `params` struct, in order: a test holds them against the Rust side.
fn fields(module: &Module, ty: naga::Handle<naga::Type>) -> String {
    let TypeInner::Struct { members, .. } = &module.types[ty].inner else {
        return String::new();
    };
    let mut list = Vec::new();
    for member in members {
        let kind = match &module.types[member.ty].inner {
            TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Float => "Float".to_owned(),
            TypeInner::Scalar(_) => "Int".to_owned(),
            TypeInner::Array {
                size: ArraySize::Constant(size),
                ..
            } => format!("Ints({})", size.get() * 4),
            other => fail(
                "params",
                &format!(
                    "`{:?}`: {other:?} is not u32, f32 or array<vec4<u32>, N>",
                    member.name
                ),
            ),
        };
        list.push(format!(
            "({:?}, Field::{kind})",
            member.name.clone().unwrap_or_default()
        ));
    }
    list.join(", ")
}

/// The element type of a storage array.
fn element(module: &Module, ty: naga::Handle<naga::Type>) -> &'static str {
    let TypeInner::Array { base, .. } = module.types[ty].inner else {
        return "F32";
    };
    match module.types[base].inner {
        TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. }
            if scalar.kind == ScalarKind::Uint =>
        {
            "U32"
        }
        _ => "F32",
    }
}

/// Replace each line `#import shared/x` by that file, once.
fn compose(root: &Path, path: &Path, seen: &mut BTreeSet<PathBuf>) -> String {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| fail(&path.display().to_string(), &error.to_string()));
    let mut out = String::new();
    for line in text.lines() {
        if let Some(import) = line.strip_prefix("#import ") {
            let import = root.join(import.trim()).with_extension("wgsl");
            if seen.insert(import.clone()) {
                out += &compose(root, &import, seen);
            }
        } else {
            out += line;
            out.push('\n');
        }
    }
    out
}

fn read_dir(path: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path)
        .unwrap_or_else(|error| fail(&path.display().to_string(), &error.to_string()))
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
}

fn fail(name: &str, message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={name}: {line}");
    }
    process::exit(1)
}
