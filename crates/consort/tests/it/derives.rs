//! Calls on structs and enums that derive `Pod` or `Value`, and on `Option`.

use std::fmt::Debug;

use bytemuck::pod_read_unaligned;
use consort::{
    Error, Job, Pod, Rank, Result, Team, Value,
    error::Failure,
    ops::{Max, Operator, Sum},
};
use consort_fabric::splitmix64;

use crate::{
    every_call::every_call,
    jobs::{fails, on},
};

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(C)]
struct Particle {
    place: [f64; 3],
    charge: i64,
}

impl Particle {
    fn of(rank: u32) -> Self {
        Self { place: [f64::from(rank); 3], charge: -i64::from(rank) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(C)]
struct Pair(u32, i32);

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(transparent)]
struct Wrapped(Pair);

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(C, packed)]
struct Tight(u8, u32);

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(C)]
struct Nested {
    particle: Particle,
    pairs: [Wrapped; 2],
    r#type: Pair,
}

#[derive(Clone, Copy, Debug, PartialEq, consort::Pod)]
#[repr(C)]
struct Nothing;

/// An enum without data, with each syntax of a variant.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, consort::Value)]
#[repr(i16)]
enum Colour {
    Red = 300,
    Green {} = -7,
    r#Blue(),
}

const COLOURS: [Colour; 3] = [Colour::Red, Colour::Green {}, Colour::Blue()];

#[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
enum Single {
    Only,
}

