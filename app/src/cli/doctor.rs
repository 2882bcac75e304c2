//! `braid doctor`

use braid_engine::device::{AdapterKind, Device, Precision};
use braid_engine::error::bytes_for_people;
use clap::Args;
use serde_json::json;

use super::{DeviceArgs, FAILED, Failure, Outcome, say};
use crate::desk::free_memory;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid doctor
  braid doctor --device gpu     fails if there is no GPU adapter")]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What to install when there is no adapter.
const INSTALL: &str = "\
no GPU adapter was found; training uses the CPU. To use a GPU, install its Vulkan driver:
  Debian, Ubuntu   apt-get install mesa-vulkan-drivers   (Intel, AMD, and a software driver for tests)
                   NVIDIA: the nvidia-driver package, which brings Vulkan with it
  Fedora           dnf install mesa-vulkan-drivers
  macOS, Windows   Metal and DirectX 12 come with the system; update the graphics driver
In a container, the GPU has to be passed in (such as docker run --gpus all, with NVIDIA_DRIVER_CAPABILITIES=all).";

pub(super) fn run(args: &DoctorArgs) -> Outcome {
    let survey = pollster::block_on(Device::survey());
    let opened = args.device.open(Precision::F32);
    let problem = opened.as_ref().err().map(|failure| failure.message.clone());
    if args.json {
        let survey_json = serde_json::to_value(&survey).unwrap_or_default();
        say(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            "free_memory": free_memory(),
            "devices": survey_json["devices"],
            "auto": survey_json["auto"],
            "why": survey.why,
            "asked": args.device.device,
            "opened": opened.as_ref().ok().map(|(device, _)| device.report()),
            "problem": problem,
        })
        .to_string());
    } else {
        say(format!(
            "braid {} on {} {}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH
        ));
        if let Some(free) = free_memory() {
            say(format!("free memory {}", bytes_for_people(free)));
        }
        for device in &survey.devices {
            say(format!("\n{device}"));
            if let Some(limits) = device.limits {
                say(format!(
                    "  largest tensor {}, largest buffer {}",
                    bytes_for_people(limits.binding_bytes),
                    bytes_for_people(limits.buffer_bytes)
                ));
                say(format!(
                    "  {} storage buffers a kernel, {} invocations and {} a workgroup",
                    limits.storage_buffers,
                    limits.invocations,
                    bytes_for_people(limits.workgroup_bytes.into())
                ));
            }
            if !device.features.is_empty() {
                say(format!("  features {}", device.features.join(", ")));
            }
        }
        say(format!("\nauto takes {}: {}", survey.auto, survey.why));
        if !survey
            .devices
            .iter()
            .any(|device| device.kind != AdapterKind::Host)
        {
            say(format!("\n{INSTALL}"));
        }
        if let Ok((device, _)) = &opened {
            say(format!(
                "--device {} opens {}",
                args.device.device,
                device.report()
            ));
        }
    }
    match problem {
        Some(problem) => Err(Failure::new(FAILED, problem)),
        None => Ok(()),
    }
}
