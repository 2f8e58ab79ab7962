//! The C symbols: `pshmem_…`, and for each a weak `shmem_…`, which a profiler may define itself.
//!
//! The tables of types are those of the specification.

mod atomics;
mod collectives;
mod counting;
mod job;
mod long_double;
mod memory;
mod rma;
mod waits;

/// Exports a routine whose name consists of these parts.
macro_rules! routine {
    (
        ($($part:expr),+)
        ($($parameter:ident: $type:ty),*) $(-> $result:ty)? => $body:expr
    ) => {
        const _: () = {
            #[unsafe(export_name = concat!("pshmem_", $($part),+))]
            unsafe extern "C" fn routine($($parameter: $type),*) $(-> $result)? {
                #[allow(unused_unsafe, clippy::allow_attributes, reason = "some routines make no \
                                                                           unsafe call")]
                // SAFETY: the specification requires this of the program.
                unsafe { $body }
            }
        };
        crate::exports::weak!($($part),+);
    };
}

/// Makes a routine's name a weak alias.
macro_rules! weak {
    ($($part:expr),+) => {
        core::arch::global_asm!(
            concat!(".weak shmem_", $($part),+),
            concat!(".set shmem_", $($part,)+ ", pshmem_", $($part),+),
        );
    };
}

/// Exports a routine with the default context and, as `ctx_…`, with any context.
macro_rules! with_context {
    (
        ($($part:expr),+)
        ($($parameter:ident: $type:ty),*) $(-> $result:ty)? => |$ctx:ident| $body:expr
    ) => {
        crate::exports::routine!(($($part),+) ($($parameter: $type),*) $(-> $result)? => {
            let $ctx = crate::contexts::Context::DEFAULT;
            $body
        });
        crate::exports::routine!(
            ("ctx_", $($part),+)
            ($ctx: crate::contexts::Context $(, $parameter: $type)*) $(-> $result)? => $body
        );
    };
}

/// Passes each of these types to a macro, with its name in routines and the type itself.
macro_rules! each {
    ($macro:ident: $($name:literal $type:ty,)*) => {
        $($macro!($name, $type);)*
    };
}

/// The types of puts and gets except `long double`, which is passed in special registers.
macro_rules! rma_types_but_long_double {
    ($macro:ident) => {
        crate::exports::each!($macro:
            "float" f32, "double" f64, "char" libc::c_char, "schar" i8, "short" i16, "int" i32,
            "long" libc::c_long, "longlong" i64, "uchar" u8, "ushort" u16, "uint" u32,
            "ulong" libc::c_ulong, "ulonglong" u64, "int8" i8, "int16" i16, "int32" i32,
            "int64" i64, "uint8" u8, "uint16" u16, "uint32" u32, "uint64" u64, "size" usize,
            "ptrdiff" isize,
        );
    };
}

/// The types of puts, gets and collectives.
macro_rules! rma_types {
    ($macro:ident) => {
        crate::exports::rma_types_but_long_double!($macro);
        $macro!("longdouble", crate::elements::LongDouble);
    };
}

/// The types with a given number of bits.
macro_rules! sizes {
    ($macro:ident) => {
        crate::exports::each!($macro: "8" u8, "16" u16, "32" u32, "64" u64, "128" u128,);
    };
}

/// The types of bitwise atomic operations.
macro_rules! bitwise_types {
    ($macro:ident) => {
        crate::exports::each!($macro:
            "uint" u32, "ulong" libc::c_ulong, "ulonglong" u64, "int32" i32, "int64" i64,
            "uint32" u32, "uint64" u64,
        );
    };
}

/// The standard types of atomic operations.
macro_rules! atomic_types {
    ($macro:ident) => {
        crate::exports::bitwise_types!($macro);
        crate::exports::each!($macro:
            "int" i32, "long" libc::c_long, "longlong" i64, "size" usize, "ptrdiff" isize,
        );
    };
}

use {
    atomic_types, bitwise_types, each, rma_types, rma_types_but_long_double, routine, sizes, weak,
    with_context,
};
