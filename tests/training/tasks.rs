//! The default task can be learned.
#![expect(clippy::unwrap_used, reason = "tests panic where they fail")]

use braid_engine::data::{Dataset, Task, TaskKind};
use braid_engine::device::{Device, DeviceOptions};
use braid_engine::models::ModelConfig;
use braid_engine::nn::Batch;
use braid_engine::optim::{Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::{Evaluation, TrainConfig, Trainer};

/// Train the default model of a run (DAR, blocks of two layers) with the default settings.
fn train(kind: TaskKind, steps: u64) -> Evaluation {
    let context = 64;
    let data = Dataset::Task(Task::new(kind, context as usize).unwrap());
    let model = format!(
        r#"{{"vocab_size": {}, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4,
            "num_key_value_heads": 4, "head_dim": 32, "residual": {{"kind": "dar", "layers_per_block": 2}}}}"#,
        data.vocab_size()
    );
    let config = TrainConfig {
        batch: Batch {
            sequences: 12,
            context,
        },
        accumulate: 1,
        checkpoint: false,
        schedule: Schedule {
            kind: ScheduleKind::Cosine,
            lr: 1e-3,
            min_lr: 1e-4,
            warmup: 100,
            steps: 2000,
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
        eval_batches: 10,
    };
    let device = Device::cpu(&DeviceOptions::default());
    let model = ModelConfig::from_json(&model).unwrap();
    let mut trainer = Trainer::new(device.executor(), model, config, data).unwrap();
    for _ in 0..steps {
        if trainer.ring_is_full() {
            let losses = pollster::block_on(trainer.collect()).unwrap();
            assert!(losses.iter().all(|loss| loss.ok));
        }
        trainer.step().unwrap();
    }
    pollster::block_on(trainer.evaluate()).unwrap()
}

#[test]
fn the_default_model_learns_the_default_task_in_200_steps() {
    let last = train(TaskKind::Recall, 200);
    assert!(last.val_loss < 0.5 && last.accuracy > Some(0.9), "{last:?}");
}
