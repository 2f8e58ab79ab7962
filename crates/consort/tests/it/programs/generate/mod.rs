//! Programs from seeds.
//!
//! The generator obeys the modes. If a call with mode None may still use memory, the program does
//! not touch this memory before a barrier. It touches the memory of a nonblocking call only after
//! the call is complete.

mod calls;

use std::collections::HashSet;

use consort::{Waiting, sync_modes::SyncModes, tune::Collective};
use consort_conformance::{data::Random, registry::everything};

use super::{
    elements::Type,
    groups::{Division, Groups},
    program::{Call, Form, Gift, Program, Scene, Step},
};

/// The symmetric memory of each PE, and that of a program that uses most of it at a time.
const HEAP_BYTES: usize = 6 << 20;
const TIGHT_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Use {
    /// Touched since the last barrier: no mode None before the next one.
    is_touched: bool,
    /// Perhaps still in use by others: must not be touched before the next barrier.
    is_busy: bool,
    /// In use by a nonblocking call, until it is complete.
    is_started: bool,
}

/// Four blocks: two of a length, and two of that length for each PE.
struct Bundle {
    slot: usize,
    block: usize,
    ty: Type,
    len: usize,
    uses: [Use; 4],
}

struct Channel {
    groups: Groups,
    is_alive: bool,
    /// The collectives with a forced algorithm here or in the parent.
    forced: HashSet<Collective>,
}

struct Generator {
    random: Random,
    is_tight: bool,
    is_forcing: bool,
    slots: Vec<Channel>,
    bundles: Vec<Bundle>,
    blocks: usize,
    /// Requests that have not ended yet.
    open: Vec<(usize, Call)>,
    requests: usize,
    is_large_left: bool,
    steps: Vec<Step>,
}

/// Returns the program of a seed.
pub(super) fn program(seed: u64) -> Program {
    let mut random = Random(seed);
    let pes = *random.pick(&[1, 2, 2, 2, 3, 3, 3, 4, 4, 5]);
    let pes = if random.chance(30) { *random.pick(&[6, 8, 11]) } else { pes };
    let waiting = *random.pick(&Waiting::EVERY);
    let waiting = Some(waiting).filter(|&one| pes <= 2 || one != Waiting::Spin);
    let (helpers, online) = (random.chance(5), random.chance(4));
    let is_tight = random.chance(10);
    let is_forcing = random.chance(2);
    let mut forced = Vec::new();
    for _ in 0..if is_forcing { random.below(5) } else { 0 } {
        let collective = *random.pick(&Collective::EVERY);
        forced.push((collective, random.pick(&everything(collective)).clone()));
    }
    let length = 5 + random.below(36);
    let world = Channel {
        groups: vec![(0..pes).collect()],
        is_alive: true,
        forced: forced.iter().map(|(collective, _)| *collective).collect(),
    };
    let mut generator = Generator {
        random,
        is_tight,
        is_forcing,
        slots: vec![world],
        bundles: Vec::new(),
        blocks: 0,
        open: Vec::new(),
        requests: 0,
        is_large_left: true,
        steps: Vec::new(),
    };
    if !is_tight {
        generator.allocate(0);
    }
    while generator.steps.len() < length {
        generator.step();
    }
    generator.end();
    Program {
        seed,
        pes,
        waiting,
        helpers,
        online,
        heap_bytes: if is_tight { TIGHT_BYTES } else { HEAP_BYTES },
        forced,
        forms: None,
        slots: generator.slots.into_iter().map(|slot| slot.groups).collect(),
        steps: generator.steps,
    }
}

impl Generator {
    fn seed(&mut self) -> u64 {
        self.random.next_word()
    }

    fn barrier(&mut self) {
        self.steps.push(Step::Barrier);
        for usage in self.bundles.iter_mut().flat_map(|bundle| &mut bundle.uses) {
            *usage = Use { is_started: usage.is_started, ..Use::default() };
        }
    }

    /// Returns a slot with teams.
    fn slot(&mut self) -> usize {
        let alive: Vec<_> =
            (0..self.slots.len()).filter(|&slot| self.slots[slot].is_alive).collect();
        if self.random.chance(2) { 0 } else { *self.random.pick(&alive) }
    }

    /// Returns the elements of a call's block: mostly few bytes, or about a line or a chunk.
    fn len(&mut self, ty: Type) -> usize {
        let size = ty.bytes().max(1);
        let around = |bytes: usize| (bytes / size).max(1);
        match self.random.below(40) {
            0..=2 => 0,
            3..=9 => 1,
            10..=14 => 2 + self.random.below(6),
            15..=19 => around(48 + self.random.below(17)),
            20..=23 => around(500 + self.random.below(700)),
            24..=27 => around(*self.random.pick(&[4096, 8192])) + self.random.below(3) - 1,
            28..=30 => around(16_384) + self.random.below(3) - 1,
            31 => around(40_000),
            32 if self.is_large_left => {
                self.is_large_left = false;
                let bytes = if self.random.chance(6) { 1 << 20 } else { 130_000 };
                around(bytes) + 1
            }
            _ => around(8 << self.random.below(6)),
        }
    }

    fn allocate(&mut self, slot: usize) {
        let ty = *self.random.pick(Type::EVERY);
        let len = self.len(ty).min(130_000 / ty.bytes().max(1));
        let block = self.blocks;
        self.blocks += 4;
        self.bundles.push(Bundle { slot, block, ty, len, uses: [Use::default(); 4] });
        self.steps.push(Step::Allocate { slot, block, ty, len });
    }

