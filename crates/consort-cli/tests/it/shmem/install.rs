//! An installation: its wrappers, its libraries, and its files for build systems.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use super::{COMMAND, consort, output, source, text};

/// Installs into a folder, with the default compilers.
fn install(prefix: &Path) {
    let mut install = consort();
    install.env_remove("CC").env_remove("CXX").arg("install").arg("--prefix").arg(prefix);
    let done = output(&mut install);
    assert!(done.status.success(), "{}", text(&done));
}

/// A wrapper needs no other program to find the command, unless it is run through a link.
fn wrappers_run_where_path_has_no_programs(folder: &Path, bin: &Path) {
    let link = folder.join("linked-wrapper");
    symlink(bin.join("oshcc"), &link).expect("a link");
    let mut by_name = Command::new("/bin/sh");
    by_name.arg("oshcc").current_dir(bin);
    by_name.env("PATH", folder);
    let mut by_path = Command::new(bin.join("oshcc"));
    by_path.env("PATH", folder);
    for mut wrapper in [by_name, by_path, Command::new(link)] {
        let done = output(wrapper.arg("--showme:version"));
        assert!(done.status.success(), "{wrapper:?}: {}", text(&done));
    }
}

#[test]
fn an_installation_has_wrappers_and_both_libraries() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("made/here");
    install(&prefix);
    let bin = |name: &str| Command::new(prefix.join("bin").join(name));
    let program = folder.path().join("program");
    let done = output(bin("oshcc").arg(source("rma.c")).arg("-o").arg(&program));
    assert!(done.status.success(), "{}", text(&done));
    let done = output(bin("oshrun").args(["-np", "2"]).arg(&program));
    assert!(done.status.success(), "{}", text(&done));
    let size = |path: &Path| path.metadata().expect("a file").len();
    // It would be a third of the library if the linker removed nothing.
    let library = size(&prefix.join("lib/libconsort_shmem.a"));
    assert!(size(&program) < library / 4, "a program of {} bytes of {library}", size(&program));
    let done = output(bin("oshrun").args(["--tag-output", "-np", "2"]).arg(&program));
    assert!(done.status.success(), "{}", text(&done));
    assert!(output(bin("oshrun").arg("--version")).status.success());
    wrappers_run_where_path_has_no_programs(folder.path(), &prefix.join("bin"));
    let include = format!("-I {}", prefix.join("include").display());
    for (words, has, lacks) in [
        (&["--show", "a.cpp"][..], "libconsort_shmem.a", "show"),
        (&["a.cpp", "-o", "a", "-show"], "a.cpp -o a ", "show"),
        (&["-c", "--showme", "a.cpp"], &include, "libconsort_shmem.a"),
        (&["--showme:compile"], &include, "libconsort_shmem.a"),
        (&["--showme:link"], "libconsort_shmem.a -lpthread", " -I"), // no random name
        (&["--showme:libs"], "consort_shmem pthread dl m\n", "-l"),
        (&["--showme:command"], "c++\n", "-"),
        (&["--showme:version"], "Consort ", "-"),
    ] {
        let done = output(bin("oshc++").args(words));
        let said = text(&done);
        assert!(done.status.success() && said.lines().count() == 1, "{words:?}: {said}");
        assert!(said.contains(has) && !said.contains(lacks), "{words:?}: {said}");
    }
    // An installation installs itself.
    let before = size(&prefix.join("bin/consort"));
    let done = output(bin("consort").arg("install").arg("--prefix").arg(&prefix));
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(size(&prefix.join("bin/consort")), before);
    assert_eq!(fs::read_dir(prefix.join("bin")).expect("a folder").count(), 11);
    let other = folder.path().join("other");
    let done = output(bin("consort").arg("install").arg("--prefix").arg(&other));
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(size(&other.join("bin/consort")), before);
    // The shared library, linked as a package tool would do it.
    let shared = folder.path().join("shared");
    let lib = prefix.join("lib");
    let mut path = std::ffi::OsString::from("-Wl,-rpath,");
    path.push(&lib);
    let mut cc = Command::new("cc");
    cc.arg(source("statics.c")).arg("-I").arg(prefix.join("include")).arg("-L").arg(&lib);
    let done = output(cc.arg(path).args(["-lconsort_shmem", "-o"]).arg(&shared));
    assert!(done.status.success(), "{}", text(&done));
    let done = output(bin("oshrun").args(["-n", "2"]).arg(&shared));
    assert_eq!(text(&done), "statics of 2 PEs\n");
    let package = fs::read_to_string(lib.join("pkgconfig/consort-shmem.pc")).expect("a file");
    assert!(package.contains("\nLibs.private: -lpthread -ldl -lm\n"), "{package}");
    // Without a library next to it, the command reports where it looked and how to obtain one.
    let alone = folder.path().join("alone/bin");
    fs::create_dir_all(&alone).expect("a folder");
    fs::copy(COMMAND, alone.join("consort")).expect("a copy");
    let done = output(Command::new(alone.join("consort")).args(["cc", "a.c"]));
    let said = text(&done);
    assert!(!done.status.success() && said.contains("alone/lib"), "{said}");
    assert!(said.contains("target/release/consort install --prefix DIR"), "{said}");
    // A program that loads it later keeps its static variables, with or without threads by then.
    let later = folder.path().join("later");
    let mut cc = Command::new("cc");
    let done = output(cc.arg(source("later.c")).args(["-ldl", "-lpthread", "-o"]).arg(&later));
    assert!(done.status.success(), "{}", text(&done));
    for threads in [&[][..], &["threads"]] {
        let mut run = bin("oshrun");
        run.args(["-n", "2"]).arg(&later).arg(lib.join("libconsort_shmem.so")).args(threads);
        assert_eq!(text(&output(&mut run)), "0 0\n0 0\n");
    }
}

