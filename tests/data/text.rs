//! Texts: reading, splitting, windows.

use braid_engine::Result;
use braid_engine::data::{
    BatchShape, Dataset, Draw, TextDataset, TextOptions, Tokenizer, TokenizerKind,
};
use proptest::prelude::*;

const SHAPE: BatchShape = BatchShape {
    batch: 3,
    context: 8,
};

fn read(bytes: &[u8], tokenizer: TokenizerKind) -> Result<TextDataset> {
    TextDataset::new(
        bytes,
        &TextOptions {
            name: "poem.txt",
            tokenizer,
            vocabulary: None,
            val_fraction: 0.1,
            context: SHAPE.context,
        },
    )
}

fn sentence(bytes: &[u8], tokenizer: TokenizerKind) -> String {
    read(bytes, tokenizer).unwrap_err().to_string()
}

/// A text in which no two windows of eight are alike.
fn long() -> Vec<u8> {
    (0..40)
        .flat_map(|n| format!("line {n:04}\n").into_bytes())
        .collect()
}

#[test]
fn the_split_is_by_position_at_the_end() {
    let text = read(&[b'x'; 1000], TokenizerKind::Byte).unwrap();
    assert_eq!(text.parts(), (900, 100));
}

#[test]
fn an_empty_file_is_refused() {
    assert!(sentence(b"", TokenizerKind::Byte).starts_with("poem.txt is empty"));
    assert!(sentence("\u{feff}".as_bytes(), TokenizerKind::Byte).contains("byte order mark"));
}

#[test]
fn a_text_shorter_than_the_context_is_refused_with_the_length_it_needs() {
    let message = sentence(&[b'x'; 60], TokenizerKind::Byte);
    assert!(
        message.contains("60 tokens") && message.contains("at least 81 tokens"),
        "{message}"
    );
    assert!(read(&[b'x'; 81], TokenizerKind::Byte).is_ok());
    assert!(read(&[b'x'; 80], TokenizerKind::Byte).is_err());
}

#[test]
fn utf16_is_recognised_with_and_without_a_mark() {
    let text = String::from_utf8(long()).unwrap();
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = [&[0xff, 0xfe][..], &little].concat();
    for bytes in [little, big, marked] {
        for kind in [TokenizerKind::Byte, TokenizerKind::Char] {
            assert!(sentence(&bytes, kind).contains("UTF-16"));
        }
    }
}

#[test]
fn a_binary_file_is_bytes_with_a_notice_and_no_characters() {
    let binary: Vec<u8> = (0..2000_u32).map(|n| (n * n % 251 + 3) as u8).collect();
    let text = read(&binary, TokenizerKind::Byte).unwrap();
    assert!(
        text.notices()[0].contains("not UTF-8"),
        "{:?}",
        text.notices()
    );
    let message = sentence(&binary, TokenizerKind::Char);
    assert!(message.contains("data.tokenizer = \"byte\""), "{message}");
}

#[test]
fn a_nul_is_kept_and_reported() {
    let mut bytes = long();
    bytes[5] = 0;
    for kind in [TokenizerKind::Byte, TokenizerKind::Char] {
        let text = read(&bytes, kind).unwrap();
        assert!(text.notices()[0].contains("NUL at byte 5"));
    }
}

#[test]
fn marks_and_line_ends_of_windows_do_not_reach_the_model() {
    let plain = long();
    let windows = String::from_utf8(plain.clone())
        .unwrap()
        .replace('\n', "\r\n");
    let windows = format!("\u{feff}{windows}");
    for kind in [TokenizerKind::Byte, TokenizerKind::Char] {
        let (clean, cleaned) = (
            read(&plain, kind).unwrap(),
            read(windows.as_bytes(), kind).unwrap(),
        );
        assert_eq!(cleaned.notices().len(), 2);
        assert_eq!(
            Dataset::Text(clean).fingerprint(),
            Dataset::Text(cleaned).fingerprint()
        );
    }
}

#[test]
fn a_resumed_run_keeps_its_vocabulary_and_refuses_other_characters() {
    let first = read(&long(), TokenizerKind::Char).unwrap();
    let again = |bytes: &[u8]| {
        TextDataset::new(
            bytes,
            &TextOptions {
                name: "poem.txt",
                tokenizer: TokenizerKind::Byte,
                vocabulary: Some(first.tokenizer()),
                val_fraction: 0.1,
                context: 8,
            },
        )
    };
    assert_eq!(again(&long()).unwrap().tokenizer(), first.tokenizer());
    let message = again(&[long(), b"Q".to_vec()].concat())
        .unwrap_err()
        .to_string();
    assert!(message.contains("character `Q`"), "{message}");
}

