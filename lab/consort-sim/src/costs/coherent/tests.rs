//! Tests costs against hand-computed results, in cases of a few lines.

use consort_fabric::{Atomic, Channel, Counters, Local, Messages, Rank, Rma, Span};

use crate::{
    Operands, Pe, Simulation,
    machines::{Banks, Coherent, Core, Kind, Links, Machine},
};

const LINE: usize = 64;
/// The cycles of a call, and of an operation on data.
const CALL: f64 = super::CALL_CYCLES;
const OPERATION: f64 = super::OPERATION_CYCLES;

/// Returns a machine like Barcelona at 1 GHz, so that cycles are nanoseconds. It has no hub, no
/// limit on the bytes of work, and 2 lines in flight.
fn machine(edit: impl FnOnce(&mut Coherent)) -> Machine {
    let mut machine = Machine::find("barcelona-x8").unwrap();
    let Kind::Coherent(coherent) = &mut machine.kind else { panic!("it is coherent") };
    coherent.ghz = 1.0;
    coherent.hub_ns = None;
    coherent.reorder_bytes = None;
    coherent.lines_in_flight = 2.0;
    coherent.copy_gbps = 64.0;
    edit(coherent);
    machine
}

/// Returns the time at which each PE completes `program`, in nanoseconds.
#[track_caller]
fn times(machine: Machine, pes: u32, program: impl AsyncFn(&crate::Call<'_>, u32)) -> Vec<f64> {
    let run = async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        program(&call, pe.rank().0).await;
        pe.now_ns()
    };
    Simulation::on(machine, pes).heap_bytes(1 << 16).run(run).unwrap().results
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.01, "{found}, not {expected}");
}

/// Gets this many lines of a peer's buffer.
async fn get(call: &crate::Call<'_>, from: u32, lines: usize) {
    let remote = call.reach(Rank(from), Span::buffer(0, lines * LINE));
    call.get(&remote, 0, Span::accumulator(lines * LINE)).await.unwrap();
}

#[test]
fn a_flag_is_stored_and_loaded_again() {
    // PE 0 stores to a line that PE 1 shares, in 296 cycles. PE 1 loads it again, in 252. PE 0
    // continues.
    let times = times(machine(|_| {}), 2, async |call, me| match me {
        0 => call.signal(Rank(1), Channel::new(1), 0).await.unwrap(),
        _ => call.wait(Channel::new(1), 0).await.unwrap(),
    });
    near(times[0], CALL);
    near(times[1], CALL + 296.0 + 252.0);
}

#[test]
fn flags_are_stored_one_after_another() {
    // Stores take 296 cycles each, in order, so the third is visible after three of them. With 8
    // stores pending the ninth waits until the first is visible.
    let stores = u32::try_from(super::window::STORES).unwrap();
    let times = times(machine(|_| {}), stores + 2, async |call, me| {
        if me > 0 {
            return call.wait(Channel::new(1), 0).await.unwrap();
        }
        for peer in 1..call.size() {
            call.signal(Rank(peer), Channel::new(1), 0).await.unwrap();
        }
    });
    near(times[3], CALL + 3.0 * 296.0 + 252.0);
    near(times[0], CALL + 296.0);
}

#[test]
fn lines_of_a_peer_overlap_two_at_a_time() {
    // The peer wrote its buffer, and PE 0's own memory is in its own cache. Copying a line takes 64
    // / 64 = 1 ns. Line 0 is loaded at once, and line 1 a nanosecond later. Line 2 is loaded when
    // line 0 has arrived, after 252 cycles. Line 3 is loaded a nanosecond after that, and arrives
    // 252 cycles later.
    let times = times(machine(|_| {}), 2, async |call, me| {
        if me == 0 {
            get(call, 1, 4).await;
        }
    });
    near(times[0], CALL + OPERATION + 252.0 + 1.0 + 252.0);
}

#[test]
fn loads_overlap_only_within_the_reorder_window() {
    // With 64 bytes of work at a time, each line waits for the previous one: 4 times 252 cycles.
    let edit = |machine: &mut Coherent| machine.reorder_bytes = Some(64.0);
    let times = times(machine(edit), 2, async |call, me| {
        if me == 0 {
            get(call, 1, 4).await;
        }
    });
    near(times[0], CALL + OPERATION + 4.0 * 252.0);
}

