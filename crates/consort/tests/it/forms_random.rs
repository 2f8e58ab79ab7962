//! Random calls in every form, compared with a simple model of the data that each call reads,
//! writes and leaves unchanged.
//!
//! The blocks of a call have gaps and any order, and those of a source overlap. Buffers that a PE
//! neither contributes nor receives have any length.

use std::{iter, ops::Range};

use consort::{
    Displacements, Error, Rank, Result, Symmetric, Team,
    bindings::JobBuilderExt as _,
    nonblocking::{Planned, Request},
    ops::Sum,
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};
use consort_conformance::{
    data::{Random, affine},
    turns::{LIMIT, alone, note},
};
use consort_fabric::Nodes;
use consort_sandbox::seeds::seeds;

use crate::jobs::{on, pes_of};

/// Fills elements that no call may change.
const UNTOUCHED: u64 = 0xA5A5;

const LENS: [usize; 6] = [0, 1, 7, 8, 700, 5000];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Values,
    Slices,
    InSymmetric,
    Start,
    StartInto,
    StartSymmetric,
    Planned,
    PlannedInto,
    Scope,
}

const FORMS: [Form; 9] = [
    Form::Values,
    Form::Slices,
    Form::InSymmetric,
    Form::Start,
    Form::StartInto,
    Form::StartSymmetric,
    Form::Planned,
    Form::PlannedInto,
    Form::Scope,
];

/// A call, which is the same on all PEs.
#[derive(Clone, Debug)]
struct Call {
    seed: u64,
    collective: Collective,
    form: Form,
    sync: SyncModes,
    root: usize,
    pes: usize,
    /// The length of a block.
    len: usize,
    /// Whether blocks differ in length.
    has_counts: bool,
    /// The length of ignored buffers.
    ignored_len: usize,
}

/// The blocks in a PE's buffer, by the PE that they go to or come from.
type Blocks = Vec<Range<usize>>;

impl Call {
    fn random(random: &mut Random, pes: usize) -> Self {
        let regulars: Vec<_> = Collective::regulars().collect();
        let collective = iter::repeat_with(|| *random.pick(&regulars))
            .find(|one| *one != Collective::Barrier)
            .expect("one of many");
        let (form, seed) = (*random.pick(&FORMS), random.next_word());
        let has_blocks = matches!(
            collective,
            Collective::Scatter | Collective::Gather | Collective::AllGather | Collective::AllToAll
        );
        let mut sync = *random.pick(&SyncModes::every().collect::<Vec<_>>());
        if matches!(form, Form::Slices | Form::Scope) && sync.exit == SyncMode::None {
            sync.exit = SyncMode::Mine; // slices are borrowed
        }
        let (root, len) = (random.below(pes), *random.pick(&LENS));
        let has_counts = has_blocks && random.chance(2);
        let ignored_len = *random.pick(&[0, 3]);
        Self { seed, collective, form, sync, root, pes, len, has_counts, ignored_len }
    }

    fn has_root(&self) -> bool {
        self.collective.is_rooted()
    }

    fn everyone(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.pes
    }

    /// Returns the elements that go from one PE to another.
    fn count(&self, from: usize, to: usize) -> usize {
        let (root, is_moved) = (self.root, !self.collective.combines());
        let goes = match self.collective {
            Collective::Broadcast | Collective::Scatter => from == root,
            Collective::Gather => to == root,
            _ => is_moved,
        };
        if !goes || !self.has_counts {
            return if goes { self.len } else { 0 };
        }
        let of = match self.collective {
            Collective::AllGather => from,
            _ => from * self.pes + to,
        };
        let mut random = Random(self.seed ^ of as u64);
        *random.pick(&[0, 1, self.len, self.len / 2])
    }

    /// Returns where blocks of these lengths are in a buffer.
    fn placed(&self, counts: &[usize], seed: u64, may_overlap: bool) -> Blocks {
        let mut random = Random(self.seed ^ seed);
        let (overlap, backward) = (may_overlap && random.chance(3), random.chance(2));
        let mut order: Vec<usize> = self.everyone().collect();
        if self.has_counts && backward {
            order.reverse();
        }
        let (mut blocks, mut next) = (vec![0..0; self.pes], 0);
        for pe in order {
            let first = if self.has_counts { next + random.below(3) } else { next };
            blocks[pe] = if counts[pe] == 0 { 0..0 } else { first..first + counts[pe] };
            next = if self.has_counts && overlap { next } else { first + counts[pe] };
        }
        blocks
    }

