//! Calls of every form: on their own data, in symmetric memory, nonblocking, within scopes.

use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};

use super::{Bundle, Generator, Use};
use crate::programs::{
    elements::Type,
    groups::Groups,
    program::{Call, End, Form, Step},
};

/// The number of requests at a time.
const REQUESTS: usize = 8;

/// Returns whether each team of `inner` is contained in one of `outer`.
fn lies_in(inner: &Groups, outer: &Groups) -> bool {
    inner
        .iter()
        .all(|group| outer.iter().any(|other| group.iter().all(|member| other.contains(member))))
}

impl Generator {
    /// Returns a call on its own data, in a slot's teams.
    pub(super) fn own_call(&mut self, slot: usize, forms: &[Form]) -> Call {
        let random = &mut self.random;
        let form = *random.pick(forms);
        let fits = |collective: &Collective| match form {
            Form::Values | Form::Owned | Form::Planned => true,
            _ => *collective != Collective::Barrier,
        };
        let all: Vec<_> = Collective::EVERY.into_iter().filter(fits).collect();
        let collective = *random.pick(&all);
        let may_be_left = matches!(form, Form::Values | Form::Owned | Form::Planned);
        let syncs: Vec<_> =
            SyncModes::every().filter(|sync| may_be_left || sync.exit != SyncMode::None).collect();
        let (sync, ty) = (*random.pick(&syncs), *random.pick(Type::EVERY));
        let root = u32::try_from(random.below(8)).expect("few");
        let (ordered, seed) = (random.chance(2), random.next_word());
        let can_be_uneven =
            matches!(form, Form::Values | Form::Slices | Form::Owned | Form::Planned);
        let uneven = can_be_uneven && collective.is_vector() && random.chance(2);
        let is_word = form == Form::Values && !collective.is_vector();
        let len = if is_word { 1 } else { self.len(ty) };
        let len = if collective == Collective::Barrier { 0 } else { len };
        Call { slot, collective, sync, root, ty, ordered, len, seed, uneven, form }
    }

    /// Returns a call in symmetric memory, with its bundle, source and target.
    pub(super) fn memory_call(&mut self, starts: bool) -> Option<(Call, usize, usize, usize)> {
        let slot = self.slot();
        let several = 2;
        let all: Vec<_> =
            Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier).collect();
        let collective = *self.random.pick(&all);
        let index = |blocks: u32, second: usize| second + if blocks > 1 { 2 } else { 0 };
        let from = index(collective.source_blocks(several, true), 0);
        let to = match collective {
            Collective::Broadcast => from,
            _ => index(collective.target_blocks(several, true), 1),
        };
        // Memory of teams that contain these can also be used, if nothing depends on their size and
        // all PEs know that the call is served.
        let is_plain = self.slots[slot].forced.is_empty() && from < 2 && to < 2;
        let groups = &self.slots[slot].groups;
        let fits = |bundle: &Bundle| {
            let is_own = bundle.slot == slot;
            let is_free = |at: usize| !bundle.uses[at].is_started;
            is_free(from)
                && is_free(to)
                && (is_own || (is_plain && lies_in(groups, &self.slots[bundle.slot].groups)))
        };
        let fitting: Vec<_> =
            (0..self.bundles.len()).filter(|&at| fits(&self.bundles[at])).collect();
        if fitting.is_empty() {
            return None;
        }
        let random = &mut self.random;
        let at = *random.pick(&fitting);
        let (ty, len, block) = {
            let Bundle { ty, len, block, .. } = self.bundles[at];
            (ty, len, block)
        };
        let (from_block, to_block) = (block + from, block + to);
        let form = match (starts, random.chance(2)) {
            (true, _) => Form::StartMemory { from: from_block, to: to_block },
            (false, true) => Form::Memory { from: from_block, to: to_block },
            (false, false) => Form::GenericMemory { from: from_block, to: to_block },
        };
        let sync = *random.pick(&SyncModes::every().collect::<Vec<_>>());
        let root = u32::try_from(random.below(8)).expect("few");
        // Sums of sums of floats would soon be inexact.
        let ordered = ty == Type::F64 || random.chance(2);
        let is_typed = matches!(form, Form::Memory { .. });
        let uneven = is_typed && collective.is_vector() && random.chance(2);
        let seed = random.next_word();
        let call = Call { slot, collective, sync, root, ty, ordered, len, seed, uneven, form };
        Some((call, at, from, to))
    }

    /// Prepares a block for use in these modes.
    pub(super) fn claim(&mut self, bundle: usize, index: usize, sync: SyncModes) {
        let is_loose = sync.entry == SyncMode::None || sync.exit == SyncMode::None;
        let Use { is_touched, is_busy, .. } = self.bundles[bundle].uses[index];
        if is_busy || (is_touched && is_loose) {
            self.barrier();
        }
    }

    pub(super) fn used(&mut self, bundle: usize, index: usize, sync: SyncModes) {
        let is_busy = sync.exit == SyncMode::None;
        let usage = &mut self.bundles[bundle].uses[index];
        *usage = Use { is_touched: true, is_busy, ..*usage };
    }

    pub(super) fn start(&mut self, call: Call) {
        if self.open.len() >= REQUESTS {
            self.finish();
        }
        let request = self.requests;
        self.requests += 1;
        self.open.push((request, call.clone()));
        self.steps.push(Step::Start { call, request });
    }

    pub(super) fn finish(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.random.below(self.open.len());
        let (request, call) = self.open.swap_remove(at);
        let ends = [End::Wait, End::Wait, End::Test, End::Await, End::Drop, End::Forget];
        let end = *self.random.pick(&ends);
        self.steps.push(Step::Finish { request, end });
        // It is unknown when the others complete, so their memory is not used any more.
        if !matches!(end, End::Drop | End::Forget) {
            for bundle in &mut self.bundles {
                let Some((from, to)) = call.memory() else { continue };
                for block in [from, to] {
                    if let Some(usage) = bundle.uses.get_mut(block.wrapping_sub(bundle.block)) {
                        let is_busy = call.sync.exit == SyncMode::None;
                        *usage = Use { is_touched: true, is_busy, is_started: false };
                    }
                }
            }
        }
    }

    pub(super) fn overlap(&mut self) {
        let slot = self.slot();
        let first = self.own_call(slot, &[Form::Scoped]);
        let mut calls = vec![first];
        for _ in 0..self.random.below(4) {
            let (ty, sync) = (calls[0].ty, calls[0].sync);
            let mut call = self.own_call(slot, &[Form::Scoped]);
            call.len = call.len.min(130_000 / ty.bytes().max(1));
            calls.push(Call { ty, sync, ..call });
        }
        let ends = [End::Wait, End::Test, End::Await, End::Drop, End::Forget];
        let ends = calls.iter().map(|_| *self.random.pick(&ends)).collect();
        let barrier = self.random.chance(3);
        self.steps.push(Step::Overlap { calls, ends, barrier });
    }
}