#[test]
fn line_stays_cached_until_it_is_written() {
    // The second get only takes the time of the copy, 2 ns, and the pending load is complete. After
    // the owner has written its lines, they are loaded again.
    let times = times(machine(|_| {}), 2, async |call, me| {
        if me == 1 {
            call.wait(Channel::new(1), 0).await.unwrap();
            call.copy(Span::buffer(0, LINE), Span::accumulator(LINE)).await.unwrap();
            return call.signal(Rank(0), Channel::new(1), 0).await.unwrap();
        }
        get(call, 1, 1).await;
        get(call, 1, 1).await;
        call.signal(Rank(1), Channel::new(1), 0).await.unwrap();
        call.wait(Channel::new(1), 0).await.unwrap();
        get(call, 1, 1).await;
    });
    // PE 0: 252 cycles for the line, overlapping the second get. Then it sets its flag. PE 1 sees
    // it, writes a line that PE 0 has read (296 cycles), and sets its own flag. PE 0 sees that, and
    // loads the line.
    let flagged = CALL + OPERATION + 252.0 + 296.0;
    let written = flagged + 252.0 + OPERATION + 296.0;
    near(times[0], written + 296.0 + 252.0 + OPERATION + 252.0);
}

#[test]
fn all_lines_pass_the_hub_one_after_another() {
    // Two PEs load 2 lines each, all within 2 ns. The last of the 4 transfers starts after three
    // have passed.
    let edit = |machine: &mut Coherent| machine.hub_ns = Some(100.0);
    let times = times(machine(edit), 4, async |call, me| {
        if me < 2 {
            get(call, me + 2, 2).await;
        }
    });
    near(times[0].max(times[1]), CALL + OPERATION + 3.0 * 100.0 + 252.0);
}

#[test]
fn line_serves_one_core_at_a_time() {
    // Three cores of other dies load the same line: two of them wait, for 17.4 ns and for 34.8 ns.
    // The first finds it modified, 252 cycles, the others find it shared, 254.
    let times = times(machine(|_| {}), 16, async |call, me| {
        if me > 0 && me % 5 == 0 {
            get(call, 0, 1).await;
        }
    });
    near(times[5], CALL + OPERATION + 252.0);
    near(times[15], CALL + OPERATION + 2.0 * 17.4 + 254.0);
}

#[test]
fn atomics_on_a_word_follow_each_other() {
    // Three cores of other dies add: each takes 296 cycles, and delays the next one by 17.4 ns.
    let times = times(machine(|_| {}), 16, async |call, me| {
        if me > 0 && me % 5 == 0 {
            call.count(Rank(0), 0, 1).await.unwrap();
            call.atomic(Rank(1), 0, Atomic::Load).await.unwrap();
        }
    });
    let last = CALL + 2.0 * 17.4 + 296.0;
    near(times[15], last + 296.0);
    assert!(times[5] >= CALL + 2.0 * 296.0 - 0.01);
}

/// Returns a Niagara2 at 1 GHz, of which only the parts of a core that are given are shared, and
/// with a rate of copying of 64 bytes in 80 cycles.
fn niagara(edit: impl FnOnce(&mut Coherent)) -> Machine {
    let mut machine = Machine::find("niagara2-x4").unwrap();
    let Kind::Coherent(coherent) = &mut machine.kind else { panic!("it is coherent") };
    coherent.ghz = 1.0;
    coherent.copy_gbps = 0.8;
    (coherent.core, coherent.banks, coherent.links) = (None, None, None);
    edit(coherent);
    machine
}

/// Copies 8 lines on the first PE and on the last, and returns when each of them has done so.
#[track_caller]
fn copies(machine: Machine, pes: u32) -> [f64; 2] {
    let times = times(machine, pes, async |call, me| {
        if me == 0 || me == call.size() - 1 {
            call.copy(Span::accumulator(8 * LINE), Span::incoming(8 * LINE)).await.unwrap();
        }
    });
    [times[0], times[times.len() - 1]]
}

/// Returns when the last PE has copied.
#[track_caller]
fn last_copies(machine: Machine, pes: u32) -> f64 {
    copies(machine, pes)[1]
}

/// Two pipelines, in which a thread waits for a fifth of the time.
const CORE: Core =
    Core { pipelines: 2, polls: false, copy_waits: 0.2, combine_waits: 0.0, access_cycles: 0.0 };
