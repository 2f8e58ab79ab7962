//! One PE that runs its turns of a program, and checks as it goes.

use consort::{
    Error, Pe, Team,
    error::{CallError, PlanError},
    sync_modes::SyncMode,
};

use super::{
    calls,
    elements::{Datum, Memory, bytes, with_type},
    expect::{Oracle, Part},
    groups::{group_of, position},
    mutate::{Act, Role, Turn},
    overlaps::{self, Breach, Scope},
    payloads::Payload,
    program::{Call, End, Form, Gift, Program, Step},
    scenes::{self, Cut, Trouble, ensure},
    starts::{self, AnyRequest},
};

/// A started call; without a request if the PE is not in the team, or if nothing serves the call.
struct Started<'c> {
    call: &'c Call,
    request: Option<Box<dyn AnyRequest>>,
}

/// A PE and everything that it holds.
pub(super) struct Player<'c> {
    program: &'c Program,
    me: u32,
    world: Team,
    /// By slot: this PE's team there.
    teams: Vec<Option<Team>>,
    blocks: Vec<Option<Memory>>,
    /// Memory that other PEs have already dropped.
    late: Vec<Memory>,
    requests: Vec<Option<Started<'c>>>,
    oracle: Oracle<'c>,
    /// Whether this PE follows the program: if not, only the others' data is known.
    checks: bool,
}

/// Returns the result of a call; `None` if the forced algorithm cannot serve it, as on all other
/// PEs.
fn served<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => Ok(None),
        Err(error) => Err(error),
    }
}

impl<'c> Player<'c> {
    pub(super) fn new(pe: &Pe, program: &'c Program) -> Self {
        let world = pe.world();
        Self {
            program,
            me: world.rank().0,
            world: world.clone(),
            teams: vec![Some(world.clone())],
            blocks: Vec::new(),
            late: Vec::new(),
            requests: Vec::new(),
            oracle: Oracle::new(program),
            checks: true,
        }
    }

    /// Runs a turn. `Ok(false)` means that it was the last.
    pub(super) fn turn(&mut self, turn: &'c Turn, role: &Role) -> Result<bool, Trouble> {
        if role.departs.is_some_and(|departs| turn.number >= departs) {
            self.checks = false;
        }
        let (mut charge, mut breach, mut cut) = (None, None, None);
        match turn.act {
            Act::Plain => {}
            Act::Forgets => cut = Some(Cut::Forget),
            Act::Late => std::thread::sleep(super::mutate::LATE),
            Act::Leaves => return Ok(false),
            Act::Fails if matches!(turn.step, Step::Overlap { .. }) => breach = Some(Breach::Error),
            Act::Fails if matches!(turn.step, Step::Scene { .. }) => cut = Some(Cut::Fail),
            Act::Throws(payload) if matches!(turn.step, Step::Scene { .. }) => {
                cut = Some(Cut::Throw(payload));
            }
            Act::Fails => return Err(Error::Wisdom("an error on purpose".to_owned()).into()),
            Act::Throws(payload) if matches!(turn.step, Step::Overlap { .. }) => {
                breach = Some(Breach::Panic(payload));
            }
            Act::Throws(payload) => payload.throw(),
            Act::Charged(payload) => charge = Some(payload),
        }
        self.step(&turn.step, cut, charge, breach)?;
        Ok(true)
    }

    fn team(&self, slot: usize) -> Option<Team> {
        self.teams.get(slot)?.clone()
    }

    /// Returns a call from the view of this PE, if it is in the team.
    fn part(&self, call: &'c Call) -> Option<(Team, Part<'c>)> {
        let team = self.team(call.slot)?;
        let group = group_of(&self.program.slots[call.slot], self.me)?;
        let part = Part { call, size: group.len(), me: position(group, self.me) };
        Some((team.with_sync(call.sync), part))
    }

