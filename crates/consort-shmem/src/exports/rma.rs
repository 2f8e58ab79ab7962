//! Puts, gets, and puts with signals.

use libc::{c_int, ptrdiff_t};

use super::{rma_types, rma_types_but_long_double, routine, sizes, with_context};
use crate::{rma, signal, strided};

/// Contiguous elements. The name has parts before and after the verb.
macro_rules! contiguous_routines {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        with_context!(($($before,)* "put" $(, $after)*)
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) =>
            |ctx| rma::put(ctx, dest, source, nelems, pe));
        with_context!(($($before,)* "put", $($after,)* "_nbi")
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) =>
            |ctx| rma::put_nbi(ctx, dest, source, nelems, pe));
        with_context!(($($before,)* "get" $(, $after)*)
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) =>
            |ctx| rma::get(ctx, dest, source, nelems, pe));
        with_context!(($($before,)* "get", $($after,)* "_nbi")
            (dest: *mut $t, source: *const $t, nelems: usize, pe: c_int) =>
            |ctx| rma::get_nbi(ctx, dest, source, nelems, pe));
        signalling!("shmem_put_signal", $t, ($($before,)* "put", $($after,)* "_signal"));
        signalling!("shmem_put_signal_nbi", $t, ($($before,)* "put", $($after,)* "_signal_nbi"));
    };
}

macro_rules! signalling {
    ($routine:literal, $t:ty, ($($part:literal),*)) => {
        with_context!(($($part),*)
            (dest: *mut $t, source: *const $t, nelems: usize,
             sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int) => |ctx| {
            let (data, signal) = ((dest, source, nelems), (sig_addr, signal, sig_op));
            signal::put_signal($routine, ctx, data, signal, pe);
        });
    };
}

/// Strided elements, or strided blocks of elements.
macro_rules! strided_routines {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        strided!(put, "shmem_iput", "shmem_ibput", $t,
            ($($before,)* "iput" $(, $after)*), ($($before,)* "ibput" $(, $after)*));
        strided!(get, "shmem_iget", "shmem_ibget", $t,
            ($($before,)* "iget" $(, $after)*), ($($before,)* "ibget" $(, $after)*));
    };
}

macro_rules! strided {
    ($function:ident, $of_elements:literal, $of_blocks:literal, $t:ty,
     ($($elements:literal),*), ($($blocks:literal),*)) => {
        with_context!(($($elements),*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, nelems: usize,
             pe: c_int) =>
            |ctx| strided::$function(
                $of_elements, ctx, dest, source, (dst, sst), (1, nelems), pe));
        with_context!(($($blocks),*)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, bsize: usize,
             nblocks: usize, pe: c_int) =>
            |ctx| strided::$function(
                $of_blocks, ctx, dest, source, (dst, sst), (bsize, nblocks), pe));
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
        with_context!(($name, "_p")
            (dest: *mut $t, value: $t, pe: c_int) => |ctx| rma::p(ctx, dest, value, pe));
        with_context!(($name, "_g")
            (source: *const $t, pe: c_int) -> $t => |ctx| rma::g(ctx, source, pe));
    };
}

rma_types!(typed);
sizes!(sized);
contiguous_routines!(u8, (), ("mem"));
rma_types_but_long_double!(one_element);

with_context!(("signal_set") (sig_addr: *mut u64, signal: u64, pe: c_int) =>
    |ctx| signal::signal_set(ctx, sig_addr, signal, pe));
with_context!(("signal_add") (sig_addr: *mut u64, signal: u64, pe: c_int) =>
    |ctx| signal::signal_add(ctx, sig_addr, signal, pe));
routine!(("signal_fetch") (sig_addr: *const u64) -> u64 => signal::signal_fetch(sig_addr));
with_context!(("fence") () => |ctx| rma::fence(ctx));
with_context!(("quiet") () => |ctx| rma::quiet(ctx));
with_context!(("pe_quiet") (target_pes: *const c_int, npes: usize) =>
    |ctx| rma::pe_quiet(ctx, target_pes, npes));
