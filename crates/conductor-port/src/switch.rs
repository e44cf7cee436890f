//! Protections that tests leave out one at a time, each adapter its own.
//!
//! This module does not know any protection.

/// Names the protections that a test can leave out, once: as a type, and as the list that the matrix is checked against.
#[doc(hidden)]
#[macro_export]
macro_rules! switches {
    ($( $(#[$doc:meta])+ $name:ident, )+) => {
        /// A protection that a test can leave out, to show that it is what it claims; a release build cannot.
        #[doc(hidden)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Switch {
            $( $(#[$doc])+ $name, )+
        }

        impl Switch {
            /// All of them.
            #[doc(hidden)]
            pub const ALL: &[Self] = &[ $( Self::$name, )+ ];
        }
    };
}
