//! Train a small DAR model to copy lists of letters, on the CPU, and print what it reads from where.
//!
//! `cargo run --release -p braid-engine --example 02_train_copy_task [STEPS]`

use braid_engine::Result;
use braid_engine::cpu::CpuExecutor;
use braid_engine::data::{Dataset, Task, TaskKind};
use braid_engine::models::config::ModelConfig;
use braid_engine::nn::Batch;
use braid_engine::optim::{Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::{TrainConfig, Trainer};

fn main() -> Result<()> {
    let steps = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let data = Dataset::Task(Task::new(TaskKind::Copy, 64)?);
    let model = ModelConfig::from_json(&format!(
        r#"{{"vocab_size": {}, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4,
            "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32,
            "residual": {{"kind": "dar", "layers_per_block": 2}}}}"#,
        data.vocab_size()
    ))?;
    let config = TrainConfig {
        batch: Batch {
            sequences: 12,
            context: 64,
        },
        accumulate: 1,
        checkpoint: false,
        schedule: Schedule {
            kind: ScheduleKind::Cosine,
            lr: 1e-3,
            min_lr: 1e-4,
            warmup: 20,
            steps,
        },
        update: UpdateConfig {
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            clip: 1.0,
            routing_lr_mult: 1.0,
            muon: None,
        },
        seed: 1,
        eval_batches: 20,
    };
    let mut trainer = Trainer::new(Box::new(CpuExecutor::<f32>::new(None)), model, config, data)?;
    println!("{} parameters", trainer.parameters().count());
    for step in 1..=steps {
        trainer.step()?;
        if trainer.ring_is_full() || step == steps {
            let last = pollster::block_on(trainer.collect())?.pop();
            if let Some(last) = last {
                println!(
                    "step {:5}   loss {:.4}   gradient norm {:.3}",
                    last.step, last.loss, last.grad_norm
                );
            }
        }
    }
    let evaluation = pollster::block_on(trainer.evaluate())?;
    println!(
        "validation loss {:.4}, right answers {:.0?} %",
        evaluation.val_loss,
        evaluation.accuracy.map(|a| a * 100.0)
    );
    for site in pollster::block_on(trainer.look())?.sites {
        for (stream, read) in site.streams.iter().enumerate() {
            println!(
                "site {:2} {:7} stream {stream}: {:.2?}",
                site.site, site.kind, read.weight
            );
        }
    }
    Ok(())
}
