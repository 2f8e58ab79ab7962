//! The names of messages from one PE to another.
//!
//! A message is a call in a team of two: the sender, then the receiver. Both must give the call the
//! same name, so the name does not say which PE sends. An error shows the message from the view of
//! each PE: `send of 8 bytes of u64 to PE 1`, `receive of 8 bytes of u64 from PE 0`.

use consort_fabric::{Rank, readable_type};

/// The beginning of the names of messages.
const MESSAGE: &str = "message of ";
const SEND: &str = "send of ";
const RECEIVE: &str = "receive of ";

/// The sender's rank in the team of a message.
const SENDER: Rank = Rank(0);

/// Returns the name of a message of `len` elements of type `datatype`, with `element_bytes` each.
/// The name contains the length in bytes, or in elements if an element has no bytes.
#[must_use]
pub fn message_name(len: usize, element_bytes: usize, datatype: &str) -> String {
    let (count, unit) =
        if element_bytes == 0 { (len, "element") } else { (len * element_bytes, "byte") };
    let plural = if count == 1 { "" } else { "s" };
    format!("{MESSAGE}{count} {unit}{plural} of {}", readable_type(datatype))
}

/// Returns the name of a call as `member` of its team sees it. `in_world` returns the members'
/// ranks in the world.
pub(crate) fn seen_by(
    member: Rank,
    name: String,
    in_world: impl Fn(Rank) -> Option<Rank>,
) -> String {
    let Some(message) = name.strip_prefix(MESSAGE) else { return name };
    // A program that has not chosen the algorithm does not need to see it.
    let what = message.rsplit_once(" by ").map_or(message, |(what, _)| what);
    let (call, way, peer) = match member {
        SENDER => (SEND, "to", Rank(1)),
        _ => (RECEIVE, "from", SENDER),
    };
    match in_world(peer) {
        Some(peer) => format!("{call}{what} {way} PE {peer}"),
        None => format!("{call}{what}"),
    }
}

/// Returns whether a call, named as a PE sees it, sends a message.
pub(crate) fn sends(call: &str) -> bool {
    call.starts_with(SEND)
}

/// Returns whether a call, named as a PE sees it, sends or receives a message.
pub(crate) fn is_message(call: &str) -> bool {
    sends(call) || call.starts_with(RECEIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_names_its_message_send_or_receive() {
        let in_world = |rank: Rank| Some(Rank([7, 3][rank.index()]));
        let seen = |member| {
            let name = format!("{} by direct", message_name(2, 8, "(u64) by u8"));
            seen_by(Rank(member), name, in_world)
        };
        assert_eq!(seen(0), "send of 16 bytes of (u64) by u8 to PE 3");
        assert_eq!(seen(1), "receive of 16 bytes of (u64) by u8 from PE 7");
        assert!(sends(&seen(0)) && is_message(&seen(0)));
        assert!(!sends(&seen(1)) && is_message(&seen(1)));
        let other = "barrier() by direct".to_owned();
        assert_eq!(seen_by(Rank(0), other.clone(), in_world), other);
        assert!(!is_message(&other));
    }

    #[test]
    fn elements_without_bytes_are_counted() {
        assert_eq!(message_name(1, 1, "u8"), "message of 1 byte of u8");
        assert_eq!(message_name(1, 0, "()"), "message of 1 element of ()");
        assert_eq!(message_name(3, 0, "()"), "message of 3 elements of ()");
    }
}
