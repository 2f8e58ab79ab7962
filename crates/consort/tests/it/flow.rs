//! Long random programs in teams whose credits are sent in two steps: runs of calls of every mode
//! in the world and in two parts of it, some of them nonblocking, with PEs that are late.

use std::{thread, time::Duration};

use consort::{
    Error, Job, Pe, Rank, Result, Team, bindings::JobBuilderExt as _, error::CallError,
    nonblocking::Request, sync_modes::SyncModes, tune::Collective,
};
use consort_conformance::{
    data::{Random, affine},
    registry::everything,
    turns::{LIMIT, alone, note},
};
use consort_fabric::Nodes;
use consort_sandbox::seeds::seeds;

/// The calls of a program: six windows of 64.
const CALLS: usize = 400;
const SIZES: [usize; 5] = [9, 12, 17, 33, 70];

#[derive(Clone, Copy, Debug)]
enum What {
    Broadcast,
    Reduce,
    Scatter,
    Barrier,
    Force,
}

/// The next action of all PEs of a team.
#[derive(Debug)]
struct Step {
    team: usize,
    what: What,
    sync: SyncModes,
    is_started: bool,
    root: usize,
    seed: u64,
    /// The pending request that is waited for afterwards, if there are that many.
    ends: usize,
}

/// Calls of one kind, mode, root and team come in runs, so that whole quarters are uniform.
fn steps(seed: u64) -> Vec<Step> {
    const KINDS: [What; 5] =
        [What::Broadcast, What::Broadcast, What::Reduce, What::Scatter, What::Barrier];
    let mut random = Random(seed);
    let modes: Vec<_> = SyncModes::every().collect();
    // The length of runs: in a long run of Loose calls with one root, only credits hold PEs back.
    let calm = *random.pick(&[1, 10, 100]);
    let (starts, syncs) = (*random.pick(&[3, 100, CALLS]), calm * *random.pick(&[2, 10]));
    let (mut what, mut sync) = (What::Broadcast, SyncModes::LOOSE);
    let (mut root, mut team, mut started) = (0, 0, 0);
    let mut step = || {
        if random.chance(8 * calm) || matches!(what, What::Barrier | What::Force) {
            what = if random.chance(9) { What::Force } else { *random.pick(&KINDS) };
        }
        if random.chance(syncs) {
            sync = *random.pick(&modes);
        } else if random.chance(5) {
            sync = SyncModes::LOOSE;
        }
        if random.chance(5 * calm) {
            root = random.below(1 << 20);
        }
        if random.chance(20 * calm) {
            team = random.below(3);
        }
        started = if random.chance(starts) { random.below(5) } else { started.max(1) - 1 };
        let (seed, ends) = (random.next_word(), random.below(40));
        Step { team, what, sync, is_started: started > 0, root, seed, ends }
    };
    (0..CALLS).map(|_| step()).collect()
}

/// Returns a PE's contribution to a call.
fn given(seed: u64, rank: Rank) -> u64 {
    Random(seed ^ (u64::from(rank.0) + 1) << 40).next_word()
}

/// A request, with the expected result.
enum Open {
    Data(Request<Vec<u64>>, u64),
    Sum(Request<Option<Vec<u64>>>, Option<u64>),
    Barrier(Request<()>),
}

impl Open {
    fn end(self) -> Result<()> {
        match self {
            Self::Data(request, expected) => assert_eq!(request.wait()?, [expected]),
            Self::Sum(request, expected) => {
                assert_eq!(request.wait()?, expected.map(|sum| vec![sum]));
            }
            Self::Barrier(request) => request.wait()?,
        }
        Ok(())
    }
}

