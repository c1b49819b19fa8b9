//! The meaning of `__randomize_layout`, by the configuration of the kernel.

/// Whether the compiler randomises layouts. Where it does not, the annotation is an empty macro. Its presence says that
/// the code is correct with any order of the members.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Randomisation {
    /// No configuration was found.
    #[default]
    Unknown,
    /// No option of the configuration asks for it.
    Off {
        /// The place of the configuration, for messages.
        configuration: String,
    },
    /// An option asks for it.
    On {
        /// The option, such as `CONFIG_RANDSTRUCT_FULL`.
        option: String,
        /// The place of the configuration, for messages.
        configuration: String,
    },
}
