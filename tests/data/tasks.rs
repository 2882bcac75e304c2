//! Tasks: every answer follows from what precedes it.

use std::collections::HashMap;

use braid_engine::data::{BatchShape, Dataset, Draw, Sequence, Task, TaskKind};
use braid_engine::random;

const CONTEXT: usize = 64;

fn task(kind: TaskKind) -> Task {
    Task::new(kind, CONTEXT).unwrap()
}

/// Sequences as words: what stands there, what is asked for, whether it is an answer.
fn sequences(kind: TaskKind) -> Vec<(Vec<String>, Vec<String>, Vec<bool>)> {
    let task = task(kind);
    let mut rng = random::stream(5, "test");
    let say = |ids: &[u32]| {
        ids.iter()
            .map(|&id| task.tokenizer().token_text(id))
            .collect()
    };
    (0..50)
        .map(|_| {
            let Sequence {
                ids,
                labels,
                answers,
            } = task.sequence(&mut rng, CONTEXT);
            (say(&ids), say(&labels), answers)
        })
        .collect()
}

#[test]
fn sequences_have_the_length_of_the_context_and_ask_something() {
    for kind in TaskKind::ALL {
        for context in [kind.least_context(), 33, 64, 100] {
            let task = Task::new(kind, context).unwrap();
            let mut rng = random::stream(1, "test");
            for _ in 0..100 {
                let sequence = task.sequence(&mut rng, context);
                assert_eq!(sequence.ids.len(), context);
                assert_eq!(sequence.labels.len(), context);
                assert!(sequence.answers.contains(&true), "{}", kind.name());
                let vocabulary = task.tokenizer().vocab_size();
                assert!(
                    sequence
                        .ids
                        .iter()
                        .chain(&sequence.labels)
                        .all(|&id| id < vocabulary)
                );
            }
        }
    }
}

#[test]
fn what_is_no_answer_is_labelled_with_a_dot_or_with_the_key_of_a_fact() {
    for kind in TaskKind::ALL {
        let facts = match kind {
            TaskKind::Recall => 4,
            TaskKind::DepthRecall => 6,
            _ => 0,
        };
        for (words, labels, answers) in sequences(kind) {
            for place in 0..CONTEXT {
                if place < 2 * facts && place % 2 == 1 {
                    assert_eq!(labels[place], words[place - 1].trim_end_matches(':'));
                    assert!(!answers[place]);
                } else {
                    assert_eq!(labels[place] != ".", answers[place], "{}", kind.name());
                }
            }
        }
    }
}

#[test]
fn recall_answers_with_the_value_behind_the_key() {
    for (words, labels, answers) in sequences(TaskKind::Recall) {
        let facts: HashMap<&str, &str> = (0..4)
            .map(|fact| (words[2 * fact].as_str(), words[2 * fact + 1].as_str()))
            .collect();
        assert_eq!(facts.len(), 4, "keys differ");
        for place in (0..CONTEXT).filter(|&place| answers[place]) {
            assert_eq!(labels[place], facts[words[place].trim_end_matches('?')]);
        }
    }
}

#[test]
fn depth_recall_follows_the_ring_once_or_twice() {
    let mut kinds = [0, 0];
    for (words, labels, answers) in sequences(TaskKind::DepthRecall) {
        let facts: HashMap<&str, &str> = (0..6)
            .map(|fact| {
                (
                    words[2 * fact].trim_end_matches(':'),
                    words[2 * fact + 1].as_str(),
                )
            })
            .collect();
        for place in (0..CONTEXT).filter(|&place| answers[place]) {
            let name = words[place].trim_end_matches('?');
            let hops = words[place].len() - name.len();
            kinds[hops - 1] += 1;
            let mut at = name;
            (0..hops).for_each(|_| at = facts[at]);
            assert_eq!(labels[place], at);
            assert_ne!(at, name);
        }
    }
    assert!(kinds[0] > 500 && kinds[1] > 500);
}

