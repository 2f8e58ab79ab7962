//! Suggests the collective whose name is closest to a misspelt one; knows MPI's names too.

/// MPI's names that differ from ours by more than underscores, and our names.
const OF_MPI: [(&str, &str); 7] = [
    ("bcast", "broadcast"),
    ("exscan", "exclusive_scan"),
    ("reducescatterblock", "reduce_scatter"),
    ("scatterv", "scatter_vector"),
    ("gatherv", "gather_vector"),
    ("allgatherv", "all_gather_vector"),
    ("alltoallv", "all_to_all_vector"),
];
/// The largest number of changed letters with which a text is taken for a name.
const MOST_CHANGES: usize = 2;

/// Returns the one of `names` that a text most likely means, if there is one.
pub(crate) fn suggest(text: &str, names: &[&'static str]) -> Option<&'static str> {
    let given = letters(text);
    let given = given.strip_prefix("mpi").unwrap_or(&given);
    // In short texts, fewer changes are allowed.
    let most = MOST_CHANGES.min(given.len() / 3);
    let ours = names.iter().map(|&name| (letters(name), name));
    let of_mpi = OF_MPI.map(|(name, ours)| (name.to_owned(), ours));
    ours.chain(of_mpi)
        .map(|(known, name)| (edit_distance(given, &known), name))
        .filter(|&(changes, _)| changes <= most)
        .min_by_key(|&(changes, _)| changes)
        .map(|(_, name)| name)
}

/// Returns the letters and digits of a text in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|one| one.to_ascii_lowercase()).collect()
}

/// Returns how many letters must be inserted, deleted or changed to turn one text into the other
/// (Levenshtein 1966).
fn edit_distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (at, with) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != with);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] =
        ["barrier", "all_gather", "all_to_all", "reduce", "all_reduce", "scan"];

    #[test]
    fn mpi_names_and_typos_get_suggestions() {
        for (text, name) in [
            ("allreduce", "all_reduce"),
            ("all_reduc", "all_reduce"),
            ("MPI_Allreduce", "all_reduce"),
            ("bcast", "broadcast"),
            ("allgather", "all_gather"),
            ("alltoall", "all_to_all"),
            ("alltoallv", "all_to_all_vector"),
            ("exscan", "exclusive_scan"),
            ("reduce_scatter_block", "reduce_scatter"),
            ("barier", "barrier"),
            ("Scan", "scan"),
        ] {
            assert_eq!(suggest(text, &NAMES), Some(name), "{text}");
        }
        for text in ["", "x", "shuffle", "stack", "sum"] {
            assert_eq!(suggest(text, &NAMES), None, "{text}");
        }
    }

    #[test]
    fn edit_distances_are_counted() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("scan", "scan"), 0);
    }
}
