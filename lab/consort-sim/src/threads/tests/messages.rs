//! Tests of messages, by hardware queues and over cache lines.

use consort_machine::{Machine, Queue, Thread};

use super::{MACHINES, SimulatedThread, TILE, at, coherent, cycles, near, run};

#[test]
fn message_time_is_that_of_the_network() {
    let queue = coherent(TILE).queue.unwrap();
    for (to, hops) in [(1, 1.0), (35, 10.0)] {
        run(TILE, &[0, to], async |thread: SimulatedThread| {
            if thread.me == 0 {
                at(&thread, 1).await;
                let Ok(()) = thread.send(Thread(1), Queue(3), &[4, 5]).await;
                return;
            }
            let Ok(words) = thread.receive(Queue(3)).await;
            assert_eq!(words, [4, 5]);
            let words = 3.0 * queue.word_cycles + 2.0 * queue.word_cycles;
            let operation = coherent(TILE).threads.unwrap().operation_cycles;
            let all = operation + words + queue.message_cycles + hops * queue.hop_cycles;
            near(thread.clock() as f64 / 1e3, 1000.0 + cycles(TILE, all), "one way");
        });
    }
}

/// David and others 2013, Figure 9: a message of a line and its answer, between neighbours and
/// across the mesh.
#[test]
fn round_trip_of_a_line_takes_the_published_time() {
    for (to, paper) in [(1, 120.0), (35, 138.0)] {
        run(TILE, &[0, to], async |thread: SimulatedThread| {
            let (line, queue) = ([7; 8], Queue(3));
            if thread.me == 1 {
                let Ok(words) = thread.receive::<8>(queue).await;
                let Ok(()) = thread.send(Thread(0), queue, &words).await;
                return;
            }
            at(&thread, 1).await;
            let Ok(()) = thread.send(Thread(1), queue, &line).await;
            let Ok(words) = thread.receive(queue).await;
            assert_eq!(words, line);
            near(thread.clock() as f64 / 1e3, 1000.0 + cycles(TILE, paper), "round trip");
        });
    }
}

#[test]
fn a_sender_waits_while_the_buffer_is_full() {
    let words = coherent(TILE).queue.unwrap().words;
    let outcome = run(TILE, &[0, 1], async |thread: SimulatedThread| {
        if thread.me == 0 {
            // As many messages as there is room for, one that the network holds, and one that must
            // wait.
            for number in 0..=words as u64 + 1 {
                let Ok(()) = thread.send(Thread(1), Queue(3), &[number]).await;
                thread.pause(200).await;
            }
            return;
        }
        at(&thread, 100).await;
        for number in 0..=words as u64 + 1 {
            let Ok([got]) = thread.receive(Queue(3)).await;
            assert_eq!(got, number);
        }
    });
    let idle = outcome.tallies[0].idle_ns();
    assert!((50_000.0..90_000.0).contains(&idle), "{idle} ns");
    assert_eq!(outcome.tallies[0].messages, words as u64 + 2);
}

/// Messages of two senders arrive complete and in the order of each sender, even if there is no
/// room for them. Messages of one queue do not delay those of another.
#[test]
fn messages_are_neither_lost_nor_overtaken() {
    for name in MACHINES {
        run(name, &[0, 4, 14], async |thread: SimulatedThread| {
            let me = u64::from(thread.me);
            if me > 0 {
                for number in 0..200 {
                    let Ok(()) = thread.send(Thread(0), Queue(me), &[me, number, 7]).await;
                }
                let Ok(answer) = thread.receive_answer().await;
                return assert_eq!(answer, 100 + me, "{name}");
            }
            at(&thread, 200).await;
            for number in 0..200 {
                for sender in [2, 1] {
                    assert!(number > 0 || !thread.is_empty(Queue(sender)).await, "{name}");
                    let Ok(words) = thread.receive(Queue(sender)).await;
                    assert_eq!(words, [sender, number, 7], "{name}");
                }
            }
            assert!(thread.is_empty(Queue(1)).await && thread.is_empty(Queue(2)).await, "{name}");
            for sender in [1, 2] {
                thread.answer(Thread(sender), 100 + u64::from(sender)).await;
            }
        });
    }
}
