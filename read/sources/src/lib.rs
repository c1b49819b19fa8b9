//! The uses of the order of a type's members in a program's sources, read with libclang.
//!
//! Design constraints:
//!
//! * libclang is loaded at run time: building needs none, and a machine without it gets [`Error::NoLibclang`].
//! * The sources are read as the build reads them: under its own compiler calls ([`CompileCommand`]).
//! * Only one module talks to libclang. It gives a plain tree; facts are collected from it unit by unit, added up, and
//!   judged without any library.
//! * Every use is quoted with its place. Unknown effects count against moving: a call of a function that is not
//!   compiled with the program is a crossing, unless `library_functions` describes its effect.
//! * Pointers are followed without regard to the order of statements, by variable, parameter, member and result.
//!   Pointers kept in files or sent to other processes are not followed.

// libclang's kinds are constants with its own names, and are matched on.
#![allow(non_upper_case_globals)]

mod chases;
mod check;
mod collect;
mod compiler_command;
mod error;
mod facts;
mod headers;
mod hidden;
mod installed;
mod judge;
mod kbuild;
mod libclang;
mod library_functions;
mod member_facts;
mod name_lookups;
mod patience;
mod points_to;
mod read;
mod relation;
mod runs;
mod smallest_size;
mod split_facts;
mod tree;
mod uses;
mod variants;

pub use chases::{Chases, chases, own_name};
pub use check::{Build, Definers, Standards, check, check_with};
pub use compiler_command::{CompileCommand, from_json};
pub use error::Error;
pub use installed::{Libclang, installed_libclang};
pub use kbuild::{FileNames, KbuildUnit, from_kbuild, is_kbuild_file};
pub use member_facts::{MemberFacts, MemberHold};
pub use read::normal;
pub use split_facts::{Dependence, ObjectVariable, SeenBy, SplitFacts, SplitHold};
pub use uses::{Checked, CheckedType, Freedom, Use, UseKind, Verdict};