    /// Returns the blocks of `pe`'s source.
    fn given(&self, pe: usize) -> Blocks {
        let counts: Vec<_> = self.everyone().map(|to| self.count(pe, to)).collect();
        match self.collective {
            Collective::Scatter | Collective::AllToAll => {
                self.placed(&counts, 0x5000 + pe as u64, true)
            }
            _ => counts.into_iter().map(|count| 0..count).collect(),
        }
    }

    /// Returns the blocks of `pe`'s target.
    fn received(&self, pe: usize) -> Blocks {
        let counts: Vec<_> = self.everyone().map(|from| self.count(from, pe)).collect();
        match self.collective {
            Collective::Gather | Collective::AllGather | Collective::AllToAll => {
                self.placed(&counts, 0x7000 + pe as u64, false)
            }
            _ => counts.into_iter().map(|count| 0..count).collect(),
        }
    }

    /// Returns the elements that the call reads of `pe`'s source, and writes of its target; `None`
    /// for a buffer that it ignores.
    fn used(&self, pe: usize) -> [Option<usize>; 2] {
        let (is_root, len) = (pe == self.root, self.len);
        let extent = |blocks: Blocks| blocks.into_iter().map(|block| block.end).max().unwrap_or(0);
        match self.collective {
            Collective::Broadcast => [is_root.then_some(len), (!is_root).then_some(len)],
            Collective::Scatter => {
                [is_root.then(|| extent(self.given(pe))), Some(extent(self.received(pe)))]
            }
            Collective::Gather => {
                [Some(extent(self.given(pe))), is_root.then(|| extent(self.received(pe)))]
            }
            Collective::Reduce => [Some(len), is_root.then_some(len)],
            Collective::ReduceScatter => [Some(len * self.pes), Some(len)],
            collective if collective.combines() => [Some(len), Some(len)],
            _ => [Some(extent(self.given(pe))), Some(extent(self.received(pe)))],
        }
    }

    /// Returns the length of the block that `pe` contributes, or in a scatter receives.
    fn own_len(&self, pe: usize) -> usize {
        match self.collective {
            Collective::Scatter => self.count(self.root, pe),
            Collective::Gather => self.count(pe, self.root),
            Collective::AllGather => self.count(pe, pe),
            Collective::AllToAll if self.has_counts => 0,
            _ => self.len,
        }
    }

    fn source(&self, pe: usize) -> Vec<u64> {
        let mut random = Random(self.seed ^ (pe as u64) << 32);
        iter::repeat_with(|| random.next_word()).take(self.used(pe)[0].unwrap_or(0)).collect()
    }

    /// Writes to `pe`'s target what the call does.
    fn expect(&self, pe: usize, target: &mut [u64]) {
        let sources: Vec<_> = self.everyone().map(|pe| self.source(pe)).collect();
        if !self.collective.combines() {
            let is_empty = target.is_empty(); // allowed for the root of a broadcast
            for (from, to) in self.received(pe).into_iter().enumerate().filter(|_| !is_empty) {
                target[to].copy_from_slice(&sources[from][self.given(from)[pe].clone()]);
            }
            return;
        }
        let (of, first) = match self.collective {
            Collective::Scan => (0..pe + 1, 0),
            Collective::ExclusiveScan => (0..pe, 0),
            Collective::ReduceScatter => (0..self.pes, pe * self.len),
            Collective::Reduce if pe != self.root => (0..0, 0),
            _ => (0..self.pes, 0),
        };
        for (at, result) in target.iter_mut().enumerate().take(self.len) {
            let contributions = sources[of.clone()].iter().map(|source| source[first + at]);
            *result = contributions.reduce(affine).unwrap_or(*result);
        }
    }

    /// Returns whether `pe` gets a result, in a collective in which some PEs may get none.
    fn has_result(&self, pe: usize) -> bool {
        match self.collective {
            Collective::Gather | Collective::Reduce => pe == self.root,
            Collective::ExclusiveScan => pe > 0,
            _ => true,
        }
    }
}

