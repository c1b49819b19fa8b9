//! The part of the init script that loads modules, and reports their addresses.

use crate::modules::Module;
use std::fmt::Write as _;

/// The function that the lines call when the guest cannot be set up.
pub(super) const FAIL: &str = "fail() { say failed \"$*\"; poweroff -f; sleep 60; }\n";

/// The path of a module's file in the initramfs.
pub(super) fn module_file(name: &str) -> String {
    format!("/lineup/modules/{name}.ko")
}

/// Loads the modules in their order; then reports the sections of each, when that is wanted.
pub(super) fn lines(modules: &[Module], lists_sections: bool) -> String {
    let mut text = String::new();
    for Module { name, .. } in modules {
        let file = module_file(name);
        let _ = writeln!(text, "insmod {file} || fail 'the module {name} cannot be loaded'");
    }
    for Module { name, .. } in modules.iter().filter(|_| lists_sections) {
        let folder = format!("/sys/module/{name}/sections");
        let _ = writeln!(
            text,
            "for section in {folder}/* {folder}/.[!.]*; do\n\
             [ ! -f $section ] || say section {name} ${{section##*/}} $(cat $section)\n\
             done"
        );
    }
    text
}
