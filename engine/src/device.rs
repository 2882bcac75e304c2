//! Devices: finding what can compute here, choosing one, and opening it.
//!
//! `auto` takes a hardware GPU, else the CPU code. Software GPU drivers (lavapipe, SwiftShader) compute the same plans,
//! an order of magnitude slower than the CPU code on the same cores, so they are taken only when asked for.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use crate::cpu::CpuExecutor;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::gpu::{Gpu, GpuExecutor};
use crate::kernel::Kernel;

/// What to do when there is no adapter at all.
#[cfg(not(target_arch = "wasm32"))]
const ADVICE: &str = "on Debian a software one comes with: apt-get install mesa-vulkan-drivers";
#[cfg(target_arch = "wasm32")]
const ADVICE: &str = "this browser gives none to pages; the device cpu is always there";

/// Which device to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A hardware GPU, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU, a software driver if there is nothing better.
    Gpu,
    /// The first adapter with this in its name, backend or driver; case does not matter.
    Named(String),
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim().to_lowercase().as_str() {
            "" => Err(Error::config(
                "device",
                "is empty; it is auto, cpu, gpu or a part of an adapter's name",
            )),
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu),
            _ => Ok(Self::Named(text.trim().into())),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Named(part) => part,
        })
    }
}

/// The number type that a device computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision, on every device.
    #[default]
    F32,
    /// Double precision, on the CPU only: slow, and exact enough to check the others by.
    F64,
}

/// How to open a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Bytes that may be used, if limited.
    pub memory: Option<u64>,
    /// Ask for the adapter's own limits of buffer and binding size, instead of those that every browser grants. A plan
    /// that needs more than 128 MiB in one tensor needs it, and runs on fewer machines.
    pub raise_limits: bool,
    /// Ask for timestamps where the adapter has them, for [`crate::executor::Executor::profile`].
    pub timestamps: bool,
    /// Number type of the CPU.
    pub precision: Precision,
}

/// What an adapter is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A graphics card.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU behind a virtual machine.
    Virtual,
    /// A GPU; browsers do not say which kind.
    Other,
    /// A GPU driver that computes on the CPU.
    Software,
    /// Not an adapter: the engine's own CPU code.
    Host,
    /// Checks everything and computes nothing, for tests.
    Noop,
}

/// Limits of an adapter that decide what can be trained on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AdapterLimits {
    /// Largest range of a buffer that a kernel can see, in bytes.
    pub binding_bytes: u64,
    /// Largest buffer in bytes.
    pub buffer_bytes: u64,
    /// Storage buffers of a kernel.
    pub storage_buffers: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Bytes of memory that a workgroup shares.
    pub workgroup_bytes: u32,
}

/// A device that could be opened, or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdapterReport {
    /// Its name; browsers may leave it empty.
    pub name: String,
    /// The interface to it: `vulkan`, `metal`, `dx12`, `webgpu`, `cpu`.
    pub backend: String,
    /// What it is made of.
    pub kind: AdapterKind,
    /// Driver and its version, if known.
    pub driver: String,
    /// What it offers; `None` if there is no limit but memory.
    pub limits: Option<AdapterLimits>,
    /// Optional features that the engine knows about.
    pub features: Vec<String>,
}

impl fmt::Display for AdapterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() {
            "unnamed adapter"
        } else {
            &self.name
        };
        match self.kind {
            AdapterKind::Host | AdapterKind::Noop => write!(f, "{name}")?,
            AdapterKind::Software => write!(f, "{name} ({}, software)", self.backend)?,
            _ => write!(f, "{name} ({})", self.backend)?,
        }
        if self.driver.is_empty() {
            return Ok(());
        }
        write!(f, ", {}", self.driver)
    }
}

impl AdapterReport {
    /// What [`DeviceChoice`] finds it by; browsers may hide the name, and have one adapter.
    #[must_use]
    pub fn choice(&self) -> String {
        match self.kind {
            AdapterKind::Host => DeviceChoice::Cpu.to_string(),
            _ if self.name.is_empty() => DeviceChoice::Gpu.to_string(),
            _ => self.name.clone(),
        }
    }
}