#[test]
fn copy_and_sort_answer_with_the_list() {
    for kind in [TaskKind::Copy, TaskKind::Sort] {
        for (words, labels, answers) in sequences(kind) {
            let mut list = Vec::new();
            let mut wanted = Vec::new();
            for place in 0..CONTEXT {
                if words[place] == ">" {
                    wanted = std::mem::take(&mut list);
                    if kind == TaskKind::Sort {
                        wanted.sort();
                    }
                    wanted.reverse();
                } else if !answers[place]
                    && wanted.is_empty()
                    && (place == 0 || !answers[place - 1])
                {
                    list.push(words[place].clone());
                }
                if answers[place] {
                    assert_eq!(Some(&labels[place]), wanted.pop().as_ref());
                    if place + 1 < CONTEXT {
                        assert_eq!(
                            words[place + 1],
                            labels[place],
                            "the answer is written down"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn modular_answers_with_the_last_digit_of_the_sum() {
    for (words, labels, answers) in sequences(TaskKind::Modular) {
        for place in (0..CONTEXT).filter(|&place| answers[place]) {
            let digit = |at: usize| {
                words[at]
                    .trim_end_matches(['+', '='])
                    .parse::<u32>()
                    .unwrap()
            };
            assert!(words[place - 1].ends_with('+') && words[place].ends_with('='));
            let sum = (digit(place - 1) + digit(place)) % 10;
            assert_eq!(labels[place], sum.to_string());
        }
    }
}

#[test]
fn validation_is_the_same_for_every_seed_and_differs_from_training() {
    let shape = BatchShape {
        batch: 4,
        context: CONTEXT,
    };
    for kind in TaskKind::ALL {
        let data = Dataset::Task(task(kind));
        let first = data.eval_batch(0, shape);
        assert_eq!(first, data.eval_batch(0, shape));
        assert_eq!(data.eval_batch_count(shape, 0), 64);
        assert_eq!(data.eval_batch_count(shape, 20), 20);
        let (mut ids, mut labels) = (Vec::new(), Vec::new());
        for seed in 0..20 {
            let draw = Draw {
                seed,
                step: 1,
                micro: 0,
            };
            data.train_batch(draw, shape, &mut ids, &mut labels);
            assert_ne!(ids, first.ids);
        }
    }
}

#[test]
fn the_last_validation_batch_is_padded_and_says_so() {
    let data = Dataset::Task(task(TaskKind::Recall));
    let shape = BatchShape {
        batch: 12,
        context: CONTEXT,
    };
    let count = data.eval_batch_count(shape, 0);
    assert_eq!(count, 22);
    let last = data.eval_batch(count - 1, shape);
    assert_eq!(last.counted, (256 - 21 * 12) * CONTEXT);
    assert_eq!(last.ids.len(), shape.rows());
    assert!(last.answers.iter().all(|&row| row < last.counted));
    assert!(last.answers.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn tasks_have_different_fingerprints_and_names() {
    let mut seen = Vec::new();
    for kind in TaskKind::ALL {
        assert_eq!(TaskKind::of(kind.name()).unwrap(), kind);
        let fingerprint = Dataset::Task(task(kind)).fingerprint();
        assert!(!seen.contains(&fingerprint));
        seen.push(fingerprint);
    }
    let message = TaskKind::of("recal").unwrap_err().to_string();
    assert!(
        message.contains("recall, copy, sort, modular, depth-recall"),
        "{message}"
    );
}

#[test]
fn a_context_too_short_for_a_question_is_refused() {
    let message = Task::new(TaskKind::Recall, 8).unwrap_err().to_string();
    assert!(
        message.contains("model.context") && message.contains("9 or more"),
        "{message}"
    );
}

#[test]
fn a_task_prompt_ends_in_its_first_question() {
    let data = Dataset::Task(task(TaskKind::Recall));
    let prompt = data.tokenizer().decode(&data.prompt(CONTEXT));
    assert!(
        prompt.ends_with('?') && prompt.split(' ').count() == 9,
        "{prompt}"
    );
}
