//! The commands in `docs/gallery.md` draw the pictures below them.
//!
//! Simulations draw the same pictures on every machine, so the test draws them again and compares
//! them. `TEST_WRITE=1 cargo test -p consort-lab --test it -- gallery` writes them. Blocks with the
//! comment `# measured` are not run: their pictures differ on each run.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

const PAGE: &str = "docs/gallery.md";
const PICTURES: &str = "docs/pictures";
const MOST_BYTES: usize = 60_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A picture of the page, and the commands that draw it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Picture {
    /// The name of its file.
    file: String,
    /// Lines for a shell.
    commands: String,
}

impl Picture {
    fn is_measured(&self) -> bool {
        self.commands.lines().any(|line| line == "# measured")
    }
}

/// Returns the pictures of a page, each with the commands since the previous one.
fn pictures(page: &str) -> Vec<Picture> {
    let (mut pictures, mut commands, mut in_commands) = (Vec::new(), String::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            in_commands = line == "```sh";
        } else if in_commands {
            commands += &format!("{line}\n");
        } else if let Some((_, link)) = line.split_once("](pictures/") {
            let file = link.trim_end_matches(')').to_owned();
            pictures.push(Picture { file, commands: std::mem::take(&mut commands) });
        }
    }
    pictures
}

#[test]
fn pictures_are_found_with_their_commands() {
    let page = "```sh\na \\\n  b\n```\n![x](pictures/x.svg)\n\n```sh\n# measured\nc\n```\n\
                ```text\nd\n```\n![y](pictures/y.svg)\n";
    let picture = |file: &str, commands: &str| Picture {
        file: file.to_owned(),
        commands: commands.to_owned(),
    };
    let expected = [picture("x.svg", "a \\\n  b\n"), picture("y.svg", "# measured\nc\n")];
    assert_eq!(pictures(page), expected);
    assert_eq!(expected.map(|picture| picture.is_measured()), [false, true]);
}

/// Returns the picture that the commands draw in an empty folder, next to the folder `ci`.
fn drawn(picture: &Picture) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    symlink(root().join("ci").canonicalize().expect("ci"), folder.path().join("ci")).expect("ci");
    let programs = Path::new(env!("CARGO_BIN_EXE_consort-lab")).parent().expect("a folder");
    let path = env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-ec", &picture.commands]).current_dir(&folder);
    shell.env("PATH", format!("{}:{path}", programs.display()));
    let output = shell.output().expect("a shell starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", picture.commands);
    fs::read_to_string(folder.path().join(&picture.file)).expect("the commands draw the picture")
}

#[test]
fn pictures_are_those_of_their_commands() {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (pictures, mut compared) = (pictures(&page), 0);
    for picture in &pictures {
        let path = root().join(PICTURES).join(&picture.file);
        assert!(!picture.commands.is_empty(), "{}: no command draws it", picture.file);
        if !picture.is_measured() {
            let drawn = drawn(picture);
            if env::var_os("TEST_WRITE").is_some() {
                fs::write(&path, &drawn).expect("a writable tree");
            }
            let shown = fs::read_to_string(&path).unwrap_or_default();
            assert!(shown == drawn, "{} differs: set TEST_WRITE=1 to write it", path.display());
            compared += 1;
        }
        let bytes = fs::read(&path).expect("the picture").len();
        assert!(bytes < MOST_BYTES, "{} has {bytes} bytes", path.display());
    }
    assert!(compared > 2, "most pictures are compared");
    let files = fs::read_dir(root().join(PICTURES)).expect("the folder of pictures");
    let files: BTreeSet<_> =
        files.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    assert_eq!(files, pictures.into_iter().map(|picture| picture.file).collect::<BTreeSet<_>>());
}
