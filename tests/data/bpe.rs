//! Byte pair encoding: what is learnt, what is encoded, what is refused.

use braid_engine::Error;
use braid_engine::data::tokenizer::{Bpe, StreamDecoder, Tokenizer};
use braid_engine::data::{TextDataset, TextOptions, TokenizerKind};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Words of different frequency, blanks, marks and letters of two bytes.
fn text() -> String {
    let syllables = ["ka", "né", "sto", "rim", "ü", "pal", "th", "onse"];
    let word = |number: usize| -> String {
        let parts = [number % 8, number / 3 % 8, number / 5 % 7];
        parts[..1 + number % 3]
            .iter()
            .map(|&part| syllables[part])
            .collect()
    };
    (0..3000_usize)
        .map(|i| match i % 9 {
            0 => format!("{}.\n", word(i * i)),
            5 => format!("\t\"{} {}\", ", i % 97, word(i)),
            _ => word(i * 7 % 61) + " ",
        })
        .collect()
}

fn learn(bytes: &[u8], size: u32) -> Result<Bpe, Error> {
    Bpe::train(bytes, size, &mut |_, _| ())
}

fn whole(bpe: &Bpe, ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|&id| bpe.token(id)).copied().collect()
}

/// The library, as another program uses it.
fn library(json: &str) -> tokenizers::Tokenizer {
    tokenizers::Tokenizer::from_bytes(json).unwrap()
}

/// Count all pairs of all words after every merge.
fn merges_by_definition(words: &[&str], count: usize) -> Vec<(String, String)> {
    let mut words: Vec<Vec<String>> = words
        .iter()
        .map(|word| word.chars().map(String::from).collect())
        .collect();
    let mut merges = Vec::new();
    while merges.len() < count {
        let mut pairs = std::collections::BTreeMap::<(String, String), usize>::new();
        for pair in words.iter().flat_map(|word| word.windows(2)) {
            *pairs.entry((pair[0].clone(), pair[1].clone())).or_default() += 1;
        }
        let most = pairs.values().copied().max().unwrap_or(0);
        let mut best = pairs.iter().filter(|(_, n)| **n == most && most >= 2);
        let Some(((a, b), _)) = best.next() else {
            break;
        };
        // The order of equal ones is by token numbers: the texts of these tests have none.
        assert_eq!(best.next(), None, "{a} {b}: a tie");
        for word in &mut words {
            let mut merged: Vec<String> = Vec::new();
            for token in word.drain(..) {
                if token == *b && merged.pop_if(|last| last == a).is_some() {
                    merged.push(format!("{a}{b}"));
                } else {
                    merged.push(token);
                }
            }
            *word = merged;
        }
        merges.push((a.clone(), b.clone()));
    }
    merges
}

fn merges(bpe: &Bpe) -> Vec<(String, String)> {
    let file: Value = serde_json::from_str(bpe.to_json()).unwrap();
    serde_json::from_value(file["model"]["merges"].clone()).unwrap()
}

#[test]
fn the_merges_are_those_of_the_definition() {
    let mut words = Vec::new();
    for (number, word) in ["abcabcabc", "aaaa", "bcbcdab", "dabdab", "cabd"]
        .iter()
        .enumerate()
    {
        words.extend(std::iter::repeat_n(*word, 31 + 7 * number * number));
    }
    let wanted = merges_by_definition(&words, 6);
    // Words are cut at line ends only, which are words of their own.
    let bpe = learn(words.join("\n").as_bytes(), 256 + 6).unwrap();
    assert_eq!(merges(&bpe), wanted);
    assert_eq!(wanted[0], ("a".into(), "b".into()));
}

#[test]
fn of_equally_frequent_pairs_the_first_tokens_merge_first() {
    // `xy` and `cd` occur twice each; `c` has the smaller number.
    let bpe = learn(b"cd\nxy\ncd\nxy", 258).unwrap();
    assert_eq!(
        merges(&bpe),
        [("c".into(), "d".into()), ("x".into(), "y".into())]
    );
}

