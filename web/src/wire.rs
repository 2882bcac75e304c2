//! Messages between the page and its worker.
//!
//! MessagePack: JSON would turn bytes into lists of numbers, and a weight that is not a number into nothing at all.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message as bytes.
///
/// # Errors
/// If a value cannot be written, which would be a bug.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec_named(message)
        .map_err(|error| format!("a message cannot be written: {error}"))
}

/// A message from bytes.
///
/// # Errors
/// If they are no such message: page and worker are then of two versions.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| {
        format!("a message cannot be read ({error}): the page and its worker are of two versions; reload the page")
    })
}

#[cfg(test)]
mod tests {
    use braid_app::protocol::{Command, Draft, Event, Frame, Line, Site, SiteKind, Stream};

    use super::*;

    fn there_and_back<T: Serialize + DeserializeOwned>(message: &T) -> T {
        decode(&encode(message).expect("writes")).expect("reads")
    }

    #[test]
    fn a_text_travels_as_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let command = Command::Check {
            number: u64::MAX,
            draft: Draft {
                toml: "[model]".into(),
                text: Some(("a.txt".into(), bytes.repeat(100))),
            },
            device: "auto".into(),
        };
        assert!(encode(&command).expect("writes").len() < 25_700);
        assert_eq!(there_and_back(&command), command);
    }

    #[test]
    fn what_is_no_number_arrives_as_it_is() {
        let stream = Stream {
            sources: vec!["embed".into()],
            weight: vec![f64::NAN, f64::INFINITY, 0.1],
            max: None,
            entropy: Some(f64::NAN),
            floor: None,
        };
        let frame = Frame {
            step: (1 << 60) + 1,
            sites: vec![Site {
                site: 0,
                kind: SiteKind::Attn,
                streams: vec![stream],
                alpha: None,
                rho: None,
                beta: None,
                read: None,
                write: None,
                mix: None,
            }],
            ..Frame::default()
        };
        let Event::Frame(back) = there_and_back(&Event::Frame(Box::new(frame))) else {
            panic!("a frame stays a frame");
        };
        assert_eq!(back.step, (1 << 60) + 1);
        let weight = &back.sites[0].streams[0].weight;
        assert!(
            weight[0].is_nan()
                && weight[1].is_infinite()
                && weight[2].to_bits() == 0.1f64.to_bits()
        );
    }

    #[test]
    fn records_and_the_unit_variants_travel() {
        let lines = Line::read(
            "{\"event\":\"train\",\"step\":3,\"loss\":1.5,\"lr\":0.001,\"grad_norm\":null,\"tokens\":12}\n",
        );
        assert_eq!(lines.len(), 1);
        let event = Event::Lines(lines);
        assert_eq!(there_and_back(&event), event);
        assert_eq!(there_and_back(&Command::Pause), Command::Pause);
        assert_eq!(there_and_back(&Event::Ended), Event::Ended);
    }

    #[test]
    fn other_bytes_are_refused_with_a_sentence() {
        let error = decode::<Event>(&[0xc1, 0, 7]).expect_err("no message");
        assert!(error.contains("reload the page"), "{error}");
    }
}
