//! Lists of ranks, for messages.

use consort_fabric::Rank;

/// The largest number of ranks in a list.
const LISTED: usize = 8;

/// Returns ranks as text: `PE 1`, `PEs 1, 2 and 5`.
#[must_use]
pub fn list_of_ranks(ranks: &[Rank]) -> String {
    let named: Vec<String> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    match named.split_last() {
        None => "no PE".to_owned(),
        Some((only, [])) => format!("PE {only}"),
        _ if ranks.len() > LISTED => {
            format!("PEs {} and {} others", named.join(", "), ranks.len() - LISTED)
        }
        Some((last, others)) => format!("PEs {} and {last}", others.join(", ")),
    }
}