#[test]
fn the_same_text_gives_the_same_file() {
    let text = text();
    let first = learn(text.as_bytes(), 400).unwrap();
    let mut heard = Vec::new();
    let second = Bpe::train(text.as_bytes(), 400, &mut |done, of| heard.push((done, of))).unwrap();
    assert_eq!(first.to_json(), second.to_json());
    assert_eq!(heard.last(), Some(&(144, 144)));
    assert!(heard.is_sorted());
    assert_eq!(first.size(), 400);
}

#[test]
fn another_program_finds_the_same_tokens() {
    let text = text();
    let bpe = learn(text.as_bytes(), 400).unwrap();
    let library = library(bpe.to_json());
    let ids = bpe.encode(text.as_bytes());
    assert!(ids.len() * 2 < text.len(), "{} tokens", ids.len());
    assert_eq!(
        library.encode_fast(text.as_str(), true).unwrap().get_ids(),
        ids
    );
    assert_eq!(library.decode(&ids, true).unwrap(), text);
}

#[test]
fn long_texts_are_cut_where_words_end() {
    let text = text().repeat(4_000_000 / text().len());
    let bpe = learn(&text.as_bytes()[..100_000], 300).unwrap();
    let ids = bpe.encode(text.as_bytes());
    assert_eq!(
        library(bpe.to_json())
            .encode_fast(text.as_str(), false)
            .unwrap()
            .get_ids(),
        ids
    );
}

/// Line ends that look fit for a cut to those who know the blanks of ASCII only.
#[test]
fn long_texts_are_not_cut_beside_blanks_of_any_script() {
    let lines = ["abc\u{b}\n", "abc\u{2003}\n", "abc\n\u{a0}\u{a0}"];
    // In these the blank and the line end are one word.
    let words = ["abc\u{b}\n\n", "abc\u{2003}\n\n", "abc\n\u{a0}\u{a0}"];
    let bpe = learn(words.map(|word| word.repeat(99)).concat().as_bytes(), 264).unwrap();
    for line in lines {
        let text = (line.repeat(10_000) + "abc\n").repeat(1_500_000 / (10_000 * line.len()));
        assert_eq!(
            library(bpe.to_json())
                .encode_fast(text.as_str(), false)
                .unwrap()
                .get_ids(),
            bpe.encode(text.as_bytes()),
            "{line:?}"
        );
    }
}

#[test]
fn texts_without_blanks_or_of_blanks_alone_are_learnt_from_and_come_back() {
    for text in [
        "ACGT".repeat(700_000),
        " ".repeat(2_500_000),
        "é".repeat(1_200_000),
    ] {
        let bpe = learn(text.as_bytes(), 258).unwrap();
        assert_eq!(whole(&bpe, &bpe.encode(text.as_bytes())), text.as_bytes());
    }
}

#[test]
fn a_stream_never_splits_a_character() {
    // All of these begin with the same two of their three bytes: a token that ends within a character.
    let tokenizer = Tokenizer::Bpe(learn("€\n₭\n₮\n₯\n".as_bytes(), 257).unwrap());
    assert_eq!(tokenizer.token_text(256), "0xe20x82");
    let text = "a€🙂ë z";
    let mut decoder = StreamDecoder::new(&tokenizer);
    let mut said = String::new();
    for id in tokenizer.encode(text).ids {
        let part = decoder.push(id);
        assert!(!part.contains(char::REPLACEMENT_CHARACTER), "{part}");
        said.push_str(&part);
    }
    assert_eq!(decoder.finish(), "");
    assert_eq!(said, text);
}

#[test]
fn tokens_are_printed_so_that_they_can_be_seen() {
    let tokenizer = Tokenizer::Bpe(learn(b" the\n the\n the", 259).unwrap());
    let shown: Vec<String> = (256..260).map(|id| tokenizer.token_text(id)).collect();
    assert_eq!(shown, ["he", "the", " the", "#259"]);
    let byte = tokenizer.encode("\n").ids[0];
    assert_eq!(tokenizer.token_text(byte), "\\n");
}