#[test]
fn the_fingerprint_sees_data_vocabulary_and_split() {
    let of = |bytes: &[u8], kind, val_fraction| {
        let options = TextOptions {
            name: "x",
            tokenizer: kind,
            vocabulary: None,
            val_fraction,
            context: 8,
        };
        Dataset::Text(TextDataset::new(bytes, &options).unwrap()).fingerprint()
    };
    let mut other = long();
    other[100] = b'!';
    let all = [
        of(&long(), TokenizerKind::Byte, 0.1),
        of(&long(), TokenizerKind::Char, 0.1),
        of(&long(), TokenizerKind::Byte, 0.2),
        of(&other, TokenizerKind::Byte, 0.1),
    ];
    for (position, one) in all.iter().enumerate() {
        assert!(!all[..position].contains(one));
    }
    assert_eq!(all[0], of(&long(), TokenizerKind::Byte, 0.1));
}

#[test]
fn training_windows_stay_in_the_training_part_and_reach_its_ends() {
    // 400 tokens: 360 for training, which holds no `v`.
    let bytes = [[b't'; 358].as_slice(), b"ez", &[b'v'; 40]].concat();
    let bytes = [b"a", &bytes[1..]].concat();
    let data = Dataset::Text(read(&bytes, TokenizerKind::Byte).unwrap());
    let (mut ids, mut labels, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for step in 1..400 {
        let draw = Draw {
            seed: 1,
            step,
            micro: 0,
        };
        data.train_batch(draw, SHAPE, &mut ids, &mut labels);
        seen.extend(ids.iter().chain(&labels).copied());
    }
    let has = |byte: u8| seen.contains(&u32::from(byte));
    assert!(has(b'a') && has(b'z') && !has(b'v'));
}

#[test]
fn labels_are_the_next_tokens() {
    let data = Dataset::Text(read(&long(), TokenizerKind::Byte).unwrap());
    let (mut ids, mut labels) = (vec![9; 5], vec![9; 7]);
    let draw = Draw {
        seed: 3,
        step: 7,
        micro: 1,
    };
    data.train_batch(draw, SHAPE, &mut ids, &mut labels);
    assert_eq!((ids.len(), labels.len()), (SHAPE.rows(), SHAPE.rows()));
    for (window, next) in ids.chunks(SHAPE.context).zip(labels.chunks(SHAPE.context)) {
        assert_eq!(window[1..], next[..SHAPE.context - 1]);
    }
}

#[test]
fn a_batch_depends_on_seed_step_and_micro_batch_only() {
    let data = Dataset::Text(read(&long(), TokenizerKind::Byte).unwrap());
    let at = |seed, step, micro| {
        let (mut ids, mut labels) = (Vec::new(), Vec::new());
        data.train_batch(Draw { seed, step, micro }, SHAPE, &mut ids, &mut labels);
        ids
    };
    let first = at(1, 1, 0);
    for other in [at(2, 1, 0), at(1, 2, 0), at(1, 1, 1)] {
        assert_ne!(first, other);
    }
    assert_eq!(first, at(1, 1, 0));
}

proptest! {
    #[test]
    fn validation_sees_every_token_once(len in 200_usize..600, batch in 1_usize..5, context in 1_usize..15) {
        // Tokens that count upwards: a byte tells its place.
        let bytes: Vec<u8> = (0..len).map(|n| 128 + (n % 127) as u8).collect();
        let options = TextOptions { name: "x", tokenizer: TokenizerKind::Byte, vocabulary: None, val_fraction: 0.1, context };
        let text = TextDataset::new(&bytes, &options).unwrap();
        let expected: Vec<u32> = text.validation().collect();
        let data = Dataset::Text(text);
        let shape = BatchShape { batch, context };
        let (mut ids, mut labels) = (Vec::<u32>::new(), Vec::<u32>::new());
        for index in 0..data.eval_batch_count(shape, 0) {
            let one = data.eval_batch(index, shape);
            prop_assert_eq!((one.ids.len(), one.labels.len()), (shape.rows(), shape.rows()));
            prop_assert!(one.counted > 0 && one.answers.is_empty());
            ids.extend(&one.ids[..one.counted]);
            labels.extend(&one.labels[..one.counted]);
        }
        prop_assert_eq!(&ids[..], &expected[..expected.len() - 1]);
        prop_assert_eq!(&labels[..], &expected[1..]);
        prop_assert_eq!(data.eval_batch_count(shape, 1), 1);
    }
}

#[test]
fn a_prompt_for_a_sample_is_the_start_of_the_validation_part() {
    let data = Dataset::Text(read(&long(), TokenizerKind::Byte).unwrap());
    let prompt = data.prompt(64);
    let text = String::from_utf8(long()).unwrap();
    assert!(text[360..].starts_with(&data.tokenizer().decode(&prompt)));
    assert!(!prompt.is_empty() && prompt.len() <= 32);
    assert_eq!(*data.tokenizer(), Tokenizer::Byte);
}