/// With padding, and with fields of every kind.
#[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
struct Report {
    done: bool,
    failed: bool,
    r#as: char,
    particle: Particle,
    colour: Option<Colour>,
    single: Single,
    numbers: (u8, f64),
    mark: Mark,
    finished: Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
struct Mark(Option<Option<u32>>, [u16; 3]);

#[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
struct Finished;

impl Report {
    fn of(rank: u32) -> Self {
        let colour = COLOURS.get(rank as usize).copied();
        Self {
            done: rank.is_multiple_of(2),
            failed: rank == 3,
            r#as: char::from_digit(rank, 10).expect("a digit"),
            particle: Particle::of(rank),
            colour,
            single: Single::Only,
            numbers: (7, f64::from(rank) / 3.0),
            mark: Mark([None, Some(None), Some(Some(rank))][rank as usize % 3], [1, 2, 3]),
            finished: Finished,
        }
    }
}

/// Passes elements through slices and symmetric memory.
fn slices<T: Pod + PartialEq + Debug>(world: &Team, of: impl Fn(u32) -> T) -> Result<()> {
    let (me, last) = (world.rank().0, Rank::new(world.size() - 1));
    let all: Vec<T> = world.ranks().map(|rank| of(rank.0)).collect();
    let mut data = [of(me); 5];
    world.in_place(&mut data).broadcast(last)?;
    assert_eq!(data, [of(last.0); 5]);
    let mut gathered = vec![of(me); world.size()];
    world.slices(&[of(me)], &mut gathered).all_gather()?;
    assert_eq!(gathered, all);
    world.in_place(&mut data).all_reduce(|_: T, right: T| right)?;
    assert_eq!(data, [of(last.0); 5]);
    let memory = world.symmetric(3)?;
    memory.put(world.right(), 1, &[of(me)])?;
    world.barrier()?;
    assert_eq!(memory.load(1)?, of(world.left().0));
    let mut found = [of(me)];
    memory.get(world.right(), 1, &mut found)?;
    assert_eq!(found, [of(me)]);
    world.barrier()
}

#[test]
fn structs_that_derive_pod_are_elements_and_values() {
    for pes in [1, 2, 3, 5] {
        on(Job::threads(pes).heap_bytes(1 << 16), |world| {
            let pair = |rank: u32| Pair(rank, -5);
            let nested = |rank: u32| Nested {
                particle: Particle::of(rank),
                pairs: [Wrapped(pair(rank)); 2],
                r#type: pair(3),
            };
            slices(world, Particle::of)?;
            slices(world, pair)?;
            slices(world, |rank| Wrapped(pair(rank)))?;
            slices(world, |rank| Tight(3, rank))?;
            slices(world, nested)?;
            slices(world, |_| Nothing)?;
            every_call(world, nested, |left, _| left)
        });
    }
}

#[test]
fn structs_and_enums_that_derive_value_go_through_every_call_on_values() {
    for pes in [1, 2, 3, 5] {
        on(Job::threads(pes), |world| {
            let colour = |rank| COLOURS[rank as usize % 3];
            let most = |a, b| if b > a { b } else { a };
            every_call(world, colour, most)?;
            every_call(world, |_| (Single::Only, Finished), |left, _| left)?;
            every_call(world, |rank| (colour(rank), Report::of(rank), rank), |_, right| right)
        });
    }
}

#[test]
fn options_go_through_every_call_on_values() {
    let sum = |a: Option<u32>, b: Option<u32>| Some(a? + b?);
    let either = |a: Option<char>, b: Option<char>| a.or(b);
    for pes in [1, 2, 3, 5] {
        on(Job::threads(pes), move |world| {
            every_call(world, |rank| (rank != 1).then_some(rank), sum)?;
            every_call(world, |rank| (rank == 2).then_some('é'), either)?;
            let pes = u32::try_from(world.size()).expect("few PEs");
            assert_eq!(world.all_reduce(Some(1), sum)?, Some(pes));
            every_call(world, |rank| Some((rank == 1).then_some((rank, true))), |_, b| b)?;
            let last = world.size() == world.rank().index() + 1;
            let found = world.all_reduce(last.then_some('z'), either)?;
            assert_eq!(found, Some('z'));
            Ok(())
        });
    }
}

/// A named operator on a type that derives `Value`, in calls that combine.
#[test]
fn named_operator_combines_derived_values() {
    #[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
    struct Statistics {
        any: bool,
        count: u64,
        largest: f64,
    }

    #[derive(Clone, Copy)]
    struct Merge;

    impl Operator<Statistics> for Merge {
        const CLASS: consort::ops::OperatorClass = consort::ops::OperatorClass::Commutative;
        const NAME: &'static str = "Merge";

        fn apply(&self, left: Statistics, right: Statistics) -> Statistics {
            Statistics {
                any: left.any | right.any,
                count: Sum.apply(left.count, right.count),
                largest: Max.apply(left.largest, right.largest),
            }
        }
    }

    for pes in 2..=5 {
        on(Job::threads(pes), |world| {
            let of = |rank: u32| Statistics {
                any: rank == 1,
                count: 1 << rank,
                largest: -f64::from(rank),
            };
            every_call(world, of, Merge)?;
            let all = world.all_reduce(of(world.rank().0), Merge)?;
            let count = (1 << world.size()) - 1;
            assert_eq!(all, Statistics { any: true, count, largest: 0.0 });
            Ok(())
        });
    }
}

fn packed_bytes<T: Value<Kind>, Kind>(_: T) -> usize {
    size_of::<T::Packed>()
}

#[test]
fn packed_values_have_no_padding() {
    assert_eq!(packed_bytes(Colour::Red), 1);
    assert_eq!(packed_bytes(Single::Only), 1);
    assert_eq!(packed_bytes(Finished), 0);
    assert_eq!(packed_bytes(Some(1.5)), 9);
    let mark = 1 + 1 + 4 + 6;
    assert_eq!(packed_bytes(Mark(None, [0; 3])), mark);
    assert_eq!(packed_bytes(Report::of(0)), 1 + 1 + 4 + 32 + 2 + 1 + 9 + mark);
}

/// Unpacks bytes that no PE sends. What has been unpacked is packed and unpacked to the same bits.
fn unpacks_anything<T: Value<Kind>, Kind>(_: T) {
    let mut state = 0;
    for round in 0..2000 {
        let len = size_of::<T::Packed>();
        let of = |state: &mut u64| splitmix64(state).to_le_bytes()[0];
        let bytes: Vec<u8> = match round {
            0 => vec![0; len],
            1 => vec![0xff; len],
            _ => (0..len).map(|_| of(&mut state)).collect(),
        };
        let packed = T::unpack(pod_read_unaligned(&bytes)).pack();
        let again = T::unpack(packed).pack();
        assert_eq!(bytemuck::bytes_of(&packed), bytemuck::bytes_of(&again));
    }
}

#[test]
fn any_bytes_unpack_to_a_value() {
    unpacks_anything(Colour::Red);
    unpacks_anything(Single::Only);
    unpacks_anything(Finished);
    unpacks_anything(Some(1_u8));
    unpacks_anything(Some(Some('x')));
    unpacks_anything(Mark(None, [0; 3]));
    unpacks_anything(Report::of(0));
    unpacks_anything(Many::V0);
}

#[test]
fn invalid_discriminant_unpacks_to_first_variant() {
    let unpacked: Vec<Colour> = (0..=255).map(Colour::unpack).collect();
    assert_eq!(unpacked[..3], COLOURS);
    assert_eq!(unpacked[3..], [Colour::Red; 253]);
    assert!((0..=255).all(|index| Single::unpack(index) == Single::Only));
    assert_eq!(COLOURS.map(Value::pack), [0, 1, 2]);
    assert_eq!(<Option<bool>>::unpack(Some(true).pack()), Some(true));
    // Any number but 0 is `Some`.
    let bytes = |[tag, value]: [u8; 2]| <Option<bool>>::unpack(pod_read_unaligned(&[tag, value]));
    assert_eq!([[0, 1], [1, 0], [9, 9]].map(bytes), [None, Some(false), Some(true)]);
}

macro_rules! many {
    ($($variant:ident)*) => {
        /// An enum whose index does not fit into a byte.
        #[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
        enum Many { $($variant),* }

        const MANY: &[Many] = &[$(Many::$variant),*];
    };
}

many! {
    V0 V1 V2 V3 V4 V5 V6 V7 V8 V9 V10 V11 V12 V13 V14 V15
    V16 V17 V18 V19 V20 V21 V22 V23 V24 V25 V26 V27 V28 V29 V30 V31
    V32 V33 V34 V35 V36 V37 V38 V39 V40 V41 V42 V43 V44 V45 V46 V47
    V48 V49 V50 V51 V52 V53 V54 V55 V56 V57 V58 V59 V60 V61 V62 V63
    V64 V65 V66 V67 V68 V69 V70 V71 V72 V73 V74 V75 V76 V77 V78 V79
    V80 V81 V82 V83 V84 V85 V86 V87 V88 V89 V90 V91 V92 V93 V94 V95
    V96 V97 V98 V99 V100 V101 V102 V103 V104 V105 V106 V107 V108 V109 V110 V111
    V112 V113 V114 V115 V116 V117 V118 V119 V120 V121 V122 V123 V124 V125 V126 V127
    V128 V129 V130 V131 V132 V133 V134 V135 V136 V137 V138 V139 V140 V141 V142 V143
    V144 V145 V146 V147 V148 V149 V150 V151 V152 V153 V154 V155 V156 V157 V158 V159
    V160 V161 V162 V163 V164 V165 V166 V167 V168 V169 V170 V171 V172 V173 V174 V175
    V176 V177 V178 V179 V180 V181 V182 V183 V184 V185 V186 V187 V188 V189 V190 V191
    V192 V193 V194 V195 V196 V197 V198 V199 V200 V201 V202 V203 V204 V205 V206 V207
    V208 V209 V210 V211 V212 V213 V214 V215 V216 V217 V218 V219 V220 V221 V222 V223
    V224 V225 V226 V227 V228 V229 V230 V231 V232 V233 V234 V235 V236 V237 V238 V239
    V240 V241 V242 V243 V244 V245 V246 V247 V248 V249 V250 V251 V252 V253 V254 V255
    V256
}

#[test]
fn index_of_a_long_enum_is_longer_than_a_byte() {
    assert_eq!((MANY.len(), packed_bytes(Many::V0)), (257, 4));
    assert_eq!(Many::V256.pack(), 256);
    assert!(MANY.iter().all(|&one| Many::unpack(one.pack()) == one));
    assert_eq!([257, u32::MAX].map(Many::unpack), [Many::V0; 2]);
    on(Job::threads(2), |world| {
        let me = world.rank().index();
        assert_eq!(world.all_gather(MANY[256 - me])?, [Many::V256, Many::V255]);
        assert_eq!(world.scan(MANY[256 - me], |_: Many, right: Many| right)?, MANY[256 - me]);
        Ok(())
    });
}

#[test]
fn a_mismatch_names_types_as_the_program_writes_them() {
    let error = fails(2, |world| {
        if world.rank() == Rank(1) {
            world.broadcast(Some(1_u8), Rank(0)).map(drop)
        } else {
            world.broadcast([half::f16::ONE], Rank(0)).map(drop)
        }
    });
    let Error::Mismatched(Failure::Mismatched { .. }) = &error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("of Option<u8>") && text.contains("of [half::f16; 1]"), "{text}");
}
