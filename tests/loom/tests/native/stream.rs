//! A stream of three chunks through two buffers, each a line; chunk `i` waits until chunk `i - 2`
//! has been taken.

use std::sync::Arc;

use consort_native::line::Line;

use crate::until;

const CHUNKS: u64 = 3;

/// The word of chunk 0; those of a call count up from it.
const FIRST: u64 = 7;

#[derive(Default)]
struct Edge {
    buffers: [Line; 2],
    taken: Line,
}

impl Edge {
    fn buffer(&self, chunk: u64) -> &Line {
        if chunk.is_multiple_of(2) { &self.buffers[0] } else { &self.buffers[1] }
    }
}

fn three_chunks(awaits_taken: bool) {
    loom::model(move || {
        let edge = Arc::new(Edge::default());
        let of_sender = Arc::clone(&edge);
        let sender = loom::thread::spawn(move || {
            for chunk in 0..CHUNKS {
                if awaits_taken && chunk >= 2 {
                    until(|| of_sender.taken.word() >= FIRST + chunk - 2);
                }
                let buffer = of_sender.buffer(chunk);
                buffer.write(0, 100 + chunk);
                buffer.publish(FIRST + chunk);
            }
        });
        for chunk in 0..CHUNKS {
            let buffer = edge.buffer(chunk);
            until(|| buffer.word() >= FIRST + chunk);
            assert_eq!(buffer.read(0), 100 + chunk, "another chunk");
            if chunk + 2 < CHUNKS {
                edge.taken.publish(FIRST + chunk);
            }
        }
        sender.join().expect("it ends well");
    });
}

#[test]
fn chunks_arrive_whole_and_in_order() {
    three_chunks(true);
}

#[test]
#[should_panic(expected = "another chunk")]
fn chunk_without_a_wait_overwrites_another() {
    three_chunks(false);
}
