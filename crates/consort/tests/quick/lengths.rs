//! Lengths near the largest number, which zero-sized elements can have. Products of lengths that
//! overflow are errors, even in builds whose arithmetic does not check for overflow.

use std::ops::Bound;

use consort::{
    Displacements, Error, Job, Rank, Result, Team,
    bindings::places::collective_at,
    error::{CallError, DisplacementsError},
    ops::Sum,
    tune::Collective,
};

/// Half of the number range: twice this number is 0 in wrapping arithmetic.
const HALF: usize = 1 << (usize::BITS - 1);
const ROOT: Rank = Rank(0);

/// Runs a program on two PEs.
fn with_two(program: impl Fn(&Team) -> Result<()> + Sync) {
    let done = Job::threads(2).run(|pe| program(pe.world()));
    assert!(done.is_ok(), "{:?}", done.err());
}

/// Ignores its operands.
fn nothing((): (), (): ()) {}

#[track_caller]
fn assert_blocks<T>(outcome: &Result<T>, collective: Collective) {
    let Err(error) = outcome else { panic!("{collective} of wrapped lengths is accepted") };
    let Error::Call(CallError::Blocks { collective: found, .. }) = error else { panic!("{error}") };
    assert_eq!(*found, collective, "{error}");
}

#[test]
fn blocks_whose_product_wraps_around_are_refused() {
    with_two(|world| {
        let half = vec![(); HALF];
        assert_blocks(&world.slices(&half, &mut []).all_gather(), Collective::AllGather);
        assert_blocks(&world.slices(&[], &mut [(); 1]).all_to_all(), Collective::AllToAll);
        assert_blocks(&world.values(&half).all_gather(), Collective::AllGather);
        assert_blocks(&world.start(half.clone()).all_gather(), Collective::AllGather);
        let outcome =
            world.overlap(|scope| scope.start_into(&half, &mut []).all_gather().map(drop));
        assert_blocks(&outcome, Collective::AllGather);
        assert_blocks(&world.plan::<()>(HALF).all_gather(), Collective::AllGather);
        let outcome = world.slices(&[], &mut [(); HALF]).reduce_scatter(nothing);
        assert_blocks(&outcome, Collective::ReduceScatter);
        if world.rank() == ROOT {
            assert_blocks(&world.slices(&half, &mut []).gather(ROOT), Collective::Gather);
            assert_blocks(&world.values(&half).gather(ROOT), Collective::Gather);
            let outcome = world.slices(&[], &mut [(); HALF]).scatter(ROOT);
            assert_blocks(&outcome, Collective::Scatter);
            let outcome = world.slices(&half, &mut []).any(Collective::Gather, nothing, ROOT);
            assert_blocks(&outcome, Collective::Gather);
        }
        let (long, none) = (world.symmetric::<()>(HALF)?, world.symmetric::<()>(0)?);
        assert_blocks(&world.in_symmetric(&long, &none).all_gather(), Collective::AllGather);
        let outcome = world.start_symmetric(&long, &none).any(Collective::AllGather, nothing, ROOT);
        assert_blocks(&outcome, Collective::AllGather);
        world.barrier()
    });
}

#[test]
fn zero_sized_elements_take_no_time() {
    with_two(|world| {
        let mut all = vec![(); usize::MAX];
        world.in_place(&mut all).broadcast(ROOT)?;
        world.slices(&all[..HALF - 1], &mut all.clone()[..usize::MAX - 1]).all_gather()?;
        world.slices(&all[..usize::MAX - 1], &mut all.clone()[..usize::MAX - 1]).all_to_all()?;
        world.slices(&all, &mut all.clone()).all_reduce(nothing)?;
        world.in_place(&mut all).all_reduce(nothing)?;
        world.in_place(&mut all).scan(nothing)?;
        world.send_receive(world.right(), &all, world.left(), &mut all.clone())?;
        assert_eq!(world.start(all.clone()).broadcast(ROOT)?.wait()?.len(), usize::MAX);
        let memory = world.symmetric::<()>(usize::MAX)?;
        memory.fill(())?;
        memory.put(world.right(), 0, &all)?;
        memory.put_strided(world.right(), 0, 1, &all, 1)?;
        let is_outside =
            |outcome| matches!(outcome, Err(Error::Call(CallError::OutOfBounds { .. })));
        assert!(is_outside(memory.put(ROOT, 1, &all)));
        assert!(is_outside(memory.put_strided(ROOT, 1, 1, &all, 1)));
        assert!(is_outside(memory.range(..=usize::MAX).map(drop)));
        let after_all = (Bound::Excluded(usize::MAX), Bound::Unbounded);
        assert!(is_outside(memory.range(after_all).map(drop)));
        assert_eq!(memory.range(usize::MAX..)?.len(), 0);
        world.in_symmetric(&memory, &memory).broadcast(ROOT)?;
        world.barrier()
    });
}

#[test]
fn overflowing_displacements_are_refused() {
    for counts in [[HALF, HALF], [usize::MAX, 1]] {
        let (displacement, count) = (counts[0], counts[1]);
        let overflow = DisplacementsError::Overflow { rank: Rank(1), count, displacement };
        assert_eq!(Displacements::new(&counts), Err(overflow));
    }
    with_two(|world| {
        let counts = [usize::MAX, 0];
        let blocks = Displacements::new(&counts)?;
        let own = vec![(); counts[world.rank().index()]];
        let mut all = vec![(); usize::MAX];
        world.slices(&own, &mut all).with_counts(&blocks).all_gather()?;
        let short = world.slices(&own, &mut all[1..]).with_counts(&blocks).all_gather();
        assert!(matches!(
            short,
            Err(Error::Call(CallError::Displacements(DisplacementsError::Beyond { .. })))
        ));
        Ok(())
    });
}

/// Such lengths come from C, where memory is an address and a number.
#[test]
fn uncountable_byte_lengths_are_refused() {
    for len in [usize::MAX, usize::MAX / 8 + 1, usize::MAX / 16 + 1] {
        let gathered = Job::threads(2).run(|pe| {
            let call = (Collective::AllGather, None);
            collective_at::<u64, Sum>(pe.world(), call, None, (0, 1024), len)
        });
        assert!(
            matches!(gathered.map(drop), Err(Error::Call(CallError::InPlace))),
            "{len} elements"
        );
        let sent = Job::threads(2).run(|pe| {
            let call = (Collective::Broadcast, Some(ROOT));
            collective_at::<u64, Sum>(pe.world(), call, None, (0, 0), len)
        });
        let Err(error) = sent else { panic!("{len} elements are accepted") };
        assert!(error.to_string().contains("must lie in the symmetric heap"), "{error}");
    }
}
