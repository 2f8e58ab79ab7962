//! Completions and manual pages match the arguments that the command accepts.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use consort_sandbox::commands::{examples, subcommands};

fn consort(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_consort")).args(words).output().expect("the command starts")
}

fn printed(words: &[&str]) -> String {
    let output = consort(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the completions of bash for the last word.
fn offered(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let shell = format!(
        "{}\nCOMP_WORDS=({}); COMP_CWORD={}; COMPREPLY=()\n\
         _consort consort '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        printed(&["completions", "bash"]),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = Command::new("bash").args(["-c", &shell]).output().expect("bash starts");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_names() {
    assert_eq!(offered("consort expl"), ["explain"]);
    assert_eq!(offered("consort sess"), [] as [&str; 0], "it is hidden");
    assert_eq!(offered("consort bench barrier --all-al"), ["--all-algorithms"]);
    for (line, name) in [
        ("consort bench collective all_r", "all_reduce"),
        ("consort bench point-to-point put-r", "put-rate"),
        ("consort bench counting sten", "stencil"),
        ("consort bench collective broadcast --algorithm oc", "oc_bcast"),
        ("consort explain all_r", "all_reduce"),
        ("consort tune --rigour pat", "patient"),
        ("consort wisdom show --collective barr", "barrier"),
        ("consort bench barrier --fabric proc", "processes"),
    ] {
        let offered = offered(line);
        assert!(offered.iter().any(|one| one == name), "{line}: {offered:?}");
    }
}

#[test]
fn other_shells_get_scripts_too() {
    for (shell, part) in [
        ("zsh", "#compdef consort"),
        ("fish", "complete -c consort"),
        ("elvish", "edit:completion:arg-completer[consort]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = printed(&["completions", shell]);
        assert!(script.contains(part) && script.contains("all-algorithms"), "{shell}");
        assert!(!script.contains("session"), "{shell}: a hidden command is completed");
    }
    let output = consort(&["completions", "csh"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("bash, elvish, fish"), "{said}");
}

/// Returns the names of a command's subcommands, as its help lists them.
fn commands(words: &[&str]) -> Vec<String> {
    let help = printed(&[words, &["--help"]].concat());
    subcommands(&help).into_iter().map(str::to_owned).collect()
}

#[test]
fn each_command_has_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    printed(&["man", pages.to_str().expect("text")]);
    let mut count = 1;
    for command in commands(&[]) {
        let below = commands(&[&command]);
        for name in below.iter().map(|name| format!("{command}-{name}")).chain([command.clone()]) {
            let page = pages.join(format!("consort-{name}.1"));
            let text = fs::read_to_string(&page).unwrap_or_else(|_| panic!("{}", page.display()));
            assert!(text.contains(&format!("\n.TH consort-{name} 1")), "{name}: its title");
            count += 1;
        }
    }
    assert_eq!(fs::read_dir(&pages).expect("a folder").count(), count, "no page of anything else");
    let whole = fs::read_to_string(pages.join("consort.1")).expect("a page");
    assert_eq!(printed(&["man"]), whole);
    assert!(whole.contains(&format!("consort {}", env!("CARGO_PKG_VERSION"))), "{whole}");
    assert!(whole.contains("consort\\-bench(1)") && !whole.contains("session"), "{whole}");
    let all = examples(env!("CARGO_BIN_EXE_consort"), &["bench", "barrier"]);
    let bench = fs::read_to_string(pages.join("consort-bench-barrier.1")).expect("a page");
    let example = all[0].replace('-', "\\-");
    assert!(bench.contains(&format!("\n  {example} ")), "its examples, a line each: {bench}");
}

#[test]
fn folder_that_cannot_be_made_is_an_error() {
    let output = consort(&["man", Path::new("/dev/null/man").to_str().expect("text")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot make /dev/null/man: Not a directory"), "{said}");
}
