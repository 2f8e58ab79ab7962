//! Enums whose values have names.

/// Defines an enum whose values have names, with `EVERY`, `name`, and a `Display` that writes the
/// name.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        $visibility:vis enum $named:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$about])*
        $visibility enum $named {
            $($(#[$doc])* $variant,)*
        }

        impl $named {
            /// All values, in order.
            $visibility const EVERY: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name, as `Display` writes it.
            #[must_use]
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl ::std::fmt::Display for $named {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