/// Makes a call on the data `$on`. `$all` and `$some` convert what it returns.
macro_rules! make {
    ($call:expr, $me:expr, $on:expr, $all:expr, $some:expr) => {{
        let (call, me, root) = ($call, $me, Rank::new($call.root));
        let of = |blocks: Blocks| {
            let counts: Vec<_> = blocks.iter().map(ExactSizeIterator::len).collect();
            let displacements: Vec<_> = blocks.iter().map(|block| block.start).collect();
            let is_ignored = call.has_root() && me != call.root;
            if is_ignored {
                Ok(Displacements::default())
            } else {
                Displacements::at(&counts, &displacements)
            }
        };
        let (given, received) = (of(call.given(me))?, of(call.received(me))?);
        match call.collective {
            Collective::Scatter if call.has_counts => $all($on.with_counts(&given).scatter(root)?),
            Collective::Gather if call.has_counts => {
                $some($on.with_counts(&received).gather(root)?)
            }
            Collective::AllGather if call.has_counts => {
                $all($on.with_counts(&received).all_gather()?)
            }
            Collective::AllToAll if call.has_counts => {
                $all($on.with_counts((&given, &received)).all_to_all()?)
            }
            Collective::Broadcast => $all($on.broadcast(root)?),
            Collective::Scatter => $all($on.scatter(root)?),
            Collective::Gather => $some($on.gather(root)?),
            Collective::AllGather => $all($on.all_gather()?),
            Collective::AllToAll => $all($on.all_to_all()?),
            Collective::Reduce => $some($on.reduce(affine, root)?),
            Collective::AllReduce => $all($on.all_reduce(affine)?),
            Collective::ReduceScatter => $all($on.reduce_scatter(affine)?),
            Collective::Scan => $all($on.scan(affine)?),
            Collective::ExclusiveScan => $some($on.exclusive_scan(affine)?),
            other => unreachable!("{other} moves no data, or is a vector variant"),
        }
    }};
}

/// Makes a call that returns its result.
fn returned(team: &Team, call: &Call, source: Vec<u64>) -> Result<Option<Vec<u64>>> {
    let me = team.rank().index();
    let len = call.own_len(me);
    match call.form {
        Form::Values => {
            Ok(make!(call, me, team.values(&source).with_len(len), Some, std::convert::identity))
        }
        Form::Start => {
            let all = |request: Request<Vec<u64>>| request.wait().map(Some);
            let some = |request: Request<Option<Vec<u64>>>| request.wait();
            make!(call, me, team.start(source).with_len(len), all, some)
        }
        _ => {
            let all = |plan: Planned<u64>| {
                drop(plan.start(source.clone())?);
                plan.start(source.clone())?.wait().map(Some)
            };
            let some = |plan: Planned<u64, Option<Vec<u64>>>| {
                drop(plan.start(source.clone())?);
                plan.start(source.clone())?.wait()
            };
            make!(call, me, team.plan::<u64>(len), all, some)
        }
    }
}

/// Makes a call on buffers, and returns their content after it.
fn on_buffers(
    team: &Team,
    call: &Call,
    [mut source, mut target]: [Vec<u64>; 2],
) -> Result<[Vec<u64>; 2]> {
    let me = team.rank().index();
    match call.form {
        Form::Slices => {
            make!(call, me, team.slices(&source, &mut target), |()| (), |()| ());
        }
        Form::StartInto => {
            let request = make!(call, me, team.start_into(source, target), |one| one, |one| one);
            (source, target) = request.wait()?;
        }
        Form::PlannedInto => {
            let plan = team.plan::<u64>(call.own_len(me));
            let start =
                |plan: Planned<u64>| plan.start_into(source.clone(), target.clone())?.wait();
            let start_some = |plan: Planned<u64, Option<Vec<u64>>>| {
                plan.start_into(source.clone(), target.clone())?.wait()
            };
            (source, target) = make!(call, me, plan, start, start_some)?;
        }
        _ => team.overlap(|scope| {
            make!(call, me, scope.start_into(&mut source, &mut target), drop, drop);
            Ok(())
        })?,
    }
    Ok([source, target])
}