/// What can compute on this machine, and what `auto` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// All GPU adapters, best first, and the CPU.
    pub devices: Vec<AdapterReport>,
    /// What [`DeviceChoice::Auto`] takes.
    pub auto: AdapterReport,
    /// Why.
    pub why: String,
}

/// An open device: makes executors.
#[derive(Clone, Debug)]
pub struct Device {
    kind: Kind,
    report: AdapterReport,
    why: String,
    memory: Option<u64>,
}

#[derive(Clone, Debug)]
enum Kind {
    Cpu(Precision),
    Gpu(Arc<Gpu>),
}

impl Device {
    /// Open the device of choice.
    ///
    /// # Errors
    /// If there is no such device (the message lists those that exist), or it cannot do what WebGPU promises.
    pub async fn open(choice: &DeviceChoice, options: &DeviceOptions) -> Result<Self> {
        if options.precision == Precision::F64 {
            return match choice {
                DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self::cpu(options)),
                _ => Err(Error::Device(format!(
                    "GPUs compute in single precision; double precision needs the device cpu, not {choice}"
                ))),
            };
        }
        if *choice == DeviceChoice::Cpu {
            return Ok(Self::cpu(options));
        }
        let adapters = adapters().await;
        let reports: Vec<AdapterReport> = adapters.iter().map(report).collect();
        match choice {
            DeviceChoice::Auto | DeviceChoice::Cpu => {
                let (position, mut why) = choose(&reports);
                if let Some(position) = position {
                    match Self::open_adapter(&adapters[position], options).await {
                        Ok(device) => return Ok(Self { why, ..device }),
                        Err(error) => why = error.to_string(),
                    }
                }
                Ok(Self {
                    why,
                    ..Self::cpu(options)
                })
            }
            DeviceChoice::Gpu => match adapters.first() {
                Some(adapter) => Self::open_adapter(adapter, options).await,
                None => Err(Error::Device(format!("no GPU adapter found; {ADVICE}"))),
            },
            DeviceChoice::Named(part) => {
                let part = part.to_lowercase();
                let named = reports
                    .iter()
                    .position(|report| report.to_string().to_lowercase().contains(&part));
                match named {
                    Some(position) => Self::open_adapter(&adapters[position], options).await,
                    None => Err(Error::Device(unknown(choice, &reports))),
                }
            }
        }
    }

    /// The CPU. Always there.
    #[must_use]
    pub fn cpu(options: &DeviceOptions) -> Self {
        Self {
            kind: Kind::Cpu(options.precision),
            report: host_report(),
            why: String::new(),
            memory: options.memory,
        }
    }

    /// A device that validates everything as a GPU does, with the limits of WebGPU, and computes nothing.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn noop() -> Self {
        let (device, queue) = wgpu::Device::noop(&wgpu::DeviceDescriptor::default());
        let report = AdapterReport {
            name: "no-op".into(),
            backend: "noop".into(),
            kind: AdapterKind::Noop,
            driver: String::new(),
            limits: Some(limits(&device.limits())),
            features: Vec::new(),
        };
        Self {
            kind: Kind::Gpu(Arc::new(Gpu::new(device, queue, WORKGROUP))),
            report,
            why: String::new(),
            memory: None,
        }
    }

    /// What can compute here.
    pub async fn survey() -> Survey {
        let mut devices: Vec<AdapterReport> = adapters().await.iter().map(report).collect();
        let (position, why) = choose(&devices);
        devices.push(host_report());
        let auto = devices[position.unwrap_or(devices.len() - 1)].clone();
        Survey { devices, auto, why }
    }

    /// Which device it is.
    #[must_use]
    pub fn report(&self) -> &AdapterReport {
        &self.report
    }

    /// Why [`DeviceChoice::Auto`] took it; empty if it was asked for.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The number type it computes in.
    #[must_use]
    pub fn precision(&self) -> Precision {
        match self.kind {
            Kind::Cpu(precision) => precision,
            Kind::Gpu(_) => Precision::F32,
        }
    }

    /// The open GPU, if it is one.
    #[must_use]
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        match &self.kind {
            Kind::Gpu(gpu) => Some(gpu),
            Kind::Cpu(_) => None,
        }
    }

    /// Compile a kernel before a plan needs it: between two of them a window can show how far it is. The CPU has nothing to
    /// compile.
    ///
    /// # Errors
    /// If the driver refuses it, or the device is gone.
    pub async fn compile(&self, kernel: &'static Kernel) -> Result<()> {
        match self.gpu() {
            Some(gpu) => gpu.compiled(kernel).await,
            None => Ok(()),
        }
    }

    /// Do something that allocates on this device, and wait for what its driver says about it: a browser reports that
    /// memory is used up later than any call.
    ///
    /// # Errors
    /// What `work` returns; [`Error::Memory`] if the device has no more memory, [`Error::Gpu`] if the driver refuses something
    /// else, [`Error::DeviceLost`] if the device is gone.
    pub async fn watched<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        match self.gpu() {
            Some(gpu) => gpu.watched(work).await,
            None => work(),
        }
    }

    /// A new executor with no buffers. Executors of one device share its compiled kernels.
    #[must_use]
    pub fn executor(&self) -> Box<dyn Executor> {
        match &self.kind {
            Kind::Cpu(Precision::F32) => Box::new(CpuExecutor::<f32>::new(self.memory)),
            Kind::Cpu(Precision::F64) => Box::new(CpuExecutor::<f64>::new(self.memory)),
            Kind::Gpu(gpu) => {
                let executor = GpuExecutor::new(gpu.clone(), self.memory);
                // A browser's software adapter takes long to compile large tiles.
                let large =
                    self.report.kind == AdapterKind::Software && cfg!(not(target_arch = "wasm32"));
                let mut executor = executor.large_tiles(large);
                executor.set_slice(SLICE);
                Box::new(executor)
            }
        }
    }

    async fn open_adapter(adapter: &wgpu::Adapter, options: &DeviceOptions) -> Result<Self> {
        let report = report(adapter);
        // Exactly what every browser grants: what trains here trains there.
        let mut required = wgpu::Limits::default();
        if options.raise_limits {
            let offered = adapter.limits();
            required.max_buffer_size = offered.max_buffer_size;
            required.max_storage_buffer_binding_size = offered.max_storage_buffer_binding_size;
        }
        let wanted = if options.timestamps {
            wgpu::Features::TIMESTAMP_QUERY
        } else {
            wgpu::Features::empty()
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("braid"),
            required_features: wanted & adapter.features(),
            required_limits: required,
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| Error::Device(format!("{report} cannot be opened: {error}")))?;
        Ok(Self {
            kind: Kind::Gpu(Arc::new(Gpu::new(device, queue, WORKGROUP))),
            report,
            why: String::new(),
            memory: options.memory,
        })
    }
}

