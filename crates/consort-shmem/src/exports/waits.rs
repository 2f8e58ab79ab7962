//! Routines that wait for words, or test them.

use libc::{c_int, c_long};

use super::{atomic_types, each, routine};
use crate::wait;

macro_rules! one {
    ($name:literal, $t:ty) => {
        routine!(($name, "_wait_until") (ivar: *mut $t, cmp: c_int, cmp_value: $t) =>
            wait::wait_until(ivar, cmp, cmp_value));
        routine!(($name, "_test") (ivar: *mut $t, cmp: c_int, cmp_value: $t) -> c_int =>
            wait::test(ivar, cmp, cmp_value));
    };
}

/// A wait or a test, with one value for all words and with one value per word.
macro_rules! of_many {
    ($name:literal, $t:ty, $routine:literal, $function:ident, $vector:ident,
     ($($indices:ident)?) $(, $result:ty)?) => {
        routine!(($name, $routine)
            (ivars: *mut $t, nelems: usize, $($indices: *mut usize,)? status: *const c_int,
             cmp: c_int, cmp_value: $t) $(-> $result)? =>
            wait::$function(ivars, nelems, $($indices,)? status, cmp, cmp_value));
        routine!(($name, $routine, "_vector")
            (ivars: *mut $t, nelems: usize, $($indices: *mut usize,)? status: *const c_int,
             cmp: c_int, cmp_values: *const $t) $(-> $result)? =>
            wait::$vector(ivars, nelems, $($indices,)? status, cmp, cmp_values));
    };
}

macro_rules! many {
    ($name:literal, $t:ty) => {
        of_many!($name, $t, "_wait_until_all", wait_until_all, wait_until_all_vector, ());
        of_many!($name, $t, "_wait_until_any", wait_until_any, wait_until_any_vector, (), usize);
        of_many!(
            $name,
            $t,
            "_wait_until_some",
            wait_until_some,
            wait_until_some_vector,
            (indices),
            usize
        );
        of_many!($name, $t, "_test_all", test_all, test_all_vector, (), c_int);
        of_many!($name, $t, "_test_any", test_any, test_any_vector, (), usize);
        of_many!($name, $t, "_test_some", test_some, test_some_vector, (indices), usize);
    };
}

macro_rules! deprecated {
    ($name:literal, $t:ty) => {
        routine!(($name, "_wait") (ivar: *mut $t, cmp_value: $t) => wait::wait(ivar, cmp_value));
    };
}

atomic_types!(one);
each!(one: "short" i16, "ushort" u16,);
atomic_types!(many);
each!(deprecated: "short" i16, "int" i32, "long" c_long, "longlong" i64,);
routine!(("wait") (ivar: *mut c_long, cmp_value: c_long) => wait::wait(ivar, cmp_value));
routine!(("wait_until") (ivar: *mut c_long, cmp: c_int, cmp_value: c_long) =>
    wait::wait_until(ivar, cmp, cmp_value));
routine!(("signal_wait_until") (sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64 =>
    wait::signal_wait_until(sig_addr, cmp, cmp_value));
