//! Atomic operations, and their names before version 1.4.

use libc::c_int;

use super::{atomic_types, bitwise_types, each, routine, with_context};
use crate::{atomic, contexts::Context};

/// Operations with a value: without a result, and with the old value as the result.
macro_rules! changes {
    ($name:literal, $t:ty, $change:literal, $plain:ident, $fetching:ident, $nbi:ident) => {
        with_context!(($name, "_atomic_", $change)
            (dest: *mut $t, value: $t, pe: c_int) => atomic::$plain);
        with_context!(($name, "_atomic_fetch_", $change)
            (dest: *mut $t, value: $t, pe: c_int) -> $t => atomic::$fetching);
        with_context!(($name, "_atomic_fetch_", $change, "_nbi")
            (fetch: *mut $t, dest: *mut $t, value: $t, pe: c_int) => atomic::$nbi);
    };
}

macro_rules! bitwise {
    ($name:literal, $t:ty) => {
        changes!($name, $t, "and", atomic_and, atomic_fetch_and, atomic_fetch_and_nbi);
        changes!($name, $t, "or", atomic_or, atomic_fetch_or, atomic_fetch_or_nbi);
        changes!($name, $t, "xor", atomic_xor, atomic_fetch_xor, atomic_fetch_xor_nbi);
    };
}

macro_rules! standard {
    ($name:literal, $t:ty) => {
        extended!($name, $t);
        changes!($name, $t, "add", atomic_add, atomic_fetch_add, atomic_fetch_add_nbi);
        with_context!(($name, "_atomic_inc") (dest: *mut $t, pe: c_int) => atomic::atomic_inc);
        with_context!(($name, "_atomic_fetch_inc")
            (dest: *mut $t, pe: c_int) -> $t => atomic::atomic_fetch_inc);
        with_context!(($name, "_atomic_fetch_inc_nbi")
            (fetch: *mut $t, dest: *mut $t, pe: c_int) => atomic::atomic_fetch_inc_nbi);
        with_context!(($name, "_atomic_compare_swap")
            (dest: *mut $t, cond: $t, value: $t, pe: c_int) -> $t => atomic::atomic_compare_swap);
        with_context!(($name, "_atomic_compare_swap_nbi")
            (fetch: *mut $t, dest: *mut $t, cond: $t, value: $t, pe: c_int) =>
            atomic::atomic_compare_swap_nbi);
    };
}

macro_rules! extended {
    ($name:literal, $t:ty) => {
        with_context!(($name, "_atomic_fetch")
            (source: *const $t, pe: c_int) -> $t => atomic::atomic_fetch);
        with_context!(($name, "_atomic_fetch_nbi")
            (fetch: *mut $t, source: *const $t, pe: c_int) => atomic::atomic_fetch_nbi);
        with_context!(($name, "_atomic_set")
            (dest: *mut $t, value: $t, pe: c_int) => atomic::atomic_set);
        with_context!(($name, "_atomic_swap")
            (dest: *mut $t, value: $t, pe: c_int) -> $t => atomic::atomic_swap);
        with_context!(($name, "_atomic_swap_nbi")
            (fetch: *mut $t, dest: *mut $t, value: $t, pe: c_int) => atomic::atomic_swap_nbi);
    };
}

macro_rules! deprecated {
    ($name:literal, $t:ty) => {
        deprecated_of_floats!($name, $t);
        routine!(($name, "_add") (dest: *mut $t, value: $t, pe: c_int) =>
            atomic::atomic_add(Context::DEFAULT, dest, value, pe));
        routine!(($name, "_fadd") (dest: *mut $t, value: $t, pe: c_int) -> $t =>
            atomic::atomic_fetch_add(Context::DEFAULT, dest, value, pe));
        routine!(($name, "_inc") (dest: *mut $t, pe: c_int) =>
            atomic::atomic_inc(Context::DEFAULT, dest, pe));
        routine!(($name, "_finc") (dest: *mut $t, pe: c_int) -> $t =>
            atomic::atomic_fetch_inc(Context::DEFAULT, dest, pe));
        routine!(($name, "_cswap") (dest: *mut $t, cond: $t, value: $t, pe: c_int) -> $t =>
            atomic::atomic_compare_swap(Context::DEFAULT, dest, cond, value, pe));
    };
}

macro_rules! deprecated_of_floats {
    ($name:literal, $t:ty) => {
        routine!(($name, "_fetch") (source: *const $t, pe: c_int) -> $t =>
            atomic::atomic_fetch(Context::DEFAULT, source, pe));
        routine!(($name, "_set") (dest: *mut $t, value: $t, pe: c_int) =>
            atomic::atomic_set(Context::DEFAULT, dest, value, pe));
        routine!(($name, "_swap") (dest: *mut $t, value: $t, pe: c_int) -> $t =>
            atomic::atomic_swap(Context::DEFAULT, dest, value, pe));
    };
}

atomic_types!(standard);
bitwise_types!(bitwise);
each!(extended: "float" f32, "double" f64,);
each!(deprecated: "int" i32, "long" libc::c_long, "longlong" i64,);
each!(deprecated_of_floats: "float" f32, "double" f64,);
