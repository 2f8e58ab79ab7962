//! A PE records the call in which it waits while another reads the record: never half of two.

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use consort_native::{Awaited, CallWait, Heartbeat, HeartbeatRecord, WaitReason};
use loom::{
    sync::atomic::{AtomicU64, fence},
    thread::{spawn, yield_now},
};

/// Returns record number `number`.
fn record(number: u64) -> HeartbeatRecord {
    let awaited = Awaited::Word(usize::try_from(number).expect("a small number"));
    HeartbeatRecord {
        wait: Some(WaitReason::In(CallWait { group: number, call: number, word: number, awaited })),
        waits: number,
        beats: 0,
        shares: false,
    }
}

#[test]
fn a_record_is_read_as_a_whole() {
    loom::model(|| {
        let heartbeat = Arc::new(Heartbeat::default());
        let of_writer = Arc::clone(&heartbeat);
        let writer = spawn(move || (1..3).for_each(|number| of_writer.write(&record(number))));
        // In a model, no other thread runs between a reader's attempts.
        yield_now();
        if let Some(read) = heartbeat.try_read() {
            assert!(
                read == HeartbeatRecord::default() || read == record(1) || read == record(2),
                "{read:?}"
            );
        }
        writer.join().expect("it ends well");
        assert_eq!(heartbeat.read(), Some(record(2)));
    });
}

/// A record of two words that is read with a fence on either side, or without.
#[derive(Default)]
struct Fencing<const WRITE: bool, const READ: bool> {
    version: AtomicU64,
    words: [AtomicU64; 2],
}

impl<const WRITE: bool, const READ: bool> Fencing<WRITE, READ> {
    fn write(&self, value: u64) {
        self.version.store(1, Relaxed);
        if WRITE {
            fence(Release);
        }
        self.words.iter().for_each(|word| word.store(value, Relaxed));
        self.version.store(2, Release);
    }

    fn read(&self) -> Option<[u64; 2]> {
        let before = self.version.load(Acquire);
        let words = self.words.each_ref().map(|word| word.load(Relaxed));
        if READ {
            fence(Acquire);
        }
        (before.is_multiple_of(2) && self.version.load(Relaxed) == before).then_some(words)
    }
}

fn two_words<const WRITE: bool, const READ: bool>() {
    loom::model(|| {
        let record = Arc::new(Fencing::<WRITE, READ>::default());
        let of_writer = Arc::clone(&record);
        let writer = spawn(move || of_writer.write(7));
        if let Some([one, other]) = record.read() {
            assert_eq!(one, other, "half a record");
        }
        writer.join().expect("it ends well");
    });
}

#[test]
fn both_fences_keep_a_record_whole() {
    two_words::<true, true>();
}

#[test]
#[should_panic(expected = "half a record")]
fn without_the_writers_fence_half_a_record_is_read() {
    two_words::<false, true>();
}

#[test]
#[should_panic(expected = "half a record")]
fn without_the_readers_fence_half_a_record_is_read() {
    two_words::<true, false>();
}