/// Makes a call in symmetric memory, which has room for the blocks of every PE and three elements
/// more, and returns the content of this PE's part after it.
fn in_memory(team: &Team, call: &Call, memory: &[Symmetric<u64>; 2]) -> Result<[Vec<u64>; 2]> {
    let (me, [source, target]) = (team.rank().index(), memory);
    let len = call.own_len(me);
    let target = if call.collective == Collective::Broadcast { source } else { target };
    if call.form == Form::InSymmetric {
        make!(call, me, team.in_symmetric(source, target).with_len(len), |()| (), |()| ());
    } else {
        let on = team.start_symmetric(source, target).with_len(len);
        make!(call, me, on, |one| one, |one| one).wait()?;
    }
    team.barrier()?; // in exit mode None, others may still write
    Ok([memory[0].to_vec()?, memory[1].to_vec()?])
}

/// Makes a call, and compares everything that it returns or may change.
fn check(world: &Team, call: &Call) -> Result<()> {
    let (team, me) = (world.with_sync(call.sync), world.rank().index());
    let [given, received] = call.used(me);
    let is_broadcast = call.collective == Collective::Broadcast;
    let mut source = call.source(me);
    if matches!(call.form, Form::Values | Form::Start | Form::Planned) {
        if given.is_none() {
            source.resize(if is_broadcast { call.len } else { call.ignored_len }, UNTOUCHED);
        }
        let mut expected = vec![0; if is_broadcast { call.len } else { received.unwrap_or(0) }];
        call.expect(me, &mut expected);
        let expected = call.has_result(me).then_some(expected);
        assert_eq!(returned(&team, call, source)?, expected, "on PE {me}");
        return Ok(());
    }
    let found;
    let mut expected;
    if matches!(call.form, Form::InSymmetric | Form::StartSymmetric) {
        let most = |side: usize| call.everyone().filter_map(|pe| call.used(pe)[side]).max();
        let lens = [0, 1].map(|side| most(side).unwrap_or(0) + 3);
        let memory = [world.symmetric(lens[0])?, world.symmetric(lens[1])?];
        source.resize(lens[0], UNTOUCHED);
        expected = [source, vec![UNTOUCHED; lens[1]]];
        for (memory, data) in memory.iter().zip(&expected) {
            memory.put(world.rank(), 0, data)?;
        }
        world.barrier()?;
        found = in_memory(&team, call, &memory)?;
        world.barrier()?;
        if is_broadcast {
            call.expect(me, &mut expected[0]); // in one memory
        } else if received.is_some() {
            call.expect(me, &mut expected[1]);
        }
    } else {
        let ignored =
            if is_broadcast && call.ignored_len > 0 { call.len } else { call.ignored_len };
        source.resize(given.unwrap_or(call.ignored_len), UNTOUCHED);
        expected = [source, vec![UNTOUCHED; received.unwrap_or(ignored)]];
        found = on_buffers(&team, call, expected.clone())?;
        if is_broadcast || received.is_some() {
            call.expect(me, &mut expected[1]);
        }
    }
    if call.form == Form::PlannedInto && call.collective == Collective::ExclusiveScan && me == 0 {
        expected[1].clone_from(&found[1]); // unspecified
    }
    assert!(found == expected, "on PE {me}: {found:?}, not {expected:?}");
    Ok(())
}

