//! The packets that processes send each other, encoded in words.
//!
//! | words of a packet | content |
//! | --- | --- |
//! | 1 | the number of words of the packet |
//! | 1 | its kind |
//! | some | its fields |
//! | the rest | its data |
//!
//! If a packet cannot be decoded, this library has not sent it.

use consort_fabric::{Atomic, Rank, Signal};

use crate::{directory::groups::GroupKey, heap::word::Width, memory::region::Memory};

/// A field of a packet, in one or more words.
pub(super) trait Field: Sized {
    fn write(&self, words: &mut Vec<u64>);
    /// Takes the field from the beginning of `words`.
    fn read(words: &mut &[u64]) -> Option<Self>;
}

impl Field for u64 {
    fn write(&self, words: &mut Vec<u64>) {
        words.push(*self);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        words.split_off_first().copied()
    }
}

/// Fields that are numbers, one word each.
macro_rules! numbers {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Field for $type {
            fn write(&self, words: &mut Vec<u64>) {
                let to: fn(&$type) -> u64 = $to;
                words.push(to(self));
            }

            fn read(words: &mut &[u64]) -> Option<Self> {
                let from: fn(u64) -> Option<$type> = $from;
                from(u64::read(words)?)
            }
        }
    )*};
}

numbers! {
    u32: |&number| number.into(), |word| word.try_into().ok();
    usize: |&number| number as u64, |word| word.try_into().ok();
    Rank: |rank| rank.0.into(), |word| word.try_into().ok().map(Rank);
    Width: |width| width.bytes() as u64, |word| match word {
        4 => Some(Width::Four),
        8 => Some(Width::Eight),
        _ => None,
    };
}

impl Field for bool {
    fn write(&self, words: &mut Vec<u64>) {
        words.push((*self).into());
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        u64::read(words).map(|word| word != 0)
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, words: &mut Vec<u64>) {
        self.len().write(words);
        self.iter().for_each(|one| one.write(words));
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        let count = usize::read(words)?;
        (0..count).map(|_| T::read(words)).collect()
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn write(&self, words: &mut Vec<u64>) {
        self.0.write(words);
        self.1.write(words);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        Some((A::read(words)?, B::read(words)?))
    }
}

/// Enumerations whose variants have fields. Each is itself a field of a packet.
macro_rules! fields {
    ($($(#[$doc:meta])* enum $name:ident {
        $($(#[$of:meta])* $variant:ident { $($field:ident: $type:ty),* } = $kind:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$of])* $variant { $($field: $type),* },)*
        }

        impl Field for $name {
            fn write(&self, words: &mut Vec<u64>) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        words.push($kind);
                        $($field.write(words);)*
                    })*
                }
            }

            fn read(words: &mut &[u64]) -> Option<Self> {
                Some(match u64::read(words)? {
                    $($kind => Self::$variant { $($field: <$type>::read(words)?),* },)*
                    _ => return None,
                })
            }
        }
    )*};
}

/// Enumerations from other modules: for each kind, the variant and its fields.
macro_rules! variants {
    ($($name:ident { $($kind:literal: { $($variant:tt)* } [$($field:ident),*];)* })*) => {$(
        impl Field for $name {
            fn write(&self, words: &mut Vec<u64>) {
                match self {
                    $($($variant)* => {
                        words.push($kind);
                        $($field.write(words);)*
                    })*
                }
            }

            fn read(words: &mut &[u64]) -> Option<Self> {
                Some(match u64::read(words)? {
                    $($kind => {
                        $(let $field = Field::read(words)?;)*
                        $($variant)*
                    })*
                    _ => return None,
                })
            }
        }
    )*};
}

variants! {
    Atomic {
        0: { Self::Load } [];
        1: { Self::Swap(new) } [new];
        2: { Self::CompareSwap { current, new } } [current, new];
        3: { Self::FetchAdd(by) } [by];
        4: { Self::FetchAnd(by) } [by];
        5: { Self::FetchOr(by) } [by];
        6: { Self::FetchXor(by) } [by];
    }

    Signal {
        0: { Self::Set(value) } [value];
        1: { Self::Add(by) } [by];
    }

    GroupKey {
        0: { Self::Color(parent, made, color) } [parent, made, color];
        1: { Self::Strided(first, stride) } [first, stride];
    }
}

/// The identity of an exposure to a far PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exposure {
    pub(crate) group: u64,
    /// The ranks in the group.
    pub(crate) owner: Rank,
    pub(crate) peer: Rank,
    pub(crate) position: usize,
    pub(crate) number: u32,
}

