//! Decoders of words that other processes send. Tests feed them arbitrary words.

use crate::{far::packet, launch::reason};

/// Reads why a job has failed.
pub fn failure(words: &[u64]) {
    if let Some(failure) = reason::decode(words) {
        let _ = failure.to_string();
    }
}

/// Reads the packets of a frame.
pub fn packets(mut frame: &[u64]) {
    while packet::take(&mut frame).is_some() {}
}