#[test]
fn sizes_that_cannot_be_are_refused_with_a_sentence() {
    let sentence = |bytes: &[u8], size| learn(bytes, size).unwrap_err().to_string();
    for size in [0, 255, 32_769] {
        let message = sentence(b"abab", size);
        assert!(
            message.contains("data.vocab") && message.contains("256"),
            "{message}"
        );
    }
    let message = sentence(b"abab abab", 300);
    assert!(message.contains("258 tokens"), "{message}");
    assert!(sentence(b"", 257).contains("256 tokens"));
    assert_eq!(learn(b"", 256).unwrap().size(), 256);
}

#[test]
fn the_validation_part_has_no_part_in_the_vocabulary() {
    let read = |text: &str| {
        let options = TextOptions {
            name: "x",
            tokenizer: TokenizerKind::Bpe(300),
            vocabulary: None,
            val_fraction: 0.5,
            context: 8,
        };
        TextDataset::new(text.as_bytes(), &options).unwrap()
    };
    let text = text();
    let half = &text[..text.len() / 2];
    let other = format!("{half}{}", "z".repeat(text.len() - half.len()));
    assert_eq!(read(&text).tokenizer(), read(&other).tokenizer());
}

#[test]
fn no_token_reaches_over_the_cut_between_training_and_validation() {
    // Words of different density: a part of the tokens is another part of the bytes.
    let text = text().replace('.', " €") + &"kaka ".repeat(3000);
    for val_fraction in [0.1, 0.35, 0.5, 0.77] {
        let mut cut = (text.len() as f64 * (1.0 - val_fraction)) as usize;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let options = TextOptions {
            name: "x",
            tokenizer: TokenizerKind::Bpe(300),
            vocabulary: None,
            val_fraction,
            context: 8,
        };
        let first = TextDataset::new(text.as_bytes(), &options).unwrap();
        let resumed = TextOptions {
            vocabulary: Some(first.tokenizer()),
            ..options
        };
        let again = TextDataset::new(text.as_bytes(), &resumed).unwrap();
        let Tokenizer::Bpe(bpe) = first.tokenizer() else {
            panic!("{:?}", first.tokenizer());
        };
        assert_eq!(bpe, &learn(&text.as_bytes()[..cut], 300).unwrap());
        let ids: Vec<u32> = first.validation().collect();
        assert_eq!(whole(bpe, &ids), &text.as_bytes()[cut..], "{val_fraction}");
        let train = bpe.encode(&text.as_bytes()[..cut]).len();
        assert_eq!(first.parts(), (train, ids.len()));
        assert_eq!(again.parts(), first.parts());
    }
}

#[test]
fn a_text_of_too_few_pairs_of_bytes_is_refused_with_a_sentence() {
    let options = TextOptions {
        name: "x",
        tokenizer: TokenizerKind::Bpe(300),
        vocabulary: None,
        val_fraction: 0.001,
        context: 512,
    };
    let message = TextDataset::new(text().as_bytes(), &options)
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("x is too short") && message.contains("Give a longer text"),
        "{message}"
    );
}

/// A file with something changed in it.
fn changed(change: impl Fn(&mut Value)) -> String {
    let mut file: Value =
        serde_json::from_str(learn(text().as_bytes(), 270).unwrap().to_json()).unwrap();
    change(&mut file);
    file.to_string()
}