/// Makes a call, or starts it. The forced algorithm may be unable to serve it, on any PE.
fn play(team: &Team, step: &Step) -> Result<Option<Open>> {
    let (rank, pes, seed) = (team.rank(), team.size(), step.seed);
    let root = Rank::new(step.root % pes);
    let (mine, synced) = (given(seed, rank), team.with_sync(step.sync));
    let sum = || team.ranks().map(|one| given(seed, one)).reduce(affine);
    let sum = || if root == rank { sum() } else { None };
    let blocks = || team.ranks().map(|one| given(seed, one)).collect::<Vec<_>>();
    let blocks = || if root == rank { blocks() } else { Vec::new() };
    match (step.what, step.is_started) {
        (What::Broadcast, false) => assert_eq!(synced.broadcast(mine, root)?, given(seed, root)),
        (What::Reduce, false) => assert_eq!(synced.reduce(mine, affine, root)?, sum()),
        (What::Scatter, false) => assert_eq!(synced.scatter(&blocks(), root)?, mine),
        (What::Barrier, false) => team.barrier()?,
        (What::Broadcast, true) => {
            let request = synced.start(vec![mine]).broadcast(root)?;
            return Ok(Some(Open::Data(request, given(seed, root))));
        }
        (What::Reduce, true) => {
            return Ok(Some(Open::Sum(synced.start(vec![mine]).reduce(affine, root)?, sum())));
        }
        (What::Scatter, true) => {
            return Ok(Some(Open::Data(synced.start(blocks()).with_len(1).scatter(root)?, mine)));
        }
        (What::Barrier, true) => return Ok(Some(Open::Barrier(team.start_barrier()?))),
        (What::Force, _) => {
            let mut random = Random(seed);
            let collective = *random.pick(&[Collective::Broadcast, Collective::Reduce]);
            let candidate = random.pick(&everything(collective)).clone();
            team.algorithms().force(collective, (!random.chance(4)).then_some(candidate));
        }
    }
    Ok(None)
}

fn program(pe: &Pe, seed: u64) -> Result<()> {
    const PARTS: &str = "each PE has a colour";
    let world = pe.world();
    let me = world.rank().0;
    let [alternate, lower] =
        [u32::from(me.is_multiple_of(3)), u32::from(world.rank().index() < world.size() / 4)]
            .map(Some);
    let teams = [
        world,
        &world.split(alternate, -i64::from(me))?.expect(PARTS),
        &world.split(lower, 0)?.expect(PARTS),
    ];
    let mut random = Random(seed ^ u64::from(me) << 20);
    let very_late = Random(seed).below(world.size()) == world.rank().index();
    let at = random.below(CALLS / 2);
    let mut open = Vec::new();
    for (index, step) in steps(seed).iter().enumerate() {
        random.dawdle();
        if very_late && index == at {
            thread::sleep(Duration::from_millis(60));
        }
        match play(teams[step.team], step) {
            Err(Error::Call(CallError::Plan(_))) => {
                for collective in [Collective::Broadcast, Collective::Reduce] {
                    teams[step.team].algorithms().force(collective, None);
                }
            }
            played => open.extend(played?),
        }
        if step.ends < open.len() {
            open.swap_remove(step.ends).end()?;
        }
    }
    open.into_iter().rev().try_for_each(Open::end)?;
    world.barrier()
}

#[test]
fn long_programs_are_right_in_teams_whose_credits_go_in_steps() {
    seeds(10, 50, &[]).for_each(|seed| {
        let pes = *Random(seed).pick(&SIZES);
        alone(LIMIT, move || {
            note(format!("seed {seed} on {pes} PEs"));
            let pes = Job::threads(pes).heap_bytes(1 << 16);
            let pes = if seed % 5 == 4 { pes.helper_threads() } else { pes };
            pes.run(|pe| program(pe, seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        });
    });
}

/// The same among PEs of several processes and nodes, where a credit may overtake messages of
/// others.
#[test]
fn long_programs_are_right_on_nodes() {
    seeds(4, 40, &[]).for_each(|seed| {
        let forms = [Nodes::Blocks(5), Nodes::InTurn(3), Nodes::Blocks(8), Nodes::Blocks(1)];
        let form = forms[usize::try_from(seed % 4).expect("few")];
        alone(LIMIT, move || {
            note(format!("seed {seed} on {form:?}"));
            let pes = Job::threads(12).heap_bytes(1 << 16).loopback([form; 2], seed);
            pes.run(|pe| program(pe, seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        });
    });
}
