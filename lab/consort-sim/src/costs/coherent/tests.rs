//! Tests costs against hand-computed results, in cases of a few lines.

use consort_fabric::{Atomic, Channel, Counters, Local, Messages, Rank, Rma, Span};

use crate::{
    Operands, Pe, Simulation,
    machines::{Coherent, Kind, Machine},
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

#[test]
fn threads_of_a_core_take_turns() {
    // A call and a copy of 8 lines at 0.75 bytes per nanosecond take turns: while one thread works,
    // the other waits.
    let copy = async |call: &crate::Call<'_>, me: u32| {
        if me == 0 || me == call.size() - 1 {
            call.copy(Span::accumulator(8 * LINE), Span::incoming(8 * LINE)).await.unwrap();
        }
    };
    let niagara = || Machine::find("niagara2-x4").unwrap();
    let work = 512.0 / 0.75;
    let fixed = (CALL + OPERATION) / 1.4;
    let last = |times: Vec<f64>| times[times.len() - 1];
    near(last(times(niagara(), 2, copy)), 2.0 * (fixed + work));
    near(last(times(niagara(), 9, copy)), fixed + work);
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
