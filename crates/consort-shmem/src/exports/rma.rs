//! Puts, gets, and puts with signals.

use libc::{c_int, ptrdiff_t};

use super::{rma_types, rma_types_but_long_double, routine, sizes, with_context};
use crate::{rma, signal, strided};

/// Contiguous elements. The name has parts before and after the verb.
macro_rules! contiguous_routines {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        with_context!(($($before,)* "put" $(, $after)*)
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::put);
        with_context!(($($before,)* "put", $($after,)* "_nbi")
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::put_nbi);
        with_context!(($($before,)* "get" $(, $after)*)
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::get);
        with_context!(($($before,)* "get", $($after,)* "_nbi")
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) => rma::get_nbi);
        with_context!(($($before,)* "put", $($after,)* "_signal")
            (dest: *mut $t, source: *const $t, nelems: usize,
             sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int) => signal::put_signal);
        with_context!(($($before,)* "put", $($after,)* "_signal_nbi")
            (dest: *mut $t, source: *const $t, nelems: usize,
             sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int) => signal::put_signal_nbi);
    };
}

/// Strided elements, or strided blocks of elements.
macro_rules! strided_routines {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        with_context!(($($before,)* "iput" $(, $after)*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, nelems: usize,
             pe: c_int) => strided::iput);
        with_context!(($($before,)* "iget" $(, $after)*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, nelems: usize,
             pe: c_int) => strided::iget);
        with_context!(($($before,)* "ibput" $(, $after)*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, bsize: usize,
             nblocks: usize, pe: c_int) => strided::ibput);
        with_context!(($($before,)* "ibget" $(, $after)*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, bsize: usize,
             nblocks: usize, pe: c_int) => strided::ibget);
    };
}

macro_rules! typed {
    ($name:literal, $t:ty) => {
        contiguous_routines!($t, ($name, "_"), ());
        strided_routines!($t, ($name, "_"), ());
    };
}

macro_rules! sized {
    ($size:literal, $t:ty) => {
        contiguous_routines!($t, (), ($size));
        strided_routines!($t, (), ($size));
    };
}

macro_rules! one_element {
    ($name:literal, $t:ty) => {
        with_context!(($name, "_p") (dest: *mut $t, value: $t, pe: c_int) => rma::p);
        with_context!(($name, "_g") (source: *const $t, pe: c_int) -> $t => rma::g);
    };
}

rma_types!(typed);
sizes!(sized);
contiguous_routines!(u8, (), ("mem"));
rma_types_but_long_double!(one_element);

with_context!(("signal_set") (sig_addr: *mut u64, signal: u64, pe: c_int) => signal::signal_set);
with_context!(("signal_add") (sig_addr: *mut u64, signal: u64, pe: c_int) => signal::signal_add);
routine!(("signal_fetch") (sig_addr: *const u64) -> u64 => signal::signal_fetch(sig_addr));
with_context!(("fence") () => rma::fence);
with_context!(("quiet") () => rma::quiet);
with_context!(("pe_quiet") (target_pes: *const c_int, npes: usize) => rma::pe_quiet);