/// Invocations of a workgroup where kernels leave it open. On lavapipe, training steps with 16, 32, 64 and 128 differed by
/// less than the noise, 8 and 4 were up to 1.8 times slower.
const WORKGROUP: u32 = 64;

/// Kernel calls of a submission. The GPU that computes for a page also draws it, and every other page: it can turn to them
/// between two submissions.
const SLICE: Option<usize> = if cfg!(target_arch = "wasm32") {
    Some(32)
} else {
    None
};

/// All adapters, best first: hardware before software, cards before integrated ones.
async fn adapters() -> Vec<wgpu::Adapter> {
    let backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut adapters = instance.enumerate_adapters(backends).await;
    adapters.retain(|adapter| {
        let capabilities = adapter.get_downlevel_capabilities();
        capabilities
            .flags
            .contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
    });
    adapters.sort_by_key(|adapter| kind(&adapter.get_info()) as u8);
    adapters
}

fn kind(info: &wgpu::AdapterInfo) -> AdapterKind {
    // Some drivers do not say that they are software, but their names do.
    let name = info.name.to_lowercase();
    let software = [
        "llvmpipe",
        "lavapipe",
        "swiftshader",
        "basic render",
        "softpipe",
    ];
    if software.iter().any(|known| name.contains(known)) {
        return AdapterKind::Software;
    }
    match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Other => AdapterKind::Other,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
    }
}