/// Creates a program, which is a script.
fn script(path: &Path, line: &str) {
    fs::write(path, format!("#!/bin/sh\n{line}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}

/// Returns a command with the programs of these folders before others, and with a time limit.
fn command(folders: &[&Path], program: impl AsRef<OsStr>) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = folders.iter().map(|folder| folder.to_path_buf());
    let path = env::join_paths(own.chain(env::split_paths(&path))).expect("folders");
    let mut command = Command::new("timeout");
    command.arg("60").arg(program).env("PATH", path);
    for name in ["CC", "CXX", "CONSORT_CC", "CONSORT_CXX"] {
        command.env_remove(name);
    }
    command
}

#[test]
fn wrappers_never_run_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let (prefix, tools) = (folder.path().join("made"), folder.path().join("tools"));
    let bin = prefix.join("bin");
    install(&prefix);
    fs::create_dir(&tools).expect("a folder");
    script(&tools.join("ccache"), "exec \"$@\"");
    script(&tools.join("mycc"), "exec oshcc \"$@\"");
    symlink(bin.join("oshcxx"), tools.join("linked")).expect("a link");
    let folders = [&*bin, &*tools];
    let compile = |compiler: &str, variables: &[(&str, &str)]| {
        let mut cc = command(&folders, compiler);
        cc.envs(variables.iter().copied()).current_dir(&bin);
        let name = if compiler == "oshcc" { "hello.c" } else { "plus.cpp" };
        cc.args(
            ["-std=gnu++17", "-std=gnu11"].iter().skip(usize::from(compiler == "oshcc")).take(1),
        );
        output(cc.arg("-c").arg(source(name)).arg("-o").arg(folder.path().join("object.o")))
    };
    // As `make CC=oshcc CXX=oshc++` sets them, or in other ways.
    for (cc, cxx) in [
        ("oshcc", "oshc++"),
        ("ccache oshcc", "ccache oshcxx"),
        ("./oshcc", "./shmemCC"),
        ("oshc++", "oshcc"),
        ("mycc", "linked"),
        ("", ""),
    ] {
        for compiler in ["oshcc", "oshc++", "oshcxx", "oshCC"] {
            let done = compile(compiler, &[("CC", cc), ("CXX", cxx), ("CONSORT_CC", "")]);
            assert!(done.status.success(), "{compiler}, CC={cc} CXX={cxx}: {}", text(&done));
        }
    }
    // This project's own variables are rejected in one line if they name a wrapper.
    for (named, line) in [
        ("oshcc", "is an OpenSHMEM wrapper"),
        ("ccache oshcc", "is an OpenSHMEM wrapper"),
        ("./oshc++", "is an OpenSHMEM wrapper"),
        ("linked", "is an OpenSHMEM wrapper"),
        ("consort cc", "is an OpenSHMEM wrapper"),
        ("mycc", "`mycc` leads back to this wrapper"),
        ("ccache mycc", "`ccache mycc` leads back to this wrapper"),
    ] {
        for compiler in ["oshcc", "oshc++"] {
            let done = compile(compiler, &[("CONSORT_CC", named), ("CONSORT_CXX", named)]);
            let said = text(&done);
            assert_eq!(done.status.code(), Some(1), "{compiler}, {named}: {said}");
            assert!(said.contains(line) && said.lines().count() == 1, "{compiler}: {said}");
        }
    }
    // A compiler that they name is run, with its options.
    script(&tools.join("other"), "echo other \"$1\"");
    let done = compile("oshcc", &[("CONSORT_CC", "other -m64")]);
    assert_eq!(text(&done), "other -m64\n");
    // An installation takes no wrapper from CC, and reports that.
    let again = folder.path().join("again");
    let mut install = command(&folders, bin.join("consort"));
    install.envs([("CC", "ccache oshcc"), ("CXX", "other -m64")]);
    let done = output(install.arg("install").arg("--prefix").arg(&again));
    let said = text(&done);
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("warning: CC is `ccache oshcc`, which is an OpenSHMEM wrapper"),
        "{said}"
    );
    let shown = |name: &str| {
        let mut wrapper = command(&[], again.join("bin").join(name));
        text(&output(wrapper.arg("--showme:command")))
    };
    assert!(shown("oshcc").ends_with("/cc\n"), "{}", shown("oshcc"));
    assert_eq!(shown("oshCC"), format!("{} -m64\n", tools.join("other").display()));
}