    fn step(&mut self) {
        match self.random.below(if self.is_tight { 50 } else { 70 }) {
            0..=2 => self.barrier(),
            3..=4 => self.force(),
            5..=7 => self.divide(),
            8 => self.free(),
            9..=16 => {
                let slot = self.slot();
                let call = self.own_call(slot, &[Form::Values]);
                self.steps.push(Step::Call(call));
            }
            17..=24 => {
                let slot = self.slot();
                let forms = [Form::Slices, Form::Slices, Form::InPlace, Form::Generic];
                let call = self.own_call(slot, &forms);
                self.steps.push(Step::Call(call));
            }
            25..=32 => {
                let slot = self.slot();
                let call = self.own_call(slot, &[Form::Owned, Form::Owned, Form::Planned]);
                self.start(call);
            }
            33..=38 => self.finish(),
            39..=41 => self.overlap(),
            42..=49 => self.scene(),
            50..=51 => self.refill(),
            52 if self.bundles.len() < 4 => {
                let slot = self.slot();
                self.allocate(slot);
            }
            53 => self.give(),
            54..=62 => {
                if let Some((call, bundle, from, to)) = self.memory_call(false) {
                    for index in [from, to] {
                        self.claim(bundle, index, call.sync);
                    }
                    for index in [from, to] {
                        self.used(bundle, index, call.sync);
                    }
                    self.steps.push(Step::Call(call));
                }
            }
            _ => {
                if let Some((call, bundle, from, to)) = self.memory_call(true) {
                    for index in [from, to] {
                        self.claim(bundle, index, call.sync);
                    }
                    for index in [from, to] {
                        self.used(bundle, index, call.sync);
                        self.bundles[bundle].uses[index].is_started = true;
                    }
                    self.start(call);
                }
            }
        }
    }

    fn force(&mut self) {
        if !self.is_forcing {
            return;
        }
        let slot = self.slot();
        let collective = *self.random.pick(&Collective::EVERY);
        let all = everything(collective);
        let candidate = (!self.random.chance(4)).then(|| self.random.pick(&all).clone());
        self.slots[slot].forced.insert(collective);
        self.steps.push(Step::Force { slot, collective, candidate });
    }

    fn divide(&mut self) {
        if self.slots.len() > 6 {
            return;
        }
        let (parent, seed) = (self.slot(), self.seed());
        let division = match self.random.below(4) {
            0 => Division::Split { seed },
            1 => Division::Strided { seed },
            2 => Division::Listed { seed },
            _ => Division::Grid { seed },
        };
        let slot = self.slots.len();
        for groups in division.of(&self.slots[parent].groups) {
            let forced = self.slots[parent].forced.clone();
            self.slots.push(Channel { groups, is_alive: true, forced });
        }
        self.steps.push(Step::Divide { parent, division, slot });
    }

    /// Frees teams whose symmetric memory was dropped before; calls may be in flight.
    fn free(&mut self) {
        let slot = self.slot();
        if slot == 0 {
            return;
        }
        let of_slot = |bundle: &Bundle| bundle.slot == slot;
        if self.bundles.iter().filter(|bundle| of_slot(bundle)).any(Bundle::is_started) {
            return;
        }
        while let Some(at) = self.bundles.iter().position(of_slot) {
            self.give_bundle(at);
        }
        self.slots[slot].is_alive = false;
        self.steps.push(Step::Free { slot });
    }

    fn scene(&mut self) {
        let (mut slot, seed) = (self.slot(), self.seed());
        let mut scene = *self.random.pick(&Scene::EVERY);
        if scene == Scene::Churn {
            slot = 0;
            if !self.is_tight {
                scene = Scene::Puts;
            }
        }
        self.steps.push(Step::Scene { slot, scene, seed });
    }

    fn refill(&mut self) {
        if self.bundles.is_empty() {
            return;
        }
        let (at, index) = (self.random.below(self.bundles.len()), self.random.below(4));
        if self.bundles[at].uses[index].is_started {
            return;
        }
        self.claim(at, index, SyncModes::MINE);
        self.used(at, index, SyncModes::MINE);
        let (block, seed) = (self.bundles[at].block + index, self.seed());
        self.steps.push(Step::Refill { block, seed });
    }

    fn give(&mut self) {
        if self.bundles.len() > 1 {
            let at = self.random.below(self.bundles.len());
            self.give_bundle(at);
        }
    }

    /// Drops a bundle, perhaps while a started call uses it.
    fn give_bundle(&mut self, at: usize) {
        let bundle = self.bundles.swap_remove(at);
        let is_small = bundle.len * bundle.ty.bytes() < 10_000;
        let gift = match self.random.below(5) {
            0 | 1 => Gift::Drop,
            2 if is_small => Gift::Forget,
            _ => Gift::Staggered,
        };
        // Memory that others may still access must stay until all have passed a barrier.
        if bundle.uses.iter().any(|usage| usage.is_busy) {
            self.barrier();
        }
        for index in [2, 0, 3, 1] {
            self.steps.push(Step::Give { block: bundle.block + index, gift });
        }
    }

    fn end(&mut self) {
        while !self.open.is_empty() {
            if self.random.chance(4) {
                // The end of the PE completes it.
                self.open.pop();
            } else {
                self.finish();
            }
        }
        self.barrier();
    }
}

impl Bundle {
    fn is_started(&self) -> bool {
        self.uses.iter().any(|usage| usage.is_started)
    }
}