fn report(adapter: &wgpu::Adapter) -> AdapterReport {
    let info = adapter.get_info();
    let offered = adapter.features();
    let known = [
        ("timestamps", wgpu::Features::TIMESTAMP_QUERY),
        ("subgroups", wgpu::Features::SUBGROUP),
        ("f16", wgpu::Features::SHADER_F16),
        ("pipeline-cache", wgpu::Features::PIPELINE_CACHE),
    ];
    let features = known.iter().filter(|(_, bits)| offered.contains(*bits));
    AdapterReport {
        kind: kind(&info),
        backend: info.backend.to_string(),
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .into(),
        name: info.name,
        limits: Some(limits(&adapter.limits())),
        features: features.map(|(name, _)| (*name).into()).collect(),
    }
}

fn limits(limits: &wgpu::Limits) -> AdapterLimits {
    AdapterLimits {
        binding_bytes: limits.max_storage_buffer_binding_size,
        buffer_bytes: limits.max_buffer_size,
        storage_buffers: limits.max_storage_buffers_per_shader_stage,
        invocations: limits.max_compute_invocations_per_workgroup,
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
    }
}

fn host_report() -> AdapterReport {
    let threads = crate::cpu::threads();
    let plural = if threads == 1 { "" } else { "s" };
    AdapterReport {
        name: "CPU".into(),
        backend: "cpu".into(),
        kind: AdapterKind::Host,
        driver: format!("{threads} thread{plural}"),
        limits: None,
        features: Vec::new(),
    }
}

/// What `auto` takes of some adapters, best first: a position, or the CPU; and why.
fn choose(reports: &[AdapterReport]) -> (Option<usize>, String) {
    match reports.first() {
        Some(best) if best.kind != AdapterKind::Software => {
            (Some(0), "it is a hardware GPU".into())
        }
        Some(best) => (
            None,
            format!(
                "there is no hardware GPU; {best} is slower than the CPU code and is used only when asked for"
            ),
        ),
        None => (None, "there is no GPU adapter".into()),
    }
}

fn unknown(choice: &DeviceChoice, reports: &[AdapterReport]) -> String {
    if reports.is_empty() {
        return format!("no adapter is called `{choice}`: there is none at all; {ADVICE}");
    }
    let names: Vec<String> = reports.iter().map(ToString::to_string).collect();
    format!(
        "no adapter is called `{choice}`; there are:\n  {}",
        names.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(name: &str, kind: AdapterKind) -> AdapterReport {
        AdapterReport {
            name: name.into(),
            backend: "vulkan".into(),
            kind,
            driver: String::new(),
            limits: None,
            features: Vec::new(),
        }
    }

    #[test]
    fn choices_parse_and_print_alike() {
        for text in ["auto", "cpu", "gpu", "GeForce RTX"] {
            assert_eq!(
                text.parse::<DeviceChoice>().expect("parses").to_string(),
                text
            );
        }
        assert_eq!(
            " GPU ".parse::<DeviceChoice>().ok(),
            Some(DeviceChoice::Gpu)
        );
        assert!(" ".parse::<DeviceChoice>().is_err());
    }

    #[test]
    fn auto_takes_hardware_and_never_software() {
        let (card, soft) = (
            adapter("Radeon", AdapterKind::Discrete),
            adapter("llvmpipe", AdapterKind::Software),
        );
        assert_eq!(choose(&[card, soft.clone()]).0, Some(0));
        let (position, why) = choose(&[soft]);
        assert_eq!(position, None);
        assert!(why.contains("llvmpipe (vulkan, software)"), "{why}");
        assert_eq!(choose(&[]).0, None);
    }

    #[test]
    fn an_unknown_name_lists_what_exists() {
        let choice = DeviceChoice::Named("arc".into());
        let message = unknown(&choice, &[adapter("Radeon", AdapterKind::Discrete)]);
        assert!(
            message.contains("`arc`") && message.contains("Radeon (vulkan)"),
            "{message}"
        );
        assert!(unknown(&choice, &[]).contains("apt-get install mesa-vulkan-drivers"));
    }
}