impl Field for Exposure {
    fn write(&self, words: &mut Vec<u64>) {
        let Self { group, owner, peer, position, number } = self;
        group.write(words);
        owner.write(words);
        peer.write(words);
        position.write(words);
        number.write(words);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        Some(Self {
            group: Field::read(words)?,
            owner: Field::read(words)?,
            peer: Field::read(words)?,
            position: Field::read(words)?,
            number: Field::read(words)?,
        })
    }
}

fields! {
    /// Memory that far PEs read and write.
    enum FarMemory {
        /// The heap of a PE, by its rank in the world.
        Heap { pe: Rank } = 0,
        /// A buffer that a PE has exposed.
        Exposed { exposure: Exposure } = 1,
    }

    /// A message from one process to another, to which the other does not reply.
    enum Packet {
        /// Words of a group, from index `at` on. The last word completes a message to a PE. The
        /// words are the data.
        Words { group: u64, to: Rank, at: usize } = 0,
        /// A PE has detached a buffer that another PE exposed in its call at a window position.
        Detached { group: u64, owner: Rank, position: usize } = 1,
        /// Bytes to write to some memory. The bytes are the data.
        Put { place: FarMemory, at: usize, bytes: usize } = 2,
        /// A signal to a word of a heap.
        Signal { pe: Rank, word: usize, width: Width, how: Signal } = 3,
        /// Another hold on a block of symmetric memory, given by the number of its allocation.
        Hold { group: u64, number: u64 } = 4,
        /// One hold less on a block.
        Release { group: u64, number: u64 } = 5,
        /// One hold less on the number of a name.
        ReleaseName { number: u64 } = 6,
        /// The job has failed. The reason is the data.
        Failed {} = 7,
        /// The programs of the process have ended.
        Ended {} = 8,
        /// The reply to a request. Its contents are the data.
        Reply { id: u64 } = 9,
        /// A request.
        Request { id: u64, request: Request } = 10,
        /// The process sends nothing more.
        Closing {} = 11,
        /// The process wants bytes of some memory, and pulls them.
        LongGet { place: FarMemory, at: usize, bytes: usize, tag: u32 } = 12,
        /// Bytes for some memory are coming. The process pushes them.
        LongPut { place: FarMemory, at: usize, bytes: usize, tag: u32 } = 13,
        /// The wanted memory does not exist.
        Refused { tag: u32 } = 14,
        /// Words that a member of a group publishes, from index `at` on. The words are the data.
        Published { group: u64, member: Rank, at: usize } = 15,
    }

    /// A request from one process to another.
    enum Request {
        /// Whether the process has carried out everything that it was sent before. The reply is
        /// empty.
        Fence {} = 0,
        /// The number of a name, with another hold. The name is the data, of `bytes` bytes. The
        /// reply is 0 if there is none.
        Number { bytes: usize } = 1,
        /// The name of a number, as bytes. The reply is empty if there is none.
        Name { number: u64 } = 2,
        /// The place of a block of symmetric memory.
        Block { group: u64, number: u64, holders: usize, requested: usize } = 3,
        /// The number of a group that is being formed.
        Group { forming: GroupKey, pes: usize } = 4,
        /// Bytes of some memory. The reply is empty if there is no such memory.
        Get { place: FarMemory, at: usize, bytes: usize } = 5,
        /// An operation on a word of a heap. The reply is the old value.
        Atomic { pe: Rank, word: usize, width: Width, operation: Atomic } = 6,
        /// The words that a member of a group publishes. They arrive as `Published`, before the
        /// reply, which is empty.
        Published { group: u64, member: Rank } = 7,
        /// The states of the PEs of the process. The reply is a `Report`, or empty if the job has
        /// failed.
        Report {} = 8,
        /// The place and the purpose of a wait of a PE of the process. The reply is a
        /// `Description`, or empty if the PE does not wait.
        Describe { pe: Rank } = 9,
    }
}

/// Begins a packet at the end of a frame, and returns its index. The packet's data follows.
pub(super) fn begin(frame: &mut Vec<u64>, packet: &Packet) -> usize {
    let begin = frame.len();
    frame.push(0);
    packet.write(frame);
    begin
}

/// Ends the packet that begins at an index, with all words after it.
pub(super) fn end(frame: &mut [u64], begin: usize) {
    frame[begin] = (frame.len() - begin) as u64;
}

