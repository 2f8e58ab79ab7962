//! The enums of tuning whose values have names in wisdom and on the command line.

use std::{error::Error, fmt, str::FromStr};

/// A text that is not one of the allowed words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    kind: &'static str,
    text: String,
    expected: Vec<&'static str>,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, text, expected } = self;
        write!(f, "unknown {kind} `{text}`: use {}", expected.join(", "))
    }
}

impl Error for UnknownWord {}

/// Defines a named enum whose names can also be parsed.
macro_rules! words {
    (
        $(#[$about:meta])*
        $word:ident is a $kind:literal:
        $($(#[$doc:meta])* $variant:ident = $name:literal,)*
    ) => {
        consort_fabric::named_enum! {
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $word {
                $($(#[$doc])* $variant = $name,)*
            }
        }

        impl FromStr for $word {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::EVERY.into_iter().find(|word| word.name() == text).ok_or_else(|| {
                    let expected = Self::EVERY.map(Self::name).to_vec();
                    UnknownWord { kind: $kind, text: text.to_owned(), expected }
                })
            }
        }
    };
}

words! {
    /// How the PEs of a program arrive at its calls. Wisdom is measured for one kind of arrival,
    /// and used for that kind only.
    ///
    /// Names are the same on the command line and in wisdom.
    Arrival is a "kind of arrival":
    /// Together: each call begins as soon as the previous one has ended.
    Together = "together",
    /// Skewed: each PE does random work before a call.
    Skewed = "skewed",
}

words! {
    /// Why a candidate served the calls of a profile.
    Origin is a "reason for a choice":
    /// The program forced it.
    Force = "program",
    /// It was measured on this machine.
    Wisdom = "wisdom",
    /// The model estimated it.
    Model = "model",
    /// Refinement tried or chose it while the program ran.
    Refinement = "refinement",
}

words! {
    /// How hard the tuner searches, after FFTW's planner. Higher rigour compares greater.
    Rigour is a "rigour":
    /// The model only; nothing is measured.
    Estimate = "estimate",
    /// The model prunes the candidates to a few, and successive halving decides among them.
    Measure = "measure",
    /// Successive halving among all candidates.
    Patient = "patient",
    /// All candidates are measured in full.
    Exhaustive = "exhaustive",
}

words! {
    /// How certain it is that an entry's choice beats its runner-up.
    Confidence is a "confidence":
    /// In neighbouring blocks, the choice is faster with 95 % confidence.
    Clear = "clear",
    /// Not distinguished: either may be faster. The choice is the candidate that served the calls
    /// before.
    Tie = "tie",
    /// Measured in too few launches to tell. The choice is the candidate that served the calls
    /// before, and the next search measures it again.
    Open = "open",
    /// No other candidate could be measured.
    Alone = "alone",
    /// By the model; nothing was measured.
    Model = "model",
}

words! {
    /// How far apart the cores were during a measurement, by the one-way transfer of a cache line.
    /// Shared virtual cores move between the two classes within seconds.
    TransferClass is a "transfer class":
    /// Under 80 ns: siblings of one physical core.
    Near = "near",
    /// 80 ns and above.
    Far = "far",
}

impl Confidence {
    /// Returns whether measurement has not distinguished the choice and the runner-up.
    #[must_use]
    pub const fn is_undecided(self) -> bool {
        matches!(self, Self::Tie | Self::Open)
    }
}

impl TransferClass {
    /// One-way transfers below this many nanoseconds are near.
    pub const NEAR_BELOW_NS: f64 = 80.0;

    /// Returns the class of a one-way transfer of `transfer_ns` nanoseconds.
    #[must_use]
    pub fn of(transfer_ns: f64) -> Self {
        if transfer_ns < Self::NEAR_BELOW_NS { Self::Near } else { Self::Far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_and_others_refused() {
        for rigour in Rigour::EVERY {
            assert_eq!(rigour.to_string().parse(), Ok(rigour));
        }
        for confidence in Confidence::EVERY {
            assert_eq!(confidence.to_string().parse(), Ok(confidence));
        }
        assert!(Rigour::Estimate < Rigour::Measure && Rigour::Patient < Rigour::Exhaustive);
        let error = "thorough".parse::<Rigour>().unwrap_err().to_string();
        assert_eq!(error, "unknown rigour `thorough`: use estimate, measure, patient, exhaustive");
    }

    #[test]
    fn transfer_of_80_ns_is_far() {
        assert_eq!(TransferClass::of(79.9), TransferClass::Near);
        assert_eq!(TransferClass::of(80.0), TransferClass::Far);
    }
}
