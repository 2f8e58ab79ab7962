//! The names of element types in the texts of calls.
//!
//! The compiler names a type by the module that defines it, which may be private to its crate.

/// Paths of modules that programs do not write, and the paths that they write instead.
const PATHS: [(&str, &str); 3] = [
    ("core::option::Option", "Option"),
    ("half::bfloat::bf16", "half::bf16"),
    ("half::binary16::f16", "half::f16"),
];

/// Returns the name of a type as programs write it, from the compiler's name.
#[must_use]
pub fn readable_type(name: &str) -> String {
    PATHS.iter().fold(name.to_owned(), |name, (path, written)| name.replace(path, written))
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::*;

    #[test]
    fn types_are_named_as_programs_write_them() {
        let name = readable_type(type_name::<(Option<Option<bool>>, [u8; 3])>());
        assert_eq!(name, "(Option<Option<bool>>, [u8; 3])");
        #[cfg(feature = "half")]
        assert_eq!(
            readable_type(type_name::<(half::f16, [half::bf16; 2])>()),
            "(half::f16, [half::bf16; 2])"
        );
        #[cfg(feature = "num-complex")]
        assert_eq!(
            readable_type(type_name::<num_complex::Complex<f32>>()),
            "num_complex::Complex<f32>"
        );
    }
}
