//! Kernels: the time to combine two operands that are in a core's cache.
//!
//! ```sh
//! cargo bench -p consort-fabric
//! ```

use consort_fabric::{Kernel, Max, Operator, Pod, Sum};
use divan::{Bencher, counter::BytesCount};

/// Bytes of an operand: one element, a line's payload, a page, half of a second-level cache.
const SIZES: [usize; 4] = [8, 56, 4096, 256 << 10];

fn main() {
    divan::main();
}

#[divan::bench(types = [f32, f64, u32, u64], args = SIZES)]
fn sum<T: Pod>(bencher: Bencher<'_, '_>, bytes: usize)
where
    Sum: Operator<T>,
{
    combine::<T, Sum>(bencher, bytes, &Sum);
}

#[divan::bench(types = [f64, u64], args = SIZES)]
fn max<T: Pod>(bencher: Bencher<'_, '_>, bytes: usize)
where
    Max: Operator<T>,
{
    combine::<T, Max>(bencher, bytes, &Max);
}

/// A user-defined operator, whose loop the compiler may not vectorize.
#[divan::bench(args = SIZES)]
fn closure(bencher: Bencher<'_, '_>, bytes: usize) {
    let modulo = |left: u64, right: u64| (left ^ right) % 1_000_003;
    combine::<u64, _>(bencher, bytes, &modulo);
}

fn combine<T: Pod, O: Operator<T>>(bencher: Bencher<'_, '_>, bytes: usize, operator: &O) {
    let kernel = Kernel::new::<T, O>(operator);
    let (mut left, right) = (vec![0; bytes], vec![0; bytes]);
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        kernel.accumulate(divan::black_box(&mut left), divan::black_box(&right));
    });
}
