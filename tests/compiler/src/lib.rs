//! The compiler of a test, for tests that compile programs with the same libraries.
//!
//! `target` may hold libraries of other builds with the same name, and only cargo knows which of
//! them a test uses. A macro runs inside the compiler, whose arguments name them.

use std::env;

use proc_macro::TokenStream;

/// Expands to the path of the compiler that compiles this file, and its arguments: a `&[&str]`.
#[proc_macro]
pub fn compiler(_: TokenStream) -> TokenStream {
    let program = env::current_exe().expect("the path of the compiler");
    let program = program.to_str().expect("a path in UTF-8").to_owned();
    let words: Vec<_> = [program].into_iter().chain(env::args().skip(1)).collect();
    format!("&{words:?}").parse().expect("an array of strings")
}
