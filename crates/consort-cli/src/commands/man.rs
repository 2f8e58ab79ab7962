//! `consort man`: the help of every command as manual pages.

use std::{fs, io, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_mangen::{
    Man as Page,
    roff::{Roff, roman},
};

use consort_console::output;

const EXAMPLES: &str = "\
Examples:
  consort man                          the page of the command itself
  consort man ~/.local/share/man/man1  a page for each command

Then `man consort-bench` shows that of `consort bench`.";

/// Write the manual pages of this command and its subcommands
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The folder for the pages of all commands, created if missing; without it, only the command's
    /// own page is printed
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Writes the pages of `command` and its subcommands, or prints the page of `command`.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn run(self, command: &Command) -> Result<()> {
        let mut command = command.clone().disable_help_subcommand(true);
        command.build();
        let name = command.get_name().to_owned();
        let Some(folder) = self.folder else {
            return output::print_as_it_is(&String::from_utf8(page(&command, &name)?)?);
        };
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut waiting = vec![(&command, name)];
        while let Some((command, name)) = waiting.pop() {
            let path = folder.join(format!("{name}.1"));
            output::save(&path, &String::from_utf8(page(command, &name)?)?)?;
            let below = command.get_subcommands().filter(|it| !it.is_hide_set());
            waiting.extend(below.map(|it| (it, format!("{name}-{}", it.get_name()))));
        }
        Ok(())
    }
}

/// Returns the page of a command named `name`.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let page = Page::new(command.clone().display_name(name.to_owned()))
        .source(concat!("consort ", env!("CARGO_PKG_VERSION")))
        .manual("Consort");
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        page.render_subcommands_section(&mut out)?;
    }
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        notes(&after.to_string()).to_writer(&mut out)?;
    }
    Ok(out)
}

/// Returns the examples, one per line, and the paragraphs that follow them.
fn notes(text: &str) -> Roff {
    let mut roff = Roff::new();
    let (heading, rest) = match text.strip_prefix("Examples:\n") {
        Some(rest) => ("EXAMPLES", rest),
        None => ("NOTES", text),
    };
    let (examples, paragraphs) = match heading {
        "EXAMPLES" => rest.split_once("\n\n").unwrap_or((rest, "")),
        _ => ("", rest),
    };
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in examples.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    for paragraph in paragraphs.split("\n\n").filter(|text| !text.is_empty()) {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    roff
}
