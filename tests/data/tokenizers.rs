//! Text to tokens and back.

use braid_engine::data::tokenizer::{Characters, StreamDecoder, Tokenizer, Words};
use proptest::prelude::*;

fn characters(text: &str) -> Tokenizer {
    Tokenizer::Char(Characters::of(text).unwrap())
}

fn words(list: &[&str]) -> Tokenizer {
    Tokenizer::Words(Words::new(list.iter().map(|&word| word.into()).collect()).unwrap())
}

#[test]
fn a_prompt_with_unknown_characters_is_replaced_and_reported() {
    let tokenizer = characters("aaaa");
    let encoded = tokenizer.encode("Zoë 🙂");
    assert_eq!(encoded.ids, [0; 5]);
    assert_eq!(encoded.replaced, ["Z", "o", "ë", " ", "🙂"]);
    let notice = encoded.notice.unwrap();
    assert!(
        notice.contains("`🙂`") && notice.contains("replaced by `a` (5 places)"),
        "{notice}"
    );
}

#[test]
fn unknown_characters_become_blanks_where_there_is_one() {
    let tokenizer = characters("b a");
    let encoded = tokenizer.encode("abcc");
    assert_eq!(tokenizer.decode(&encoded.ids), "ab  ");
    assert_eq!(encoded.replaced, ["c"]);
}

#[test]
fn a_known_prompt_needs_no_notice() {
    let encoded = characters("To be").encode("be To");
    assert_eq!((encoded.replaced.len(), encoded.notice), (0, None));
}

#[test]
fn bytes_take_every_text() {
    let encoded = Tokenizer::Byte.encode("ë\0");
    assert_eq!(encoded.ids, [0xc3, 0xab, 0]);
    assert_eq!(encoded.notice, None);
}

#[test]
fn words_need_no_blanks_where_the_longest_match_is_meant() {
    let tokenizer = words(&[".", "3", "3+", "5", "5=", "8"]);
    assert_eq!(tokenizer.encode("3+5=").ids, tokenizer.encode("3+ 5=").ids);
    assert_eq!(tokenizer.decode(&[2, 4, 5]), "3+ 5= 8");
    assert_eq!(tokenizer.stop(), Some(0));
}

#[test]
fn an_unknown_word_becomes_the_first_word() {
    let encoded = words(&[".", "a"]).encode("a zoë a");
    assert_eq!(encoded.ids, [1, 0, 1]);
    assert_eq!(encoded.replaced, ["zoë"]);
}

#[test]
fn a_stream_of_bytes_never_splits_a_character() {
    let mut decoder = StreamDecoder::new(&Tokenizer::Byte);
    let parts: Vec<String> = "aë🙂".bytes().map(|b| decoder.push(b.into())).collect();
    assert_eq!(parts, ["a", "", "ë", "", "", "", "🙂"]);
    assert_eq!(decoder.finish(), "");
}

#[test]
fn wrong_bytes_in_a_stream_become_replacement_characters() {
    let mut decoder = StreamDecoder::new(&Tokenizer::Byte);
    let text: String = [0xff, 0xc3, b'a', 0xf0, 0x9f]
        .iter()
        .map(|&b| decoder.push(b.into()))
        .collect();
    assert_eq!(text, "\u{fffd}\u{fffd}a");
    assert_eq!(decoder.finish(), "\u{fffd}");
    assert_eq!(
        Tokenizer::Byte.decode(&[0xff, 0xc3, 0x61, 0xf0, 0x9f]),
        "\u{fffd}\u{fffd}a\u{fffd}"
    );
}

#[test]
fn tokens_are_printed_so_that_they_can_be_seen() {
    assert_eq!(Tokenizer::Byte.token_text(10), "\\n");
    assert_eq!(Tokenizer::Byte.token_text(0xc3), "0xc3");
    assert_eq!(characters("a\n").token_text(0), "\\n");
    assert_eq!(characters("a").token_text(7), "#7");
}

#[test]
fn a_damaged_tokenizer_file_is_refused_with_a_sentence() {
    for text in [
        "",
        "{}",
        r#"{"kind":"bpe"}"#,
        r#"{"kind":"char","characters":""}"#,
        r#"{"kind":"char","characters":"ba"}"#,
        r#"{"kind":"char","characters":"aa"}"#,
        r#"{"kind":"words","words":["a","a"]}"#,
        r#"{"kind":"words","words":["a b"]}"#,
        r#"{"kind":"words","words":[""]}"#,
        r#"{"kind":"byte","extra":1}"#,
    ] {
        let error = Tokenizer::from_json(text).unwrap_err().to_string();
        assert!(
            error.starts_with("tokenizer.json cannot be used"),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn every_text_survives_its_own_characters(text in "\\PC{1,40}|[a\\n\\r\\t\\x00é漢🙂]{1,40}") {
        let tokenizer = characters(&text);
        let encoded = tokenizer.encode(&text);
        prop_assert_eq!(&encoded.notice, &None);
        prop_assert!(encoded.ids.iter().all(|&id| id < tokenizer.vocab_size()));
        prop_assert_eq!(tokenizer.decode(&encoded.ids), text);
    }

    #[test]
    fn every_text_survives_bytes(text in any::<String>()) {
        prop_assert_eq!(Tokenizer::Byte.decode(&Tokenizer::Byte.encode(&text).ids), text);
    }

    #[test]
    fn a_stream_says_what_the_whole_says(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut decoder = StreamDecoder::new(&Tokenizer::Byte);
        let mut text: String = bytes.iter().map(|&b| decoder.push(b.into())).collect();
        text.push_str(&decoder.finish());
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn any_prompt_becomes_tokens_of_the_vocabulary(known in "\\PC{1,20}", prompt in any::<String>()) {
        for tokenizer in [characters(&known), words(&[".", "a", "a?", "ab"]), Tokenizer::Byte] {
            let encoded = tokenizer.encode(&prompt);
            prop_assert!(encoded.ids.iter().all(|&id| id < tokenizer.vocab_size()));
            prop_assert_eq!(encoded.replaced.is_empty(), encoded.notice.is_none());
        }
    }

    #[test]
    fn files_of_tokenizers_round_trip(text in any::<String>()) {
        let mut all = vec![Tokenizer::Byte, words(&[".", "a:", "b??"])];
        if !text.is_empty() {
            all.push(characters(&text));
        }
        for tokenizer in all {
            prop_assert_eq!(Tokenizer::from_json(&tokenizer.to_json()).unwrap(), tokenizer);
        }
    }
}