#[test]
fn files_that_cannot_be_used_are_refused_with_a_sentence() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 15] = [
        (|f| f["model"]["type"] = "WordPiece".into(), "WordPiece"),
        (|f| f["model"]["vocab"] = json!({}), "no vocabulary"),
        (|f| f["model"]["merges"] = json!(null), "no merges"),
        (|f| f["model"]["merges"] = json!([["a", "never"]]), "never"),
        (|f| f["model"]["merges"] = json!(["a"]), "not of two tokens"),
        (|f| f["model"]["end_of_word_suffix"] = "</w>".into(), "</w>"),
        (|f| f["model"]["dropout"] = json!(0.1), "dropout"),
        (|f| f["model"]["vocab"]["a"] = json!(1_u64 << 40), "65536"),
        (|f| f["model"]["vocab"]["a"] = json!(3), "two tokens"),
        (
            |f| {
                f["model"]["merges"] = json!([]);
                f["model"]["vocab"].as_object_mut().unwrap().remove("Ġ");
            },
            "0x20",
        ),
        (
            // An added token is no token of a byte.
            |f| {
                f["model"]["merges"] = json!([]);
                let vocabulary = f["model"]["vocab"].as_object_mut().unwrap();
                let number = vocabulary.remove("Ġ").unwrap();
                let last = vocabulary.values_mut().find(|id| **id == 269).unwrap();
                *last = number;
                f["added_tokens"] = json!([{ "id": 269, "content": " ", "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": false }]);
            },
            "0x20",
        ),
        (|f| f["normalizer"] = json!({ "type": "NFC" }), "NFC"),
        (|f| f["pre_tokenizer"] = json!(null), "ByteLevel"),
        (
            |f| f["pre_tokenizer"]["add_prefix_space"] = json!(true),
            "add_prefix_space",
        ),
        (
            |f| {
                f["added_tokens"] = json!([{ "id": 270, "content": "<x>", "single_word": false, "lstrip": true,
                    "rstrip": false, "normalized": false, "special": true }]);
            },
            "lstrip",
        ),
    ];
    for (change, word) in cases {
        let message = Bpe::from_json(&changed(change)).unwrap_err().to_string();
        assert!(message.contains(word), "{word}: {message}");
        let message = Tokenizer::from_json(&changed(change))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("tokenizer.json cannot be used"),
            "{message}"
        );
    }
}

#[test]
fn a_file_with_a_special_token_gives_its_text_back() {
    let json = changed(|f| {
        f["added_tokens"] = json!([{ "id": 270, "content": "<|end|>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true }]);
        f["truncation"] = json!({ "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0 });
    });
    let bpe = Bpe::from_json(&json).unwrap();
    let ids = bpe.encode(b"the <|end|> other");
    assert_eq!(bpe.size(), 271);
    assert!(ids.contains(&270) && ids.len() > 2);
    assert_eq!(whole(&bpe, &ids), b"the <|end|> other");
    assert_eq!(Bpe::from_json(bpe.to_json()).unwrap(), bpe);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'\n'), 0x80..0xf8_u8], 0..200)) {
        thread_local! {
            static LEARNT: Bpe = {
                let mut bytes = text().into_bytes();
                bytes.extend([0xff, 0xfe, b' ', 0xc3].repeat(50));
                learn(&bytes, 350).unwrap()
            };
        }
        LEARNT.with(|bpe| {
            let ids = bpe.encode(&bytes);
            prop_assert!(ids.iter().all(|&id| id < bpe.size()));
            prop_assert_eq!(whole(bpe, &ids), &bytes[..]);
            let tokenizer = Tokenizer::Bpe(bpe.clone());
            prop_assert_eq!(tokenizer.decode(&ids), String::from_utf8_lossy(&bytes).into_owned());
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_can_be_learnt_from(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'a'), Just(b'b')], 0..300)) {
        let bpe = learn(&bytes, 256).unwrap();
        prop_assert_eq!(whole(&bpe, &bpe.encode(&bytes)), &bytes[..]);
        match learn(&bytes, 264) {
            Ok(bpe) => {
                prop_assert_eq!(bpe.size(), 264);
                prop_assert_eq!(whole(&bpe, &bpe.encode(&bytes)), &bytes[..]);
                prop_assert_eq!(&Tokenizer::from_json(bpe.to_json()).unwrap(), &Tokenizer::Bpe(bpe));
            }
            Err(error) => prop_assert!(error.to_string().contains("data.vocab")),
        }
    }
}
