//! The headers: they declare what the specification does, compilers accept them, and all routines
//! link.

use consort_sandbox as _;

mod specification;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use specification::{Row, name, rows};

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// Runs a compiler on a source text; all warnings are errors.
fn compile(compiler: &str, arguments: &[&str], language: &str, source: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(format!("source.{language}"));
    fs::write(&file, source).expect("a source");
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-deprecated-declarations", "-I"])
        .arg(include())
        .arg("-o")
        .arg(folder.path().join("out"))
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("`{compiler}` is needed: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {arguments:?}: {said}");
}

/// Returns the names of all functions of the specification.
fn names() -> BTreeSet<String> {
    let prototypes = rows().filter(|row| !row.is_generic).flat_map(Row::prototypes);
    prototypes.map(|prototype| name(&prototype).to_owned()).collect()
}

#[test]
fn all_routines_are_declared() {
    assert_eq!(names().len(), 1685 + 97);
    let arguments = ["-E", "-P", "-std=c99"];
    let output = Command::new("gcc").args(arguments).arg(include().join("shmem.h")).output();
    let text = String::from_utf8(output.expect("a compiler").stdout).expect("a header");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_routine = |word: &&str| word.starts_with("shmem_") && !word.ends_with("_t");
    let declared: BTreeSet<_> = text.split(|c| !is_name(c)).filter(is_routine).collect();
    let specified = names();
    let specified = specified.iter().map(String::as_str).filter(|name| *name != "start_pes");
    assert_eq!(declared, specified.collect());
}

/// Pointers to the routines, by both names, have the types of the specified prototypes.
#[test]
fn prototypes_are_those_of_the_specification() {
    let mut source = "#include <shmem.h>\n".to_owned();
    for (number, prototype) in
        rows().filter(|row| !row.is_generic).flat_map(Row::prototypes).enumerate()
    {
        let name = name(&prototype);
        let profiled = name.replacen("shmem_", "pshmem_", 1);
        for (kind, called) in [("a", name), ("b", &profiled)] {
            let pointer = prototype.replacen(name, &format!("(*const {kind}{number})"), 1);
            source += &format!("{pointer} = {called};\n");
        }
    }
    compile("gcc", &["-std=c99", "-c"], "c", &source);
}

#[test]
fn header_states_the_version() {
    let header = fs::read_to_string(include().join("shmem.h")).expect("a header");
    let vendor = concat!("SHMEM_VENDOR_STRING \"Consort ", env!("CARGO_PKG_VERSION"), "\"");
    assert!(header.contains(vendor), "the header does not define {vendor}");
}

#[test]
fn compilers_accept_the_headers() {
    let source = "#include <shmem.h>\n#include <shmemx.h>\n#include <pshmem.h>\n\
                  #include <mpp/shmem.h>\n#include <mpp/shmemx.h>\nint main(void) { return 0; }\n";
    for year in ["89", "99", "11", "17", "2x"] {
        for dialect in ["c", "gnu"] {
            compile("gcc", &[&format!("-std={dialect}{year}"), "-c"], "c", source);
        }
    }
    for year in ["98", "11", "14", "17", "20"] {
        for dialect in ["c++", "gnu++"] {
            compile("g++", &[&format!("-std={dialect}{year}"), "-c"], "cpp", source);
        }
    }
}

/// C++ accepts complex numbers of both languages, under every standard.
#[test]
fn cpp_accepts_both_kinds_of_complex_numbers() {
    let mut source = "#include <shmem.h>\n".to_owned();
    let of_complex = |row: &Row| !row.is_generic && row.types.contains("reducetypes");
    let prototypes = rows().filter(of_complex).flat_map(|row| {
        row.prototypes().into_iter().map(move |prototype| (row.parameters().join(", "), prototype))
    });
    let mut count = 0;
    for (parameters, prototype) in prototypes.filter(|(_, one)| one.contains("_Complex")) {
        let (head, list) = prototype.split_once('(').expect("a list of parameters");
        let result = head.split(' ').next().expect("a result");
        let value = if result == "void" { "" } else { "return " };
        let name = name(&prototype);
        for own in ["double _Complex", "std::complex<double>"] {
            let float = own.replace("double", "float");
            let list = list.replace("double _Complex", own).replace("float _Complex", &float);
            for called in [name.to_owned(), format!("p{name}")] {
                source +=
                    &format!("{result} f{count}({list} {{ {value}{called}({parameters}); }}\n");
                count += 1;
            }
        }
    }
    assert!(count >= 32, "{count} functions");
    for standard in ["-std=gnu++98", "-std=c++11", "-std=c++20"] {
        compile("g++", &[standard, "-c", "-Wno-pedantic"], "cpp", &source);
    }
}

#[test]
fn generics_accept_all_their_types() {
    let mut source = "#include <shmem.h>\n".to_owned();
    let generics = rows().filter(|row| row.is_generic && row.verb() != "global_exit");
    for (number, row) in generics.enumerate() {
        let elements = if row.types.is_empty() { vec![("long", "")] } else { row.elements() };
        for (index, (t, _)) in elements.into_iter().enumerate() {
            let (head, list) = row.prototype.split_once('(').expect("a list of parameters");
            let list = list.trim_end_matches(')').replace("TYPE", t);
            let result = head.rsplit_once(' ').expect("a result").0.replace("TYPE", t);
            let call = format!("shmem_{}({})", row.verb(), row.parameters().join(", "));
            let value = if result == "void" { "" } else { "return " };
            source += &format!("{result} f{number}_{index}({list}) {{ {value}{call}; }}\n");
        }
    }
    // The definition is the only declaration of each.
    compile("gcc", &["-std=c11", "-fsyntax-only", "-Wno-missing-prototypes"], "c", &source);
}

/// Returns the path of the C library next to this test.
fn archive() -> PathBuf {
    let test = env::current_exe().expect("a test");
    let files = fs::read_dir(test.parent().expect("a folder")).expect("its files");
    let archives = files.flatten().filter(|file| {
        let name = file.file_name().into_string().unwrap_or_default();
        name.starts_with("libconsort_shmem") && name.ends_with(".a")
    });
    let newest = archives.max_by_key(|file| file.metadata().and_then(|of| of.modified()).ok());
    newest.expect("the library is built").path()
}

#[test]
fn all_routines_link_by_both_names() {
    let mut source = "#include <shmemx.h>\ntypedef void (*routine)(void);\n".to_owned();
    source += "const routine all[] = {\n";
    for name in names() {
        source += &format!("(routine){name},\n");
        if name.starts_with("shmem_") {
            source += &format!("(routine)p{name},\n");
        }
    }
    source += "(routine)_my_pe, (routine)_num_pes, (routine)shmalloc, (routine)shfree,\n";
    source += "(routine)shrealloc, (routine)shmemalign,\n";
    source += "(routine)shmem_putmem_ct, (routine)shmem_getmem_ct, (routine)shmem_ct_create,\n";
    source += "(routine)shmem_ct_free, (routine)shmem_ct_get, (routine)shmem_ct_set,\n";
    source += "(routine)shmem_ct_wait};\n";
    source += "int main(void) { return all[0] == 0; }\n";
    let archive = archive();
    let archive = archive.to_str().expect("a path of text");
    let libraries = [archive, "-lpthread", "-ldl", "-lm", "-Wno-cast-function-type"];
    compile("gcc", &libraries, "c", &source);
}
