//! Files with which pkg-config and CMake find an installation, under every name that a build system
//! may use. The files contain only relative paths, so the installation may be moved.

use crate::c_library::{SHMEM, SYSTEM, THREADS};

/// This project's own name of the package. Its version is this project's, and the version of all
/// others is OpenSHMEM's.
const OWN: &str = "consort-shmem";

/// Other names of the package for pkg-config: Open MPI's, and plain ones.
const OF_PKG_CONFIG: [&str; 5] = ["openshmem", "shmem", "oshmem", "oshmem-c", "oshmem-cxx"];

/// Other names of the package for CMake, which ignores their case.
const OF_CMAKE: [&str; 4] = ["consort", "openshmem", "shmem", "oshmem"];

const OPENSHMEM_VERSION: &str = "1.6";

/// The CMake package. All targets but that of the library for threads are aliases of one library.
const CONFIG: &str = r#"# Consort. Targets: Consort::threads; OpenSHMEM::OpenSHMEM, and the same by other names.
get_filename_component(_consort_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_consort_name "${CMAKE_FIND_PACKAGE_NAME}")
string(TOUPPER "${_consort_name}" _consort_upper)

if(NOT TARGET Consort::threads)
  add_library(Consort::threads SHARED IMPORTED)
  set_target_properties(Consort::threads PROPERTIES
    IMPORTED_LOCATION "${_consort_prefix}/lib/libconsort.so"
    IMPORTED_SONAME libconsort.so
    INTERFACE_INCLUDE_DIRECTORIES "${_consort_prefix}/include")
endif()
if(NOT TARGET OpenSHMEM::OpenSHMEM)
  add_library(OpenSHMEM::OpenSHMEM SHARED IMPORTED)
  set_target_properties(OpenSHMEM::OpenSHMEM PROPERTIES
    IMPORTED_LOCATION "${_consort_prefix}/lib/libconsort_shmem.so"
    IMPORTED_SONAME libconsort_shmem.so
    INTERFACE_INCLUDE_DIRECTORIES "${_consort_prefix}/include")
endif()
foreach(_consort_target IN ITEMS
    OpenSHMEM::C OpenSHMEM::CXX OpenSHMEM::OpenSHMEM_C OpenSHMEM::OpenSHMEM_CXX OpenSHMEM::shmem
    SHMEM::SHMEM SHMEM::C SHMEM::CXX OSHMEM::OSHMEM OSHMEM::C OSHMEM::CXX
    Consort::shmem Consort::OpenSHMEM consort::shmem
    ${_consort_name}::${_consort_name} ${_consort_upper}::${_consort_upper})
  if(NOT TARGET ${_consort_target})
    add_library(${_consort_target} INTERFACE IMPORTED)
    set_target_properties(${_consort_target} PROPERTIES
      INTERFACE_LINK_LIBRARIES OpenSHMEM::OpenSHMEM)
  endif()
endforeach()

foreach(_consort_variable IN ITEMS ${_consort_name} ${_consort_upper})
  set(${_consort_variable}_INCLUDE_DIR "${_consort_prefix}/include")
  set(${_consort_variable}_INCLUDE_DIRS "${_consort_prefix}/include")
  set(${_consort_variable}_LIBRARY "${_consort_prefix}/lib/libconsort_shmem.so")
  set(${_consort_variable}_LIBRARIES OpenSHMEM::OpenSHMEM)
  set(${_consort_variable}_C_COMPILER "${_consort_prefix}/bin/oshcc")
  set(${_consort_variable}_CXX_COMPILER "${_consort_prefix}/bin/oshc++")
  set(${_consort_variable}_LAUNCHER "${_consort_prefix}/bin/oshrun")
  foreach(_consort_language IN ITEMS C CXX)
    set(${_consort_variable}_${_consort_language}_FOUND TRUE)
    set(${_consort_variable}_${_consort_language}_INCLUDE_DIRS "${_consort_prefix}/include")
    set(${_consort_variable}_${_consort_language}_LIBRARIES OpenSHMEM::OpenSHMEM)
  endforeach()
endforeach()

set(${_consort_upper}_FOUND TRUE)
set(${_consort_name}_FOUND TRUE)
foreach(_consort_component IN LISTS ${_consort_name}_FIND_COMPONENTS)
  if(NOT ${_consort_name}_${_consort_component}_FOUND
      AND ${_consort_name}_FIND_REQUIRED_${_consort_component})
    set(${_consort_name}_FOUND FALSE)
    set(${_consort_name}_NOT_FOUND_MESSAGE
      "Consort has no component ${_consort_component}: its components are C and CXX")
  endif()
endforeach()
"#;

/// Returns the files, with their paths in the installation's `lib`.
pub(super) fn files() -> Vec<(String, String)> {
    let shmem = format!("OpenSHMEM {OPENSHMEM_VERSION} over Consort");
    let package = |name: &str| pkg_config(name, &shmem, SHMEM.name);
    let cmake = |name: &str| {
        let path = |file: &str| format!("cmake/{name}/{name}-{file}.cmake");
        [(path("config"), CONFIG.to_owned()), (path("config-version"), cmake_version(name))]
    };
    let names = |others: &[&'static str]| [&[OWN], others].concat();
    let packages = names(&OF_PKG_CONFIG).into_iter().map(package);
    let threads = pkg_config(THREADS.name, "Consort for threads of C programs", THREADS.name);
    packages.chain([threads]).chain(names(&OF_CMAKE).into_iter().flat_map(cmake)).collect()
}

fn version(name: &str) -> &'static str {
    if name.starts_with("consort") { env!("CARGO_PKG_VERSION") } else { OPENSHMEM_VERSION }
}

/// Returns the file of a package for pkg-config, with its path.
fn pkg_config(name: &str, description: &str, library: &str) -> (String, String) {
    let text = format!(
        "prefix=${{pcfiledir}}/../..\n\
         Name: {name}\n\
         Description: {description}\n\
         Version: {}\n\
         Cflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -Wl,-rpath,${{prefix}}/lib -l{library}\n\
         Libs.private: {}\n",
        version(name),
        SYSTEM.join(" "),
    );
    (format!("pkgconfig/{name}.pc"), text)
}

fn cmake_version(name: &str) -> String {
    format!(
        "set(PACKAGE_VERSION {})\n\
         if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         else()\n  \
         set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_EXACT TRUE)\n\
         endif()\n",
        version(name),
    )
}
