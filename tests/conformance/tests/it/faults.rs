//! Broken protocols do not pass: protocols with a mistake, and the seeds that show it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use consort_fabric::{Channel, Local, Messages, Op, Rank, Rma, Signal, Span, Until};
use consort_sim::{Call, Operands, Pe, Simulation, SimulationError};

/// The old data, and the data that is put.
const OLD: [u8; 8] = [1; 8];
const NEW: [u8; 8] = [2; 8];

/// The way in which PE 0 notifies PE 1 of its put.
#[derive(Clone, Copy)]
enum Notice {
    Signal,
    FenceAndSignal,
    PutSignal,
}

/// Returns the data that PE 1 reads once it is notified of a put of PE 0.
fn read_after_put(seed: u64, notice: Notice) -> Vec<u8> {
    let simulation = Simulation::explored(2).seed(seed).heap_bytes(16);
    let (data, word, channel) = (Span::heap(0, 8), 8, Channel::new(3));
    let member = async |pe: &Pe<'_>| -> Op<Vec<u8>> {
        if pe.rank() == Rank(0) {
            pe.set_heap(0, &NEW);
        } else {
            pe.set_heap(0, &OLD);
        }
        pe.align().await;
        let call = pe.begin(Operands::NONE).await;
        if pe.rank() == Rank(0) {
            let theirs = call.reach(Rank(1), data);
            match notice {
                Notice::PutSignal => {
                    call.put_signal(&theirs, 0, data, word, Signal::Set(1)).await?;
                }
                Notice::Signal => {
                    call.put(&theirs, 0, data).await?;
                    call.signal(Rank(1), channel, 0).await?;
                }
                Notice::FenceAndSignal => {
                    call.put(&theirs, 0, data).await?;
                    call.fence().await?;
                    call.signal(Rank(1), channel, 0).await?;
                }
            }
        } else if matches!(notice, Notice::PutSignal) {
            call.wait_until(word, Until::Equals(1)).await?;
        } else {
            call.wait(channel, 0).await?;
        }
        Ok(pe.heap(0, 8))
    };
    let mut outcome = simulation.run(member).expect("the simulation ends");
    outcome.results.swap_remove(1).expect("nothing poisons a simulation")
}

#[test]
fn missing_fence_is_detected() {
    let reads_old = |notice| (0..300).filter(|&seed| read_after_put(seed, notice) == OLD).count();
    let old = reads_old(Notice::Signal);
    assert!((30..270).contains(&old), "{old} of 300 seeds, neither none nor all");
    assert_eq!(reads_old(Notice::FenceAndSignal), 0);
    assert_eq!(reads_old(Notice::PutSignal), 0);
}

/// Returns the data at PE 1 after two puts of PE 0 to one place, the later one with new data.
fn after_two_puts(seed: u64, fence: bool) -> Vec<u8> {
    let member = async |pe: &Pe<'_>| -> Op<Vec<u8>> {
        pe.set_heap(0, &OLD);
        pe.set_heap(8, &NEW);
        let call = pe.begin(Operands::NONE).await;
        if pe.rank() == Rank(0) {
            let theirs = call.reach(Rank(1), Span::heap(16, 8));
            call.put(&theirs, 0, Span::heap(0, 8)).await?;
            if fence {
                call.fence().await?;
            }
            call.put(&theirs, 0, Span::heap(8, 8)).await?;
            call.quiet().await?;
            call.signal(Rank(1), Channel::new(3), 0).await?;
        } else {
            call.wait(Channel::new(3), 0).await?;
        }
        Ok(pe.heap(16, 8))
    };
    let simulation = Simulation::explored(2).seed(seed).heap_bytes(24);
    let mut outcome = simulation.run(member).expect("the simulation ends");
    outcome.results.swap_remove(1).expect("nothing poisons a simulation")
}

#[test]
fn puts_are_reordered_unless_fenced() {
    assert!((0..100).any(|seed| after_two_puts(seed, false) == OLD));
    assert!((0..100).all(|seed| after_two_puts(seed, true) == NEW));
}