/// The cycles of copying 8 lines.
const COPY: f64 = 640.0;

#[test]
fn threads_of_a_core_take_turns() {
    // Two threads of a core, one after the other. Threads of two cores do not share anything.
    let fixed = CALL + OPERATION;
    near(last_copies(niagara(|_| {}), 2), 2.0 * (fixed + COPY));
    near(last_copies(niagara(|_| {}), 9), fixed + COPY);
}

#[test]
fn threads_of_a_pipeline_take_turns_unless_they_wait() {
    // PEs 0 and 1 share a pipeline, which is free while one of them waits. PEs 0 and 4 do not.
    let machine = || niagara(|machine| machine.core = Some(CORE));
    let fixed = CALL + OPERATION;
    near(last_copies(machine(), 2), 2.0 * fixed + 0.8 * COPY + COPY);
    near(last_copies(machine(), 5), fixed + COPY);
}

#[test]
fn polling_threads_take_turns_too() {
    // Of four threads of a pipeline, each has a quarter of it, whatever the others do.
    let core = Core { polls: true, ..CORE };
    let machine = niagara(|machine| machine.core = Some(core));
    near(last_copies(machine, 4), 4.0 * (CALL + OPERATION) + COPY + 3.0 * 0.8 * COPY);
}

#[test]
fn threads_of_a_core_share_its_load_store_unit() {
    // 8 lines are 64 words, each with a load and a store of 10 cycles. PE 4 has a pipeline to
    // itself, so it is first. PE 0 waits for the unit, which PE 4 uses from cycle 30 on.
    let core = Core { access_cycles: 10.0, ..CORE };
    let machine = niagara(|machine| machine.core = Some(core));
    let [first, last] = copies(machine, 5);
    near(last, CALL + OPERATION + COPY);
    near(first, CALL + OPERATION + 2.0 * 64.0 * 10.0 + COPY);
}

/// PEs of two cores of a die each load a line of a PE of a third one.
#[test]
fn lines_of_a_bank_follow_each_other() {
    let last = |at: usize| {
        let banks = Banks { count: 8, load_cycles: 100.0, store_cycles: 0.0 };
        let machine = niagara(|machine| machine.banks = Some(banks));
        let times = times(machine, 24, async |call, me| {
            if me == 0 || me == 8 {
                let at = if me == 0 { 0 } else { at * LINE };
                let remote = call.reach(Rank(16), Span::buffer(at, LINE));
                call.get(&remote, 0, Span::accumulator(LINE)).await.unwrap();
            }
        });
        times[8]
    };
    let other = last(1);
    near(last(8), other + 100.0);
    near(last(7), other);
}

/// Lines of a plane leave their package one after the other.
#[test]
fn lines_of_a_plane_queue_for_the_links_of_a_package() {
    let last = |at: usize| {
        let links = Links { planes: 2, plane_bytes: 2 * LINE, line_ns: 1000.0 };
        let machine = niagara(|machine| machine.links = Some(links));
        let times = times(machine, 256, async |call, me| {
            // To two packages from one.
            if me == 0 || me == 64 {
                let at = if me == 0 { 0 } else { at * LINE };
                let remote = call.reach(Rank(128), Span::buffer(at, LINE));
                call.get(&remote, 0, Span::accumulator(LINE)).await.unwrap();
            }
        });
        times[64]
    };
    let other = last(2);
    for (at, queued) in [(1, 1000.0), (3, 0.0), (5, 1000.0)] {
        near(last(at), other + queued);
    }
}

#[test]
fn equal_offsets_of_many_pes_do_not_stay_in_a_set() {
    // The sets of the second level have 16 ways, and the memories of PEs start at a multiple of its
    // size. The lines of 15 peers fit next to the thread's own line. Of 31 lines, none remains
    // until it is used again.
    let again = |peers: u32| {
        let times = times(machine(|_| {}), 32, async |call, me| {
            for peer in (1..=peers).filter(|_| me == 0) {
                get(call, peer, 1).await;
            }
            for peer in (1..=peers).filter(|_| me == 0) {
                get(call, peer, 1).await;
            }
        });
        times[0]
    };
    // Two in flight: 252 cycles for every second line, for both rounds or for one.
    assert!(again(15) < 252.0 * 15.0 / 2.0 * 1.3, "{}", again(15));
    assert!(again(31) > 252.0 * 31.0 * 0.95, "{}", again(31));
}