/// Encodes a field in words.
pub(super) fn words_of_field(field: &impl Field) -> Vec<u64> {
    let mut words = Vec::new();
    field.write(&mut words);
    words
}

/// Appends the contents of some memory to a frame, as data of a packet.
pub(super) fn append_memory(frame: &mut Vec<u64>, source: Memory) {
    let begin = frame.len();
    frame.resize(begin + source.bytes.div_ceil(8), 0);
    Memory::private(frame[begin..].as_mut_ptr().cast(), source.bytes).copy_from(source);
}

/// Returns the memory of a packet's data of `bytes` bytes.
pub(super) fn memory_of(data: &[u64], bytes: usize) -> Option<Memory> {
    let is_there = bytes <= size_of_val(data);
    is_there.then(|| Memory::private(data.as_ptr().cast_mut().cast(), bytes))
}

/// Takes the first packet, with its data, from a frame.
pub(crate) fn take<'f>(frame: &mut &'f [u64]) -> Option<(Packet, &'f [u64])> {
    let words = usize::try_from(*frame.first()?).ok()?;
    let mut data = frame.split_off(..words)?.get(1..)?;
    let packet = Packet::read(&mut data)?;
    Some((packet, data))
}

impl Field for String {
    fn write(&self, words: &mut Vec<u64>) {
        self.len().write(words);
        words.extend(words_of(self.as_bytes()));
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        let bytes = usize::read(words)?;
        let text = words.split_off(..bytes.div_ceil(8))?;
        Self::from_utf8(bytes_of(text, bytes)?).ok()
    }
}

/// Encodes the bytes of a text in words.
pub(super) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}

/// Returns the first `bytes` bytes in `words`.
pub(super) fn bytes_of(words: &[u64], bytes: usize) -> Option<Vec<u8>> {
    let all: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    (bytes <= all.len()).then(|| all[..bytes].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Packet> {
        let exposure = Exposure { group: 3, owner: Rank(1), peer: Rank(2), position: 7, number: 1 };
        let (pe, place) = (Rank(5), FarMemory::Exposed { exposure });
        let request = |request| Packet::Request { id: 9, request };
        let forming = GroupKey::Color(1, 2, 3);
        let operation = Atomic::CompareSwap { current: 1, new: 2 };
        vec![
            Packet::Words { group: 0, to: pe, at: 17 },
            Packet::Put { place, at: 8, bytes: 3 },
            Packet::Put { place: FarMemory::Heap { pe }, at: 8, bytes: 3 },
            Packet::Signal { pe, word: 8, width: Width::Four, how: Signal::Add(u64::MAX) },
            Packet::Failed {},
            request(Request::Group { forming, pes: 4 }),
            Packet::Published { group: 3, member: pe, at: 17 },
            request(Request::Published { group: 3, member: pe }),
            request(Request::Report {}),
            request(Request::Describe { pe }),
            request(Request::Atomic { pe, word: 8, width: Width::Eight, operation }),
        ]
    }

    #[test]
    fn packets_are_taken_as_they_were_appended() {
        let mut frame = Vec::new();
        for (count, packet) in some().iter().enumerate() {
            let at = begin(&mut frame, packet);
            frame.extend(0..count as u64);
            end(&mut frame, at);
        }
        let mut rest = &frame[..];
        for (count, packet) in some().iter().enumerate() {
            let data: Vec<u64> = (0..count as u64).collect();
            assert_eq!(take(&mut rest), Some((*packet, &data[..])));
        }
        assert!(rest.is_empty());
    }

    /// A frame that ends too early or has a changed word never causes a panic.
    #[test]
    fn malformed_packet_is_refused() {
        for packet in some() {
            let mut frame = Vec::new();
            let at = begin(&mut frame, &packet);
            end(&mut frame, at);
            for end in 0..frame.len() {
                assert_eq!(take(&mut &frame[..end]), None, "{packet:?}");
            }
            for at in 0..frame.len() {
                for word in [0, 1, u64::MAX] {
                    let mut changed = frame.clone();
                    changed[at] = word;
                    let _ = take(&mut &changed[..]);
                }
            }
        }
    }

    #[test]
    fn text_survives_conversion_to_words() {
        for text in ["", "a", "12345678", "ä reduce of 9 bytes"] {
            let words: Vec<u64> = words_of(text.as_bytes()).collect();
            assert_eq!(bytes_of(&words, text.len()).as_deref(), Some(text.as_bytes()));
            assert_eq!(bytes_of(&words, 8 * words.len() + 1), None);
        }
    }
}
