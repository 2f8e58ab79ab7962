//! The libraries with which Consort is compared.
//!
//! 1. [`threads`]: collectives that a programmer writes with the barrier of a thread library;
//! 2. [`mpi`]: the installed MPI libraries, measured by a C program;
//! 3. [`openmp`]: the threads of the C compilers, likewise;
//! 4. [`programs`]: the launches of the programs in C between the rounds of a run; `printed`: their
//!    output; `commands`: compiles and runs them;
//! 5. [`fork_join`]: threads that run parallel regions, behind one trait;
//! 6. [`openshmem`]: this project's OpenSHMEM library next to another one;
//! 7. [`native_locks`]: locks of libraries in C and C++; `loading`: loads them.

mod barriers;
pub mod commands;
pub mod fork_join;
mod loading;
pub mod mpi;
pub mod native_locks;
pub mod openmp;
pub mod openshmem;
mod printed;
pub mod programs;
pub mod threads;
