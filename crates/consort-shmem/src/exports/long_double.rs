//! One `long double` as an argument or a result. It is passed on the stack, and returned in an x87
//! register, for which Rust has no type.

#![cfg(target_arch = "x86_64")]

use std::arch::naked_asm;

use libc::c_int;

use super::weak;
use crate::{contexts::Context, elements::LongDouble, rma};

unsafe extern "C" fn put(ctx: Context, dest: *mut LongDouble, value: *const LongDouble, pe: c_int) {
    // SAFETY: guaranteed by the program; the value is an argument on the stack.
    unsafe { rma::p(ctx, dest, value.read(), pe) }
}

unsafe extern "C" fn get(ctx: Context, source: *const LongDouble, pe: c_int, to: *mut LongDouble) {
    // SAFETY: guaranteed by the program; the result has a place on the stack.
    unsafe { to.write(rma::g(ctx, source, pe)) }
}

/// `shmem_longdouble_p(dest, value, pe)`.
#[unsafe(naked)]
#[unsafe(export_name = "pshmem_longdouble_p")]
unsafe extern "C" fn longdouble_p() {
    naked_asm!(
        "mov ecx, esi",
        "mov rsi, rdi",
        "lea rdx, [rsp + 8]",
        "mov edi, {default}",
        "jmp {put}",
        default = const Context::DEFAULT.0,
        put = sym put,
    );
}

/// `shmem_ctx_longdouble_p(ctx, dest, value, pe)`.
#[unsafe(naked)]
#[unsafe(export_name = "pshmem_ctx_longdouble_p")]
unsafe extern "C" fn ctx_longdouble_p() {
    naked_asm!("mov ecx, edx", "lea rdx, [rsp + 8]", "jmp {put}", put = sym put);
}

/// `shmem_longdouble_g(source, pe)`.
#[unsafe(naked)]
#[unsafe(export_name = "pshmem_longdouble_g")]
unsafe extern "C" fn longdouble_g() {
    naked_asm!(
        "sub rsp, 24",
        "mov edx, esi",
        "mov rsi, rdi",
        "mov edi, {default}",
        "mov rcx, rsp",
        "call {get}",
        "fld tbyte ptr [rsp]",
        "add rsp, 24",
        "ret",
        default = const Context::DEFAULT.0,
        get = sym get,
    );
}

/// `shmem_ctx_longdouble_g(ctx, source, pe)`.
#[unsafe(naked)]
#[unsafe(export_name = "pshmem_ctx_longdouble_g")]
unsafe extern "C" fn ctx_longdouble_g() {
    naked_asm!(
        "sub rsp, 24",
        "mov rcx, rsp",
        "call {get}",
        "fld tbyte ptr [rsp]",
        "add rsp, 24",
        "ret",
        get = sym get,
    );
}

weak!("longdouble_p");
weak!("ctx_longdouble_p");
weak!("longdouble_g");
weak!("ctx_longdouble_g");
