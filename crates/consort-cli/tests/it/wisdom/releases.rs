//! Wisdom of other versions of the library is used, except the entries of algorithms that have
//! changed.

use std::fs;

use super::{Place, with};
use consort_sandbox::commands::says;

/// The other release changed none of the algorithms in it.
#[test]
fn wisdom_of_another_version_is_used() {
    let place = Place::tuned();
    place.change(|text| with(text, "library", "0.0.9"));
    let explained = place.run("explain barrier --wisdom wisdom.toml").succeeds();
    assert!(explained.err.is_empty(), "{}", explained.err);
    let shown = place.run("wisdom show").succeeds();
    assert!(!says(&shown.out, "not used"), "{}", shown.out);
}

#[test]
fn wisdom_of_changed_algorithms_is_set_aside() {
    let place = Place::tuned();
    let text = place.change(|text| {
        let lines = text.lines().map(|line| match line.strip_suffix(" = 1") {
            Some(name) if name.starts_with("\"barrier ") => format!("{name} = 2"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<String>>().join("\n") + "\n"
    });
    let message = "out of date, because all its algorithms have changed since version";
    let named = "explain barrier --wisdom wisdom.toml";
    place.run(named).fails(&[message, "run `consort tune` again"]);
    let shown = place.run("wisdom show").succeeds();
    assert!(shown.out.contains(message), "{}", shown.out);
    let tuned = place.run("tune --collective barrier --pes 2 --budget 4").succeeds();
    assert!(tuned.err.contains(message) && tuned.err.contains(".old"), "{}", tuned.err);
    assert_eq!(fs::read_to_string(place.path("wisdom.toml.old")).unwrap(), text);
    place.run(named).succeeds();
}
