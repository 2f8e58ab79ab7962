//! The output of the C programs: `figure BYTES SAMPLE_NS ...`, and for MPI also `library NAME`.

use anyhow::{Context, Result, ensure};

#[derive(Debug, Default, PartialEq)]
pub(super) struct PrintedOutput {
    /// The library's name and version, as it reports them.
    pub(super) library: Option<String>,
    /// The size of a block in bytes, and the times of a call in nanoseconds.
    pub(super) figures: Vec<(u64, Vec<f64>)>,
}

impl PrintedOutput {
    /// Reads the output of a program that was started for figures of `sizes`. Other lines, which
    /// launchers may add, are skipped.
    ///
    /// # Errors
    /// If the figures, one of each size in order, are incomplete or have no times.
    pub(super) fn read(output: &str, sizes: &[u64]) -> Result<Self> {
        let mut printed = Self::default();
        for line in output.lines() {
            if let Some(library) = line.strip_prefix("library ") {
                printed.library = Some(library.to_owned());
            } else if let Some(figure) = line.strip_prefix("figure ") {
                let figure = of_line(figure);
                printed.figures.push(figure.with_context(|| format!("no figure: {line}"))?);
            }
        }
        let found: Vec<u64> = printed.figures.iter().map(|(bytes, _)| *bytes).collect();
        ensure!(
            found == sizes,
            "the program printed figures of {found:?} instead of {sizes:?} bytes: {}",
            output.chars().take(100).collect::<String>().escape_debug()
        );
        Ok(printed)
    }
}

fn of_line(figure: &str) -> Result<(u64, Vec<f64>)> {
    let (bytes, samples) = figure.split_once(' ').context("the times are missing")?;
    let bytes = bytes.parse().context("the size is not a number of bytes")?;
    let samples = samples.split_whitespace().map(str::parse::<f64>);
    let samples: Vec<f64> = samples.collect::<Result<_, _>>().context("a time is not a number")?;
    ensure!(!samples.is_empty(), "the times are missing");
    ensure!(samples.iter().all(|ns| ns.is_finite() && *ns > 0.0), "a time is not positive");
    Ok((bytes, samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_lines_are_read() {
        let output = "a launcher's warning\n\
                      library Open MPI v5.0.11, package: whatever, ident: 5.0.11\n\
                      figure 8 74.00 73.50 90.25\n\
                      figure 65536 7454.70\n";
        let printed = PrintedOutput::read(output, &[8, 65536]).unwrap();
        let library = printed.library.as_deref().unwrap();
        assert_eq!(library, "Open MPI v5.0.11, package: whatever, ident: 5.0.11");
        assert_eq!(printed.figures, [(8, vec![74.0, 73.5, 90.25]), (65536, vec![7454.7])]);
    }

    #[test]
    fn nonsense_is_an_error_in_a_line() {
        let lines = ["figure 8", "figure 8 ", "figure 8 fast", "figure x 1.0"];
        for line in lines.iter().chain(&["figure 8 -1", "figure 8 nan", "figure 8 inf"]) {
            let why = format!("{:#}", PrintedOutput::read(line, &[8]).unwrap_err());
            assert!(why.starts_with(&format!("no figure: {line}: ")), "{why}");
        }
        for output in ["", "hello\nworld", "figure 16 1.0", "figure 8 1.0\nfigure 8 1.0"] {
            let why = PrintedOutput::read(output, &[8]).unwrap_err().to_string();
            assert!(why.contains("instead of [8] bytes") && !why.contains('\n'), "{why}");
        }
    }
}
