//! Pipelines: one for each kernel of a device, made when a plan first needs it.

use std::collections::HashMap;

use super::{Gpu, lock};
use crate::error::Result;
use crate::kernel::{Access, Kernel};

/// A compiled kernel.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    /// Invocations of a workgroup.
    pub(super) invocations: u32,
}

/// Everything compiled for a device so far.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    /// By file: entry points of one file share it.
    modules: HashMap<&'static str, wgpu::ShaderModule>,
    /// By kernel.
    pipelines: HashMap<(&'static str, &'static str), Pipeline>,
}

impl Gpu {
    /// The pipeline of a kernel, and whether it had to be made.
    pub(super) fn pipeline(&self, kernel: &'static Kernel) -> Result<(Pipeline, bool)> {
        let mut made = lock(&self.pipelines);
        let key = (kernel.name, kernel.entry);
        if let Some(pipeline) = made.pipelines.get(&key) {
            return Ok((pipeline.clone(), false));
        }
        let module = made.modules.get(kernel.name).cloned();
        let doing = || format!("compiling the kernel {}", kernel.id());
        let (module, pipeline) = self.guarded(doing, || {
            let module = module.unwrap_or_else(|| self.module(kernel));
            let pipeline = self.compile(kernel, &module);
            (module, pipeline)
        })?;
        made.modules.insert(kernel.name, module);
        made.pipelines.insert(key, pipeline.clone());
        Ok((pipeline, true))
    }

    /// Compile a kernel, and wait until the driver has. Browsers compile in another process and report nothing; that an
    /// error scope around it is answered means that it is done.
    #[cfg(target_arch = "wasm32")]
    pub(crate) async fn compiled(&self, kernel: &'static Kernel) -> Result<()> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = self.pipeline(kernel);
        let error = scope.pop().await;
        made?;
        match error {
            Some(error) => Err(crate::error::Error::Gpu {
                doing: format!("compiling the kernel {}", kernel.id()),
                message: error.to_string(),
            }),
            None => self.check(),
        }
    }

    /// Compile a kernel; native drivers are done when they return.
    #[cfg(not(target_arch = "wasm32"))]
    #[expect(clippy::unused_async, reason = "browsers wait here")]
    pub(crate) async fn compiled(&self, kernel: &'static Kernel) -> Result<()> {
        self.pipeline(kernel).map(|_| ())
    }

    fn module(&self, kernel: &Kernel) -> wgpu::ShaderModule {
        self.device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(kernel.name),
                source: wgpu::ShaderSource::Wgsl(kernel.source.into()),
            })
    }

    fn compile(&self, kernel: &Kernel, module: &wgpu::ShaderModule) -> Pipeline {
        let label = kernel.id();
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        // The layout is explicit, since one that wgpu derives fits the bind groups of this pipeline object only.
        let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
        entries.extend((1..).zip(kernel.bindings).map(|(number, binding)| {
            let read_only = binding.access == Access::Read;
            entry(number, wgpu::BufferBindingType::Storage { read_only })
        }));
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some(&label),
                entries: &entries,
            });
        let pipeline_layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(&label),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
        let workgroup = [("WG", f64::from(self.workgroup))];
        // A constant that the file does not declare is an error in browsers.
        let declared = kernel.source.contains("override WG");
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&label),
                layout: Some(&pipeline_layout),
                module,
                entry_point: Some(kernel.entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants: if declared { &workgroup } else { &[] },
                    ..Default::default()
                },
                cache: None,
            });
        Pipeline {
            pipeline,
            layout,
            invocations: kernel.workgroup.unwrap_or(self.workgroup),
        }
    }
}

/// Workgroups in x and y for `items` invocations. A dimension holds 65,535 workgroups; more fold into y, and
/// `shaders/shared/grid.wgsl` unfolds them. The two are balanced, so that few invocations have nothing to do.
pub(super) fn grid(items: usize, invocations: u32) -> (u32, u32) {
    const MOST: usize = 65_535;
    let groups = items.div_ceil(invocations as usize);
    let y = groups.div_ceil(MOST).max(1);
    let x = groups.div_ceil(y);
    // At most 2^30 items of one invocation each: both fit 32 bits.
    (x as u32, y as u32)
}

#[cfg(test)]
mod tests {
    use super::grid;

    #[test]
    fn a_grid_covers_all_items_within_the_limits() {
        for items in [1, 63, 64, 65, 65_535 * 64, 65_535 * 64 + 1, 1 << 30] {
            for invocations in [1, 8, 64, 256] {
                let (x, y) = grid(items, invocations);
                let room = x as usize * y as usize * invocations as usize;
                assert!(x <= 65_535 && y <= 65_535, "{items} items");
                assert!(room >= items && room < items + y as usize * invocations as usize);
            }
        }
    }
}
