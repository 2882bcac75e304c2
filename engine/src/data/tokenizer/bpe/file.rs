//! Reading a `tokenizer.json` of the `tokenizers` library: only what gives any bytes back, and nothing that makes the
//! library panic.

use serde_json::{Value, json};
use tokenizers::PreTokenizerWrapper;

use super::{alphabet, reason};
use crate::data::tokenizer::MAX_VOCABULARY;
use crate::error::{Error, Result};

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::File(message.into()))
}

/// A tokenizer whose encoding can be turned back.
pub(super) fn read(text: &str) -> Result<tokenizers::Tokenizer> {
    let mut file: Value = serde_json::from_str(text).map_err(reason)?;
    let kind = &file["model"]["type"];
    // Old files do not say it.
    if !(kind == "BPE" || (kind.is_null() && file["model"]["merges"].is_array())) {
        return refuse(format!(
            "its model is {kind}; it must be a byte-level BPE (\"BPE\")"
        ));
    }
    check_model(&file["model"])?;
    if !file["normalizer"].is_null() {
        return refuse(format!(
            "it has a normalizer ({}), so texts would not come back as they were; it must have none",
            file["normalizer"]["type"]
        ));
    }
    for added in file["added_tokens"].as_array().into_iter().flatten() {
        // Found in a text it is as it is written; made by merges it is what its characters stand for.
        let content = added["content"].as_str().unwrap_or_default();
        let other = alphabet::bytes(content).is_none_or(|bytes| bytes != content.as_bytes());
        if other && file["model"]["vocab"].get(content).is_some() {
            return refuse(format!(
                "its added token {content:?} is one of the vocabulary too, but for other bytes"
            ));
        }
        if added["lstrip"] == true || added["rstrip"] == true {
            return refuse(format!(
                "its added token {} takes the blanks beside it away (lstrip, rstrip), so texts would not come back as they \
                 were",
                added["content"]
            ));
        }
    }
    for key in ["truncation", "padding", "post_processor"] {
        file[key] = Value::Null;
    }
    file["decoder"] = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true });
    let tokenizer = tokenizers::Tokenizer::from_bytes(file.to_string()).map_err(reason)?;
    match tokenizer.get_pre_tokenizer().map(byte_level) {
        Some(Some(false)) => Ok(tokenizer),
        Some(Some(true)) => refuse(
            "it puts a blank before every text (add_prefix_space), so texts would not come back as they were",
        ),
        _ => refuse("it has no ByteLevel pre-tokenizer, so it cannot encode any bytes"),
    }
}

/// Whether it is, or ends with, the byte-level one; and whether that adds a blank.
fn byte_level(pre_tokenizer: &PreTokenizerWrapper) -> Option<bool> {
    let kept = |wrapper: &PreTokenizerWrapper| match wrapper {
        PreTokenizerWrapper::Digits(_) => true,
        // Other behaviours remove what the pattern finds.
        PreTokenizerWrapper::Split(split) => {
            split.behavior != tokenizers::SplitDelimiterBehavior::Removed
        }
        _ => false,
    };
    match pre_tokenizer {
        PreTokenizerWrapper::ByteLevel(bytes) => Some(bytes.add_prefix_space),
        PreTokenizerWrapper::Sequence(all) => match all.as_ref().split_last() {
            Some((PreTokenizerWrapper::ByteLevel(bytes), others)) if others.iter().all(kept) => {
                Some(bytes.add_prefix_space)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The library believes what a file says of its merges.
fn check_model(model: &Value) -> Result<()> {
    let Some(vocabulary) = model["vocab"].as_object().filter(|all| !all.is_empty()) else {
        return refuse("its model has no vocabulary (`model.vocab`)");
    };
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[key].as_str().is_some_and(|mark| !mark.is_empty()) {
            return refuse(format!(
                "its model marks parts of words (`{key}` is {}), so it is not byte-level",
                model[key]
            ));
        }
    }
    if model["dropout"].as_f64().is_some_and(|share| share > 0.0) {
        return refuse(format!(
            "its model leaves out merges at random (`dropout` is {}); set it to null",
            model["dropout"]
        ));
    }
    for (token, id) in vocabulary {
        if id.as_u64().is_none_or(|id| id >= MAX_VOCABULARY as u64) {
            return refuse(format!(
                "its token {token:?} has the number {id}; there can be {MAX_VOCABULARY} tokens, numbered from 0"
            ));
        }
    }
    let Some(merges) = model["merges"].as_array() else {
        return refuse("its model has no merges (`model.merges`)");
    };
    for merge in merges {
        let pair = match merge {
            Value::String(text) => text.split_once(' '),
            Value::Array(pair) => match pair.as_slice() {
                [Value::String(left), Value::String(right)] => {
                    Some((left.as_str(), right.as_str()))
                }
                _ => None,
            },
            _ => None,
        };
        let known = pair.is_some_and(|(left, right)| {
            [left, right, &format!("{left}{right}")]
                .iter()
                .all(|token| vocabulary.contains_key(*token))
        });
        if !known {
            return refuse(format!(
                "its merge {merge} is not of two tokens of the vocabulary that make a third"
            ));
        }
    }
    Ok(())
}

/// What every token stands for.
pub(super) fn tokens(tokenizer: &tokenizers::Tokenizer) -> Result<Vec<Vec<u8>>> {
    let added = tokenizer.get_added_tokens_decoder();
    let vocabulary = tokenizer.get_vocab(true);
    let size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
    if size > MAX_VOCABULARY {
        return refuse(format!(
            "it has {size} tokens; there can be {MAX_VOCABULARY}"
        ));
    }
    let mut tokens = vec![Vec::new(); size];
    for (token, id) in vocabulary {
        let place = &mut tokens[id as usize];
        if !place.is_empty() {
            return refuse(format!("it gives the number {id} to two tokens"));
        }
        *place = match added.contains_key(&id) {
            true => token.into_bytes(),
            // A token with other characters is never found in a text; it is shown as it is written.
            false => alphabet::bytes(&token).unwrap_or_else(|| token.into_bytes()),
        };
    }
    Ok(tokens)
}
