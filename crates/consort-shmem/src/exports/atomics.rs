//! Atomic operations, and their names before version 1.4.

use libc::c_int;

use super::{atomic_types, bitwise_types, each, routine, with_context};
use crate::{atomic, contexts::Context};

/// Operations with a value: without a result, and with the old value as the result.
macro_rules! changes {
    ($name:literal, $t:ty, $change:literal, $plain:ident, $fetching:ident) => {
        with_context!(($name, "_atomic_", $change) (dest: *mut $t, value: $t, pe: c_int) =>
            |ctx| atomic::$plain(ctx, dest, value, pe));
        fetching!($name, $t, ("fetch_", $change), $fetching, (dest: *mut $t, value: $t));
    };
}

/// An operation with a result, and one that writes the result to an address.
macro_rules! fetching {
    ($name:literal, $t:ty, ($($operation:literal),+), $function:ident,
     ($($parameter:ident: $type:ty),+)) => {
        with_context!(($name, "_atomic_", $($operation),+)
            ($($parameter: $type,)+ pe: c_int) -> $t =>
            |ctx| atomic::$function(ctx, $($parameter,)+ pe));
        with_context!(($name, "_atomic_", $($operation,)+ "_nbi")
            (fetch: *mut $t, $($parameter: $type,)+ pe: c_int) =>
            |ctx| fetch.write(atomic::$function(ctx, $($parameter,)+ pe)));
    };
}

macro_rules! bitwise {
    ($name:literal, $t:ty) => {
        changes!($name, $t, "and", atomic_and, atomic_fetch_and);
        changes!($name, $t, "or", atomic_or, atomic_fetch_or);
        changes!($name, $t, "xor", atomic_xor, atomic_fetch_xor);
    };
}

macro_rules! standard {
    ($name:literal, $t:ty) => {
        extended!($name, $t);
        changes!($name, $t, "add", atomic_add, atomic_fetch_add);
        with_context!(($name, "_atomic_inc") (dest: *mut $t, pe: c_int) =>
            |ctx| atomic::atomic_inc(ctx, dest, pe));
        fetching!($name, $t, ("fetch_inc"), atomic_fetch_inc, (dest: *mut $t));
        fetching!($name, $t, ("compare_swap"), atomic_compare_swap,
            (dest: *mut $t, cond: $t, value: $t));
    };
}

macro_rules! extended {
    ($name:literal, $t:ty) => {
        with_context!(($name, "_atomic_set") (dest: *mut $t, value: $t, pe: c_int) =>
            |ctx| atomic::atomic_set(ctx, dest, value, pe));
        fetching!($name, $t, ("fetch"), atomic_fetch, (source: *const $t));
        fetching!($name, $t, ("swap"), atomic_swap, (dest: *mut $t, value: $t));
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
