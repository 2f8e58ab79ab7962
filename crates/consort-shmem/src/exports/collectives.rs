//! Collective routines: of teams, and of active sets, which are deprecated.

use libc::{c_char, c_int, c_long, c_ulong, ptrdiff_t};

use super::{each, rma_types, routine};
use crate::{
    active_sets, collectives,
    elements::{And, Complex, LongDouble, MaxOp, MinOp, Or, ProductOp, SumOp, Xor},
    reductions,
    teams::Team,
};

macro_rules! moves {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        routine!(($($before,)* "broadcast" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize, root: c_int) -> c_int =>
            collectives::broadcast(team, dest, source, nelems, root));
        routine!(($($before,)* "collect" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::collect(team, dest, source, nelems));
        routine!(($($before,)* "fcollect" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::fcollect(team, dest, source, nelems));
        routine!(($($before,)* "alltoall" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::alltoall(team, dest, source, nelems));
        routine!(($($before,)* "alltoalls" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t,
             nelems: usize) -> c_int =>
            collectives::alltoalls(team, dest, source, dst, sst, nelems));
    };
}

macro_rules! typed {
    ($name:literal, $t:ty) => {
        moves!($t, ($name, "_"), ());
    };
}

rma_types!(typed);
moves!(u8, (), ("mem"));

routine!(("barrier_all") () => collectives::barrier_all());
routine!(("sync_all") () => collectives::sync_all());
routine!(("team_sync") (team: Team) -> c_int => collectives::team_sync(team));

macro_rules! moves_of_set {
    ($size:literal, $t:ty) => {
        routine!(("broadcast", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, root: c_int, start: c_int,
             log_stride: c_int, size: c_int, _sync: *mut c_long) =>
            active_sets::broadcast(
                dest, source, nelems, root, (start, log_stride, size)));
        routine!(("collect", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::collect(dest, source, nelems, (start, log_stride, size)));
        routine!(("fcollect", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::fcollect(dest, source, nelems, (start, log_stride, size)));
        routine!(("alltoall", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::alltoall(dest, source, nelems, (start, log_stride, size)));
        routine!(("alltoalls", $size)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, nelems: usize,
             start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
            active_sets::alltoalls(
                dest, source, dst, sst, nelems, (start, log_stride, size)));
    };
}

each!(moves_of_set: "32" u32, "64" u64,);
routine!(("barrier") (start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
    active_sets::barrier((start, log_stride, size)));
routine!(("sync") (start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
    active_sets::sync((start, log_stride, size)));

macro_rules! of_team {
    ($name:literal, $t:ty, $routine:literal, $operator:ty) => {
        routine!(($name, "_", $routine, "_reduce")
            (team: Team, dest: *mut $t, source: *const $t, nreduce: usize) -> c_int =>
            reductions::reduce::<$t, $operator>(team, dest, source, nreduce));
    };
}

macro_rules! bits {
    ($name:literal, $t:ty) => {
        of_team!($name, $t, "and", And);
        of_team!($name, $t, "or", Or);
        of_team!($name, $t, "xor", Xor);
    };
}

macro_rules! order {
    ($name:literal, $t:ty) => {
        of_team!($name, $t, "max", MaxOp);
        of_team!($name, $t, "min", MinOp);
    };
}

macro_rules! sums {
    ($name:literal, $t:ty) => {
        of_team!($name, $t, "sum", SumOp);
        of_team!($name, $t, "prod", ProductOp);
        routine!(($name, "_sum_inscan")
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            reductions::sum_inscan(team, dest, source, nelems));
        routine!(($name, "_sum_exscan")
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            reductions::sum_exscan(team, dest, source, nelems));
    };
}

macro_rules! numbers {
    ($name:literal, $t:ty) => {
        order!($name, $t);
        sums!($name, $t);
    };
}

macro_rules! integers {
    ($name:literal, $t:ty) => {
        numbers!($name, $t);
        bits!($name, $t);
    };
}

each!(integers:
    "uchar" u8, "ushort" u16, "uint" u32, "ulong" c_ulong, "ulonglong" u64, "int8" i8,
    "int16" i16, "int32" i32, "int64" i64, "uint8" u8, "uint16" u16, "uint32" u32, "uint64" u64,
    "size" usize,
);
each!(numbers:
    "char" c_char, "schar" i8, "short" i16, "int" i32, "long" c_long, "longlong" i64,
    "ptrdiff" isize, "float" f32, "double" f64, "longdouble" LongDouble,
);
each!(sums: "complexd" Complex<f64>, "complexf" Complex<f32>,);

macro_rules! of_active_set {
    ($name:literal, $t:ty, $routine:literal, $operator:ty) => {
        routine!(($name, "_", $routine, "_to_all")
            (dest: *mut $t, source: *const $t, nreduce: c_int, start: c_int, log_stride: c_int,
             size: c_int, _work: *mut $t, _sync: *mut c_long) =>
            active_sets::to_all::<$t, $operator>(
                dest, source, nreduce, (start, log_stride, size)));
    };
}

macro_rules! active_sums {
    ($name:literal, $t:ty) => {
        of_active_set!($name, $t, "sum", SumOp);
        of_active_set!($name, $t, "prod", ProductOp);
    };
}

macro_rules! active_numbers {
    ($name:literal, $t:ty) => {
        active_sums!($name, $t);
        of_active_set!($name, $t, "max", MaxOp);
        of_active_set!($name, $t, "min", MinOp);
    };
}

macro_rules! active_integers {
    ($name:literal, $t:ty) => {
        active_numbers!($name, $t);
        of_active_set!($name, $t, "and", And);
        of_active_set!($name, $t, "or", Or);
        of_active_set!($name, $t, "xor", Xor);
    };
}

each!(active_integers: "short" i16, "int" i32, "long" c_long, "longlong" i64,);
each!(active_numbers: "float" f32, "double" f64, "longdouble" LongDouble,);
each!(active_sums: "complexd" Complex<f64>, "complexf" Complex<f32>,);
