//! Operators that combine contributions: named operators, and the trait for other operators.
//!
//! | operators | combine |
//! | --- | --- |
//! | [`Sum`], [`Product`], [`Min`], [`Max`] | integers and floats, and arrays of them |
//! | [`BitAnd`], [`BitOr`], [`BitXor`] | integers and `bool`, and arrays of integers |
//! | associative closures, and types that implement [`Operator`] | any values that a call takes |

/// An operator that combines two values into one: a named one, a closure, or a user-defined type.
///
/// # Examples
/// A closure is an operator. It must be associative; it need not be commutative, because operands
/// keep the order of the ranks.
///
/// ```
/// use consort::{Job, Rank};
///
/// // Composes the maps x -> a x + b.
/// let compose = |[a, b]: [i64; 2], [c, d]: [i64; 2]| [a * c, b * c + d];
/// let maps = Job::threads(3).run(|pe| {
///     let me = i64::from(pe.world().rank().0);
///     pe.world().reduce([2, me], compose, Rank(0))
/// })?;
/// assert_eq!(maps[0], Some([8, 4])); // 2 (2 (2 x + 0) + 1) + 2
/// # Ok::<(), consort::Error>(())
/// ```
///
/// A closure that accesses parts of its operands states the types of both. A pattern does, too.
///
/// ```
/// use consort::Job;
///
/// let all = Job::threads(3).run(|pe| {
///     let mine = f64::from(pe.world().rank().0);
///     let both = |(sum, most): (f64, f64), (one, other)| (sum + one, most.max(other));
///     pe.world().all_reduce((mine, mine), both)
/// })?;
/// assert_eq!(all, [(3.0, 2.0); 3]);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Types without an operator are rejected at compile time.
///
/// ```compile_fail,E0277
/// # use consort::{Job, ops::Sum};
/// Job::threads(3).run(|pe| pe.world().all_reduce((1, 2.5), Sum).map(drop));
/// ```
///
/// A user-defined type can be declared commutative, which allows more algorithms, and has a name in
/// error messages.
///
/// ```
/// use consort::{Job, ops::{Operator, OperatorClass}};
///
/// struct Gcd;
///
/// impl Operator<u64> for Gcd {
///     const CLASS: OperatorClass = OperatorClass::Commutative;
///     const NAME: &'static str = "Gcd";
///
///     fn apply(&self, mut left: u64, mut right: u64) -> u64 {
///         while right != 0 {
///             (left, right) = (right, left % right);
///         }
///         left
///     }
/// }
///
/// let all = Job::threads(3).run(|pe| {
///     let me = u64::from(pe.world().rank().0);
///     pe.world().all_reduce(12 * (me + 1), Gcd)
/// })?;
/// assert_eq!(all, [12; 3]);
/// # Ok::<(), consort::Error>(())
/// ```
#[doc(inline)]
pub use consort_fabric::Operator;
#[doc(inline)]
pub use consort_fabric::{BitAnd, BitOr, BitXor, Max, Min, OperatorClass, Product, Sum};