    fn step(
        &mut self,
        step: &'c Step,
        cut: Option<Cut>,
        charge: Option<Payload>,
        breach: Option<Breach>,
    ) -> Result<(), Trouble> {
        match step {
            Step::Barrier => {
                if served(self.world.barrier())?.is_some() {
                    for block in 0..self.blocks.len() {
                        self.verify(block)?;
                    }
                    self.late.clear();
                    // No PE continues before all have checked.
                    self.world.barrier()?;
                }
            }
            Step::Refill { block, seed } => self.refill(step, *block, *seed)?,
            Step::Force { slot, collective, candidate } => {
                if let Some(team) = self.team(*slot) {
                    team.algorithms().force(*collective, candidate.clone());
                }
            }
            Step::Divide { parent, division, slot } => {
                let made = match self.team(*parent) {
                    Some(team) => served(division.make(&team))?,
                    None => None,
                };
                let made = made.unwrap_or_else(|| vec![None; 2]);
                for (slot, team) in (*slot..).zip(made) {
                    self.keep_team(slot, team)?;
                }
            }
            Step::Free { slot } => {
                if let Some(team) = self.team(*slot) {
                    served(team.clone().free())?;
                    let after = team.barrier();
                    ensure(after == Err(Error::Call(CallError::Freed)), || {
                        format!("a freed team: {after:?}")
                    })?;
                }
            }
            Step::Allocate { slot, block, ty, len } => {
                self.allocate(step, *slot, *block, *ty, *len)?
            }
            Step::Give { block, gift } => {
                if let Some(memory) = self.blocks.get_mut(*block).and_then(Option::take) {
                    match gift {
                        Gift::Staggered if self.me % 2 == 1 => self.late.push(memory),
                        Gift::Drop | Gift::Staggered => drop(memory),
                        #[expect(clippy::mem_forget, reason = "symmetric memory may be forgotten")]
                        Gift::Forget => std::mem::forget(memory),
                    }
                    self.oracle.follow(step);
                }
            }
            Step::Call(call) => self.call(step, call, charge)?,
            Step::Start { call, request } => self.start(step, call, *request, charge)?,
            Step::Finish { request, end } => self.finish(*request, *end)?,
            Step::Overlap { calls, ends, barrier } => {
                self.overlap(calls, ends, *barrier, charge, breach)?;
            }
            Step::Scene { slot, scene, seed } => {
                if let Some(team) = self.team(*slot) {
                    let heap_bytes = self.program.heap_bytes;
                    match scenes::play(&team, *scene, *seed, heap_bytes, cut) {
                        Err(Trouble::Error(Error::Call(CallError::Plan(
                            PlanError::Incapable { .. },
                        )))) => {}
                        Err(Trouble::Wrong(what)) => self.wrong(|| what)?,
                        other => other?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Reports wrong data.
    fn wrong(&self, what: impl FnOnce() -> String) -> Result<(), Trouble> {
        if self.checks { Err(Trouble::Wrong(what())) } else { Ok(()) }
    }

    /// Stores a new team after checking its members.
    fn keep_team(&mut self, slot: usize, team: Option<Team>) -> Result<(), Trouble> {
        let group = self.program.slots.get(slot).and_then(|groups| group_of(groups, self.me));
        if let Some(team) = &team {
            let group = group.map_or(&[][..], Vec::as_slice);
            let rank = |at| team.world_rank(at).map(|rank| rank.0);
            let members = team.ranks().map(rank).collect::<Result<Vec<_>, _>>()?;
            if members != group {
                self.wrong(|| format!("a team of {members:?}, not of {group:?}"))?;
            }
        }
        self.teams.resize(self.teams.len().max(slot + 1), None);
        self.teams[slot] = team;
        Ok(())
    }

    fn refill(&mut self, step: &Step, block: usize, seed: u64) -> Result<(), Trouble> {
        if let Some(Some(memory)) = self.blocks.get(block) {
            let data = self.oracle.refill(block, seed, self.me);
            let known = self.oracle.block(block).expect("it has memory");
            let slot = known.slot;
            let group = group_of(&self.program.slots[slot], self.me).expect("a member");
            let rank = consort::Rank::new(position(group, self.me));
            with_type!(known.ty, T => {
                let memory = T::memory(memory);
                memory.put(rank, 0, &super::elements::elements(&data, memory.len()))?;
            });
            self.oracle.follow(step);
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        step: &Step,
        slot: usize,
        block: usize,
        ty: super::elements::Type,
        len: usize,
    ) -> Result<(), Trouble> {
        let Some(team) = self.team(slot) else { return Ok(()) };
        let many = len * team.size();
        self.blocks.resize_with(self.blocks.len().max(block + 4), || None);
        for (index, len) in [len, len, many, many].into_iter().enumerate() {
            let memory = with_type!(ty, T => T::allocate(&team, len));
            let Some(memory) = served(memory)? else { return Ok(()) };
            self.blocks[block + index] = Some(memory);
        }
        self.oracle.follow(step);
        (block..block + 4).try_for_each(|block| self.verify(block))
    }

    /// Checks this PE's part of a block, if its content is known.
    fn verify(&self, block: usize) -> Result<(), Trouble> {
        let (Some(known), Some(Some(memory))) = (self.oracle.block(block), self.blocks.get(block))
        else {
            return Ok(());
        };
        if known.in_use || !self.checks {
            return Ok(());
        }
        let group = group_of(&self.program.slots[known.slot], self.me).expect("a member");
        let rank = consort::Rank::new(position(group, self.me));
        let found = with_type!(known.ty, T => {
            let memory = T::memory(memory);
            let mut data = vec![bytemuck::Zeroable::zeroed(); memory.len()];
            memory.get(rank, 0, &mut data)?;
            bytes::<T>(&data)
        });
        self.same(&found, self.oracle.part(block, self.me), &format!("block {block}"))
    }

    fn same(&self, found: &[u8], expected: &[u8], what: &str) -> Result<(), Trouble> {
        if found == expected {
            return Ok(());
        }
        let at = found.iter().zip(expected).position(|(a, b)| a != b);
        let (len, due) = (found.len(), expected.len());
        self.wrong(|| format!("{what}: {len} bytes, {due} expected, which differ at {at:?}"))
    }

    /// Compares the result of a call with the expected one.
    fn check(&self, part: Part<'_>, found: Option<Vec<u8>>) -> Result<(), Trouble> {
        match (found, part.result()) {
            (Some(found), Some(expected)) => self.same(&found, &expected, "the result"),
            (None, None) => Ok(()),
            (found, _) if found.is_some() => {
                self.wrong(|| "a result, where none is due".to_owned())
            }
            _ => self.wrong(|| "no result, where one is due".to_owned()),
        }
    }

    /// Returns whether all memory that a call uses exists.
    fn has_memory(&self, call: &Call) -> bool {
        let has = |block| matches!(self.blocks.get(block), Some(Some(_)));
        call.memory().is_none_or(|(from, to)| has(from) && has(to))
    }

    fn call(
        &mut self,
        step: &Step,
        call: &'c Call,
        charge: Option<Payload>,
    ) -> Result<(), Trouble> {
        if !self.has_memory(call) {
            return Ok(());
        }
        let Some((team, part)) = self.part(call) else {
            self.oracle.follow(step);
            return Ok(());
        };
        let Some((from, to)) = call.memory() else {
            let made = with_type!(call.ty, T => calls::call::<T>(&team, part, charge));
            return match served(made)? {
                Some(found) => self.check(part, found),
                None => Ok(()),
            };
        };
        let (source, target) = (&self.blocks[from], &self.blocks[to]);
        let (Some(source), Some(target)) = (source, target) else { return Ok(()) };
        let made = with_type!(call.ty, T => {
            calls::call_in_memory(&team, part, (T::memory(source), T::memory(target)), charge)
        });
        if served(made)?.is_some() {
            self.oracle.follow(step);
            if call.sync.exit != SyncMode::None {
                self.verify(to)?;
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        step: &Step,
        call: &'c Call,
        request: usize,
        charge: Option<Payload>,
    ) -> Result<(), Trouble> {
        if !self.has_memory(call) {
            return Ok(());
        }
        let mut started = None;
        if let Some((team, part)) = self.part(call) {
            let made = match call.memory() {
                None => with_type!(call.ty, T => starts::start::<T>(team, part, charge)),
                Some((from, to)) => {
                    let (source, target) = (&self.blocks[from], &self.blocks[to]);
                    let (Some(source), Some(target)) = (source, target) else { return Ok(()) };
                    with_type!(call.ty, T => {
                        let memory = (T::memory(source), T::memory(target));
                        starts::start_in_memory(team, part, memory, charge)
                    })
                }
            };
            started = served(made)?;
            if started.is_none() {
                return Ok(());
            }
        }
        self.oracle.follow(step);
        self.requests.resize_with(self.requests.len().max(request + 1), || None);
        self.requests[request] = Some(Started { call, request: started });
        Ok(())
    }

    fn finish(&mut self, request: usize, end: End) -> Result<(), Trouble> {
        let Some(started) = self.requests.get_mut(request).and_then(Option::take) else {
            return Ok(());
        };
        let Started { call, request } = started;
        let found = match request {
            Some(request) => request.end(end)?,
            None => None,
        };
        if matches!(end, End::Drop | End::Forget) {
            return Ok(());
        }
        self.oracle.complete(call);
        match (self.part(call), call.form, found) {
            (_, Form::StartMemory { to, .. }, _) if call.sync.exit != SyncMode::None => {
                self.verify(to)
            }
            (_, Form::StartMemory { .. }, _) => Ok(()),
            (Some((_, part)), _, Some(found)) => self.check(part, found),
            _ => Ok(()),
        }
    }

    fn overlap(
        &mut self,
        calls: &'c [Call],
        ends: &'c [End],
        has_barrier: bool,
        charge: Option<Payload>,
        breach: Option<Breach>,
    ) -> Result<(), Trouble> {
        let parts: Vec<_> = calls.iter().filter_map(|call| self.part(call)).collect();
        let Some((team, _)) = parts.first().cloned() else { return Ok(()) };
        let parts = parts.into_iter().map(|(_, part)| part).collect();
        let scope = Scope { parts, ends, has_barrier, breach, charge };
        let ty = calls[0].ty;
        let made = with_type!(ty, T => overlaps::overlap::<T>(&team, &scope));
        let Some(found) = served(made)? else { return Ok(()) };
        for (part, found) in scope.parts.iter().zip(found) {
            if let Some(found) = found {
                self.check(*part, Some(found))?;
            }
        }
        Ok(())
    }
}