fn play(seed: u64) {
    let mut random = Random(seed);
    let pes = 1 + random.below(4);
    let calls: Vec<_> = (0..20).map(|_| Call::random(&mut random, pes)).collect();
    let mut job = pes_of(pes);
    if random.chance(3) {
        job = job.loopback([Nodes::Blocks(1), Nodes::InTurn(2)], seed);
    }
    let ended = alone(LIMIT, move || {
        job.run(|pe| {
            for (index, call) in calls.iter().enumerate() {
                note(format!("seed {seed}, call {index}: {call:?}"));
                check(pe.world(), call).inspect_err(|_| eprintln!("{call:?}"))?;
            }
            Ok(())
        })
    });
    ended.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

#[test]
fn every_form_does_what_the_model_does() {
    for seed in seeds(24, 1000, &[]) {
        play(seed);
    }
}

/// A sum of three PEs, by one form. All make the same calls before it.
type Sums = fn(&Team, [&Symmetric<u64>; 2]) -> Result<Vec<u64>>;

const LEN: usize = 1000;

const SUMS: [(&str, Sums); 9] = [
    ("values", |world, _| world.values(&[1; LEN]).all_reduce(Sum)),
    ("slices", |world, _| {
        let mut sums = vec![0; LEN];
        world.slices(&[1; LEN], &mut sums).all_reduce(Sum).map(|()| sums)
    }),
    ("in place", |world, _| {
        let mut sums = vec![1; LEN];
        world.in_place(&mut sums).all_reduce(Sum).map(|()| sums)
    }),
    ("symmetric", |world, [source, target]| {
        world.in_symmetric(source, target).all_reduce(Sum)?;
        target.to_vec()
    }),
    ("start", |world, _| world.start(vec![1; LEN]).all_reduce(Sum)?.wait()),
    ("start_into", |world, _| {
        let request = world.start_into(vec![1; LEN], vec![0; LEN]).all_reduce(Sum)?;
        request.wait().map(|(_, sums)| sums)
    }),
    ("start_symmetric", |world, [source, target]| {
        world.start_symmetric(source, target).all_reduce(Sum)?.wait()?;
        target.to_vec()
    }),
    ("scope", |world, _| {
        let mut sums = vec![1; LEN];
        world.overlap(|scope| scope.start_in_place(&mut sums).all_reduce(Sum).map(drop))?;
        Ok(sums)
    }),
    ("plan", |world, _| world.plan(LEN).all_reduce(Sum)?.start(vec![1; LEN])?.wait()),
];

/// One PE uses another form than the others. They get the result, or an error that reports the
/// mismatch.
#[test]
fn forms_that_do_not_match_are_reported() {
    for (most, by_most) in SUMS {
        for (last, by_last) in SUMS {
            let ended = alone(LIMIT, move || {
                pes_of(3).run(|pe| {
                    let world = pe.world();
                    let (source, target) = (world.symmetric(LEN)?, world.symmetric(LEN)?);
                    source.fill(1)?;
                    world.barrier()?;
                    let sum = if world.rank() == Rank(2) { by_last } else { by_most };
                    assert_eq!(sum(world, [&source, &target])?, [3; LEN]);
                    world.barrier()
                })
            });
            let is_told = matches!(ended, Ok(_) | Err(Error::Mismatched(_)));
            assert!(is_told, "{most}, and {last} on PE 2: {ended:?}");
            assert!(most != last || ended.is_ok(), "{most}: {ended:?}");
        }
    }
}

/// Zero-sized elements may have the largest length: nothing overflows.
#[test]
fn longest_data_of_zero_sized_elements_does_not_overflow() {
    const MOST: usize = usize::MAX;
    fn both((): (), (): ()) {}
    let done = on(pes_of(3), |world| {
        let (all, third, root) = (vec![(); MOST], vec![(); MOST / 3], Rank(1));
        let mut target = all.clone();
        assert_eq!(world.values(&all).broadcast(root)?.len(), MOST);
        assert_eq!(world.values(&third).all_gather()?.len(), MOST);
        assert!(world.values(&all).all_gather().is_err()); // too long for a vector
        world.slices(&all, &mut target).scan(both)?;
        world.slices(&all, &mut target[..MOST / 3]).reduce_scatter(both)?;
        world.in_place(&mut target).all_to_all()?;
        world.in_place(&mut target).all_reduce(both)?;
        let (source, memory) = (world.symmetric::<()>(MOST)?, world.symmetric::<()>(MOST)?);
        world.in_symmetric(&source, &memory).broadcast(root)?;
        world.start_symmetric(&source, &memory).with_len(MOST / 3).all_gather()?.wait()?;
        let planned = world.plan::<()>(MOST).broadcast(root)?;
        assert_eq!(planned.start(all.clone())?.wait()?.len(), MOST);
        let blocks = Displacements::new(&[MOST / 3; 3])?;
        let gathered = world.start(third).with_counts(&blocks).all_gather()?.wait()?;
        assert_eq!(gathered.len(), MOST);
        world.overlap(|scope| scope.start_in_place(&mut target).all_gather().map(drop))
    });
    assert_eq!(done.len(), 3);
}
