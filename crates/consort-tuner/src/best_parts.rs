//! Candidates that consist of parts: combines the best candidates of all parts.
//!
//! There are too many combinations of parts, so a catalogue varies one part at a time and uses the
//! defaults for the others. The times of parts add up, so the best parts form the best whole.

use consort_fabric::Candidate;

/// Returns the combination of the best of each part; `None` if it is one of the candidates.
/// `ranking` begins with the fastest candidate.
pub(crate) fn best_of_each(ranking: &[&Candidate]) -> Option<Candidate> {
    let first = ranking.iter().find(|one| !one.parts.is_empty())?;
    let is_alike = |one: &&&Candidate| one.algorithm == first.algorithm;
    let all: Vec<&Candidate> = ranking.iter().filter(is_alike).copied().collect();
    let differing = |one: &Candidate, other: &Candidate| {
        one.parts.iter().zip(&other.parts).filter(|(part, of_other)| part != of_other).count()
    };
    // Most differ from the default one in one part, and from each other in two.
    let near = |one: &&&Candidate| all.iter().filter(|other| differing(one, other) <= 1).count();
    let default = *all.iter().max_by_key(near)?;
    let mut whole = default.clone();
    for (index, part) in whole.parts.iter_mut().enumerate() {
        let differs_here = |one: &&&Candidate| {
            differing(one, default) == usize::from(one.parts[index] != default.parts[index])
        };
        *part = all.iter().find(differs_here)?.parts[index].clone();
    }
    (!all.contains(&&whole)).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(ranking: &[&str]) -> Option<String> {
        let all: Vec<Candidate> = ranking.iter().map(|text| text.parse().unwrap()).collect();
        best_of_each(&all.iter().collect::<Vec<_>>()).map(|whole| whole.to_string())
    }

    #[test]
    fn best_parts_are_combined() {
        let default = "two(a,b,c)";
        assert_eq!(best(&["flat", "two(a,x,c)", "two(y,b,c)", default]).unwrap(), "two(y,x,c)");
        assert_eq!(best(&["two(a,x,c)", "two(a,z,c)", default, "two(y,b,c)"]), None);
        assert_eq!(best(&[default, "two(a,x,c)", "flat"]), None);
        assert_eq!(best(&["flat"]), None);
        // Others may be slow, or may already be combinations.
        let ranking = ["two(y,x,c)", "two(a,x,c)", "two(a,b,z)", "two(y,b,c)", default];
        assert_eq!(best(&ranking).unwrap(), "two(y,x,z)");
    }
}
