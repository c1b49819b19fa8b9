//! Immediate values from Rust: every size, every way to write, both protocols.

use lineup_runtime::imv::{self, Applied, Class, Error, Mode, WritePath};
use lineup_runtime::{define_imv, imv_cond, imv_read};
use std::sync::{Mutex, MutexGuard, PoisonError};

define_imv! {
    static BYTE: u8 = 1;
    static SIGNED_BYTE: i8 = -1;
    static SHORT: u16 = 0x1234;
    static SIGNED_SHORT: i16 = -2;
    static INT: u32 = 0x1234_5678;
    static SIGNED_INT: i32 = -3;
    static LONG: u64 = 0x1234_5678_9abc_def0;
    static SIGNED_LONG: i64 = -4;
    static FLAG: bool = true;
    static SINGLE: f32 = 1.5;
    static DOUBLE: f64 = -2.25;
    static WIDE_FLAG: u64 = 0;
    /// Read by no code.
    pub static UNREAD: u32 = 9;
}

/// Mode and write path belong to the process, so tests that change them take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    imv::set_mode(Mode::Direct);
    guard
}

#[inline(never)]
fn cond() -> bool {
    imv_cond!(WIDE_FLAG)
}

macro_rules! check {
    ($name:ident, $initial:expr, $($value:expr),*) => {{
        assert_eq!(imv_read!($name), $initial);
        $(
            let applied = $name.set($value).unwrap();
            assert!(applied.patched_sites >= 2 && applied.plain_sites == 0, "{applied:?}");
            assert_eq!(imv_read!($name), $value, stringify!($name));
            assert_eq!($name.load(), $value);
        )*
        $name.set($initial).unwrap();
    }};
}

fn every_size() {
    check!(BYTE, 1, 0, 255, 127);
    check!(SIGNED_BYTE, -1, -128, 127);
    check!(SHORT, 0x1234, 0, 0xffff);
    check!(SIGNED_SHORT, -2, i16::MIN, i16::MAX);
    check!(INT, 0x1234_5678, 0, u32::MAX);
    check!(SIGNED_INT, -3, i32::MIN, i32::MAX);
    check!(LONG, 0x1234_5678_9abc_def0, 0, u64::MAX);
    check!(SIGNED_LONG, -4, i64::MIN, i64::MAX);
    check!(FLAG, true, false, true);
    check!(SINGLE, 1.5, -0.25, f32::MAX);
    check!(DOUBLE, -2.25, 0.0, f64::MIN);
    assert!(!cond());
    WIDE_FLAG.set(1 << 40).unwrap();
    assert!(cond());
    WIDE_FLAG.set(0).unwrap();
    assert!(!cond());
}

#[test]
fn values_are_patched_here() {
    let _turn = turn();
    let status = imv::status();
    assert!(status.writing.is_ok(), "{status}");
    assert!(status.patched_sites > 0 && status.plain_sites == 0, "{status}");
}

#[test]
fn every_size_reads_its_initial_value_and_every_value_set() {
    let _turn = turn();
    every_size();
}

#[test]
fn every_way_to_write_works_in_both_modes() {
    let _turn = turn();
    let before = imv::status().writing.unwrap();
    let mut working = 0;
    for path in [WritePath::Swap, WritePath::Alias, WritePath::ProcMem] {
        imv::set_write_path(path);
        // Under an emulator some ways do not change the executed code; the runtime must then keep one that does.
        working += usize::from(imv::status().writing == Ok(path));
        for mode in [Mode::Conservative, Mode::Direct] {
            imv::set_mode(mode);
            every_size();
        }
    }
    assert!(working >= 1);
    imv::set_write_path(before);
}

#[test]
fn no_page_is_writable_and_executable() {
    let _turn = turn();
    for path in [WritePath::Swap, WritePath::Alias, WritePath::ProcMem] {
        imv::set_write_path(path);
        BYTE.set(7).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let offending: Vec<&str> = maps.lines().filter(|line| line.contains("rwx")).collect();
        assert!(offending.is_empty(), "{offending:?}");
    }
    BYTE.set(1).unwrap();
}

#[test]
fn a_batch_changes_all_its_variables() {
    let _turn = turn();
    imv::Batch::new().with(&SHORT, 7).with(&LONG, 8).with(&WIDE_FLAG, 1).apply().unwrap();
    assert_eq!((imv_read!(SHORT), imv_read!(LONG), cond()), (7, 8, true));
    imv::Batch::new()
        .with(&SHORT, 0x1234)
        .with(&LONG, 0x1234_5678_9abc_def0)
        .with(&WIDE_FLAG, 0)
        .apply()
        .unwrap();
}

#[test]
fn a_variable_without_sites_is_set_all_the_same() {
    let _turn = turn();
    assert_eq!(UNREAD.set(11).unwrap(), Applied { patched_sites: 0, plain_sites: 0 });
    assert_eq!(UNREAD.load(), 11);
}

#[test]
fn names_lead_to_variables() {
    let _turn = turn();
    let entry = imv::get("imv::SIGNED_SHORT").unwrap();
    assert_eq!((entry.class, entry.size_bytes), (Class::Signed, 2));
    assert_eq!(entry.class.to_text(entry.bits, entry.size_bytes), "-2");
    imv::set_text("imv::SIGNED_SHORT", "-300").unwrap();
    assert_eq!(imv_read!(SIGNED_SHORT), -300);
    imv::set_text("imv::SIGNED_SHORT", "-2").unwrap();
    assert!(imv::list().iter().any(|entry| entry.name == "imv::DOUBLE" && entry.patched_sites > 0));
}

#[test]
fn wrong_names_and_values_are_refused() {
    let _turn = turn();
    assert!(matches!(imv::get("imv::NONE"), Err(Error::Unknown { .. })));
    assert!(matches!(imv::set_text("imv::BYTE", "256"), Err(Error::Malformed { .. })));
    assert!(matches!(imv::set_text("imv::BYTE", "-1"), Err(Error::Malformed { .. })));
    assert!(matches!(imv::set_text("imv::FLAG", "2"), Err(Error::Malformed { .. })));
    assert_eq!(imv_read!(BYTE), 1);
}
