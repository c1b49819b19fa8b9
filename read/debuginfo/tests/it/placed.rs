//! A module of another machine where a kernel has put it, compared with the linker's output for the same file there.

use crate::tool::run;
use lineup_debuginfo::{DebugInfo, NoCompanions, Placement};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;

/// Every kind of relocation that modules for 64-bit Arm have in their code and variables.
const MODULE: &str = "
    .text
    enter:
        bl kfree
        b kfree
        adrp x0, table
        add x0, x0, :lo12:table
        ldrb w1, [x0, :lo12:bytes]
        ldrh w1, [x0, :lo12:halves]
        ldr w1, [x0, :lo12:words]
        ldr x1, [x0, :lo12:table + 8]
        ldr q1, [x0, :lo12:quads]
        movz x2, #:abs_g3:table
        movk x2, #:abs_g2_nc:table
        movk x2, #:abs_g1_nc:table
        movk x2, #:abs_g0_nc:table
        adr x3, near
        tbz x1, #5, near
        cbz x1, near
        b.eq near
        ldr x4, near
        ret
    .section .text.near, \"ax\"
    near:
        nop
        bl enter
        ret
    .data
        .byte 1
    bytes: .byte 2
    halves: .hword 3
    words: .word 4
    table: .xword kfree, near + 4, near - .
        .word near - ., 0
        .balign 16
    quads: .xword 5, 6
";

const SECTIONS: [(&str, u64); 3] = [
    (".text", 0xffff_8000_0100_0000),
    (".text.near", 0xffff_8000_0100_4000),
    (".data", 0xffff_8000_0123_4560),
];

const KFREE: u64 = 0xffff_8000_0812_3450;

#[test]
fn relocations_of_64_bit_arm_are_applied_as_the_linker_applies_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let placed = SECTIONS.map(|(name, start)| format!("{name} {start:#x} : {{ *({name}) }}\n"));
    std::fs::write(folder.join("module.s"), MODULE).unwrap();
    std::fs::write(folder.join("places"), format!("SECTIONS {{ {} }}", placed.concat())).unwrap();
    let package = "binutils-aarch64-linux-gnu";
    run("aarch64-linux-gnu-as", package, folder, &["-o", "module.ko", "module.s"]);
    let kfree = format!("--defsym=kfree={KFREE:#x}");
    let places = ["-T", "places", &kfree, "-e", "enter", "-o", "linked", "module.ko"];
    run("aarch64-linux-gnu-ld", package, folder, &places);

    let module = std::fs::read(folder.join("module.ko")).unwrap();
    let alone = DebugInfo::parse(module.clone(), &mut NoCompanions).unwrap();
    let at =
        |name: &str| alone.sections().iter().find(|section| section.name == name).unwrap().addresses.start;
    let sections: BTreeMap<u64, u64> = SECTIONS.iter().map(|(name, start)| (at(name), *start)).collect();
    let symbol = |name: &str| (name == "kfree").then_some(KFREE);
    let placed = Placement { sections, symbol: &symbol };
    let info = DebugInfo::placed(module, &mut NoCompanions, &placed).unwrap();

    let linked = std::fs::read(folder.join("linked")).unwrap();
    let linked = object::File::parse(&*linked).unwrap();
    for (name, start) in SECTIONS {
        let theirs = linked.section_by_name(name).unwrap();
        assert_eq!((theirs.address(), theirs.size() > 0), (start, true));
        let own = info.code(start..start + theirs.size()).unwrap();
        let words = |bytes: &[u8]| bytes.chunks(4).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(words(own), words(theirs.data().unwrap()), "{name}");
    }
}
