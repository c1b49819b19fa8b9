//! Builds of the user's programs: the command, a commit that is built, the built program's path.

pub(crate) mod commit;
pub(crate) mod default_command;
pub(crate) mod program_path;