/// Projects find an installation by the names that they use for other libraries.
#[test]
fn available_build_systems_find_an_installation() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("made");
    install(&prefix);
    let lib = prefix.join("lib");
    for name in ["libconsort_shmem", "liboshmem", "libsma", "libshmem", "libopenshmem"] {
        for end in ["a", "so"] {
            assert!(lib.join(format!("{name}.{end}")).is_file(), "{name}.{end}");
        }
    }
    let program = folder.path().join("by-name");
    for name in ["sma", "oshmem"] {
        let mut cc = command(&[], "cc");
        cc.arg(source("hello.c")).arg("-I").arg(prefix.join("include")).arg("-L").arg(&lib);
        let done = output(cc.arg(format!("-l{name}")).arg("-o").arg(&program));
        assert!(done.status.success(), "{name}: {}", text(&done));
    }
    by_pkg_config(folder.path(), &prefix);
    for package in ["OpenSHMEM", "SHMEM", "OSHMEM", "Consort", "consort-shmem", "openshmem"] {
        let file = format!("cmake/{0}/{0}-config.cmake", package.to_lowercase());
        assert!(lib.join(&file).is_file(), "{file}");
    }
    by_cmake(folder.path(), &prefix);
}

fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("not tested: there is no {program}");
    }
    is_there
}

/// Returns the path of a program for the library of threads.
fn of_threads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../consort-c/examples/sum.c")
}

fn by_pkg_config(folder: &Path, prefix: &Path) {
    let packages = prefix.join("lib/pkgconfig");
    let names =
        ["consort", "consort-shmem", "openshmem", "shmem", "oshmem", "oshmem-c", "oshmem-cxx"];
    for name in names {
        let package = fs::read_to_string(packages.join(format!("{name}.pc"))).expect("a file");
        assert!(package.contains("\nLibs.private: -lpthread -ldl -lm\n"), "{package}");
    }
    if !is_installed("pkg-config") {
        return;
    }
    for name in names {
        let mut asked = Command::new("pkg-config");
        asked.env("PKG_CONFIG_PATH", &packages).args(["--cflags", "--libs", name]);
        let options = text(&output(&mut asked));
        let program = folder.join(name);
        let mut cc = Command::new("cc");
        let source = if name == "consort" { of_threads() } else { source("hello.c") };
        cc.arg(source).args(options.split_whitespace()).arg("-o").arg(&program);
        let done = output(&mut cc);
        assert!(done.status.success(), "{name}: {}", text(&done));
        let done = output(&mut Command::new(&program));
        assert!(done.status.success(), "{name}: {}", text(&done));
    }
}

fn by_cmake(folder: &Path, prefix: &Path) {
    if !is_installed("cmake") {
        return;
    }
    let sources = folder.join("project");
    fs::create_dir(&sources).expect("a folder");
    fs::copy(source("project.cmake"), sources.join("CMakeLists.txt")).expect("a project");
    for name in ["hello.c", "plus.cpp", "check.h"] {
        fs::copy(source(name), sources.join(name)).expect("a source");
    }
    fs::copy(of_threads(), sources.join("sum.c")).expect("a source");
    // By the packages, and by the wrappers as compilers.
    for wrapped in [false, true] {
        let built = folder.join(format!("built-{wrapped}"));
        let mut cmake = command(&[&prefix.join("bin")], "cmake");
        cmake.arg("-S").arg(&sources).arg("-B").arg(&built);
        cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        if wrapped {
            cmake.envs([("CC", "oshcc"), ("CXX", "oshc++")]);
        }
        let done = output(&mut cmake);
        assert!(done.status.success(), "{}", text(&done));
        let mut cmake = command(&[], "cmake");
        let done = output(cmake.arg("--build").arg(&built));
        assert!(done.status.success(), "{}", text(&done));
        for name in ["c_OpenSHMEM__C", "cxx", "threads"] {
            let done = output(&mut Command::new(built.join(name)));
            assert!(done.status.success(), "{name}: {}", text(&done));
        }
    }
}
