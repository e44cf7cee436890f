//! Refusals that tests leave out one at a time, each module its own.
//!
//! This module does not know any refusal.

/// Names the refusals that a test can leave out, once: as a type, and as the list that the matrix is checked against.
macro_rules! switches {
    ($( $(#[$doc:meta])+ $name:ident, )+) => {
        /// A refusal that a test can leave out, to show that it is what it claims; a release build cannot.
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

pub(crate) use switches;