/// A broadcast of two chunks over a message buffer for one, which the root may fill again only when
/// all have taken its content: the core of OC-BCAST.
async fn two_chunks(f: &Call<'_>, waits_for_done: bool) -> Op {
    let (notify, done) = (Channel::new(0), |rank: Rank| Channel::new(1 + rank.0));
    let buffer = Span::buffer(0, 8);
    let others = || (1..f.size()).map(Rank);
    for step in 0..2 {
        let chunk = step as usize * 8;
        if f.rank() == Rank(0) {
            if step > 0 && waits_for_done {
                for peer in others() {
                    f.wait(done(peer), step - 1).await?;
                }
            }
            f.copy(buffer, Span::source(chunk, 8)).await?;
            for peer in others() {
                f.signal(peer, notify, step).await?;
            }
        } else {
            f.wait(notify, step).await?;
            let theirs = f.reach(Rank(0), buffer);
            f.get(&theirs, 0, Span::target(chunk, 8)).await?;
            f.signal(Rank(0), done(f.rank()), step).await?;
        }
    }
    Ok(())
}

/// Returns whether all PEs receive both chunks.
fn receives_both(seed: u64, waits_for_done: bool) -> bool {
    use consort_sim::Buffer;
    let member = async |pe: &Pe<'_>| {
        let sent = [OLD, NEW].concat();
        let is_root = pe.rank() == Rank(0);
        let operands = Operands {
            kernel: None,
            source: Buffer::Owned(if is_root { sent.clone() } else { Vec::new() }),
            target: Buffer::Owned(if is_root { Vec::new() } else { vec![0; 16] }),
            layouts: None,
        };
        let call = pe.begin(operands).await;
        two_chunks(&call, waits_for_done).await.expect("nothing poisons a simulation");
        is_root || call.finish() == sent
    };
    let outcome = Simulation::explored(4).seed(seed).run(member).expect("the simulation ends");
    outcome.results.into_iter().all(|same| same)
}

#[test]
fn buffer_filled_too_early_is_detected() {
    assert!((0..100).any(|seed| !receives_both(seed, false)));
    assert!((0..100).all(|seed| receives_both(seed, true)));
}

#[test]
fn overwritten_message_is_detected() {
    let run = |seed| {
        let member = async |pe: &Pe<'_>| -> Op {
            let call = pe.begin(Operands::NONE).await;
            for step in 0..3 {
                let channel = Channel::new(step % 2); // two buffers, and nobody waits
                if pe.rank() == Rank(0) {
                    call.send(Rank(1), channel, step, Span::source(0, 0)).await?;
                } else {
                    call.receive(channel, step, Span::target(0, 0)).await?;
                }
            }
            Ok(())
        };
        Simulation::explored(2).seed(seed).run(member).map(|_| ())
    };
    let shows = |seed| catch_unwind(AssertUnwindSafe(|| run(seed))).is_err();
    assert!((0..50).any(shows));
}

#[test]
fn unanswered_wait_is_reported_with_its_seed() {
    let member = async |pe: &Pe<'_>| -> Op {
        let call = pe.begin(Operands::NONE).await;
        let right = pe.rank().plus(1, pe.size() as usize);
        // All but the last PE wait before they signal.
        if pe.rank() != Rank(2) {
            call.wait(Channel::new(0), 0).await?;
        }
        if pe.rank() != Rank(0) {
            call.signal(right, Channel::new(0), 0).await?;
        }
        Ok(())
    };
    let error = Simulation::explored(3).seed(77).run(member).map(|_| ()).unwrap_err();
    let SimulationError::Deadlock { seed, count, pes, first, .. } = error.clone() else {
        panic!("{error}");
    };
    assert_eq!((seed, count, pes, first), (77, 1, 3, 1));
    assert!(error.to_string().contains("(seed 77): 1 of 3 PEs wait, the first is PE 1"));
}

/// Memory that a PE cannot access is reported, instead of being skipped.
#[test]
#[should_panic(
    expected = "PE 0 cannot reach bytes 8..24 of the Source of PE 1: this call's buffer is not in \
                symmetric memory"
)]
fn reaching_private_memory_is_reported() {
    use consort_sim::Buffer;
    let member = async |pe: &Pe<'_>| {
        let operands = Operands { source: Buffer::Owned(vec![0; 24]), ..Operands::NONE };
        let call = pe.begin(operands).await;
        if pe.rank() == Rank(0) {
            let _theirs = call.reach(Rank(1), Span::source(8, 16));
        }
    };
    drop(Simulation::explored(2).run(member));
}
