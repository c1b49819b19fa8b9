//! Errors of reading an image or of a request.

use crate::compression::Compression;
use lineup_model::abi::Machine;
use thiserror::Error;

/// The reason a kernel could not be read or a guest not be described. Every message names the next step where that is
/// known.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no kernel image of a known form.
    #[error(
        "not a kernel image (it starts with {starts_with}); give a bzImage, Image, zImage or vmlinux as distributed, \
         such as /boot/vmlinuz-*"
    )]
    NotKernel {
        /// The first bytes in hexadecimal, or a remark when there are none.
        starts_with: String,
    },
    /// The image ends before the end that its header announces.
    #[error(
        "the image is cut off: its {what} should reach to byte {needed_bytes}, but it has {have_bytes}; fetch it again"
    )]
    CutOff {
        /// The part that is cut off.
        what: &'static str,
        /// The end of that part.
        needed_bytes: u64,
        /// The image's length.
        have_bytes: u64,
    },
    /// No kernel is that large.
    #[error("not a kernel image: it has {have_bytes} bytes, and no kernel more than {most_bytes}")]
    TooLarge {
        /// The file's length.
        have_bytes: usize,
        /// The most that is read.
        most_bytes: usize,
    },
    /// The compressed kernel inside the image cannot be unpacked.
    #[error("the kernel inside the image cannot be unpacked as {compression}: {why}; fetch the image again")]
    Payload {
        /// Its compression.
        compression: Compression,
        /// The decompressor's message.
        why: String,
    },
    /// The compressed kernel inside the image was not found.
    #[error("no compressed kernel was found inside the {container}; its compression is not known here")]
    NoPayload {
        /// The form of the image.
        container: &'static str,
    },
    /// A kernel for a machine that is not read.
    #[error("a kernel for {machine}; Lineup reads little-endian {} kernels", Machine::with_boards())]
    UnsupportedMachine {
        /// The machine in the header.
        machine: String,
    },
    /// Unpacked bytes that name no Linux version.
    #[error("the image holds no \"Linux version\" banner: it is no Linux kernel, or it is damaged")]
    NoBanner,
    /// The table of symbols is missing or in an unknown form.
    #[error(
        "no symbol table in the kernel ({why}); give the debug file with --debug, or let the guest list its symbols"
    )]
    NoKallsyms {
        /// The missing or contradictory part.
        why: String,
    },
    /// Symbols that no kernel has alone.
    #[error(
        "the list of symbols has {symbols} symbols and no function start_kernel, so it is not a kernel's; give the debug \
         file of this image with --debug"
    )]
    ImplausibleSymbols {
        /// The number of symbols.
        symbols: usize,
    },
    /// A malformed line of `/proc/kallsyms`.
    #[error("line {line} of the guest's symbol list is damaged: {text:?}")]
    ProcKallsyms {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Every address in `/proc/kallsyms` is zero.
    #[error("the guest hides its kernel addresses; boot it with kptr_restrict=0")]
    HiddenAddresses,
    /// No type information in the kernel.
    #[error("the kernel holds no BTF; give the debug file with --debug for its types")]
    NoBtf,
    /// An ELF file that contradicts itself.
    #[error("{what} is damaged: {why}")]
    Elf {
        /// The file.
        what: String,
        /// The reader's message.
        why: String,
    },
    /// A program that is built for another machine than the guest.
    #[error("{program} is built for {machine}, the guest is {guest}; give one built for {guest}")]
    ForeignProgram {
        /// The program.
        program: String,
        /// The machine it is built for.
        machine: String,
        /// The guest's machine.
        guest: Machine,
    },
    /// A library that a workload program needs.
    #[error("{needed_by} needs {library}, which was not found; install it, or link the program statically")]
    MissingLibrary {
        /// The library's name, or the path of the dynamic loader.
        library: String,
        /// The program or library that needs it.
        needed_by: String,
    },
    /// A module of another kernel.
    #[error(
        "the module {module} is built for {built_for}, the kernel is {release}; give --modules the folder of {release}"
    )]
    ForeignModule {
        /// The module.
        module: String,
        /// The kernel that it is built for.
        built_for: String,
        /// The kernel that is booted.
        release: String,
    },
    /// A path that cannot be a name in the guest.
    #[error("{path:?} cannot be a file in the guest: {why}")]
    GuestPath {
        /// The path.
        path: String,
        /// The reason it is refused.
        why: &'static str,
    },
    /// A machine that no full-system emulation is set up for.
    #[error("kernels for {machine} cannot be booted; Lineup boots {} kernels", Machine::with_boards())]
    NotBootable {
        /// The machine.
        machine: Machine,
    },
    /// A machine whose kernels are not recorded.
    #[error("kernels for {machine} are not recorded; {} are", Machine::with_boards())]
    NotRecordable {
        /// The machine.
        machine: Machine,
    },
    /// No function that marks the beginning of a recording.
    #[error("the kernel has none of {names}, which marks the begin of a recording")]
    NoMarker {
        /// The names it may have, with commas.
        names: String,
    },
    /// No function that changes tasks.
    #[error("the kernel has no {name}, which distinguishes tasks")]
    NoTaskSwitch {
        /// Its name on this machine.
        name: &'static str,
    },
    /// The kernel has none of the functions of a set of regions.
    #[error("this kernel has none of the functions of the set {set}: {functions}")]
    NoneOfSet {
        /// The set.
        set: &'static str,
        /// Its functions, with commas.
        functions: String,
    },
    /// A region that is neither a set nor a function of the kernel's image.
    #[error(
        "the kernel's image has no function {name}{like}; functions of modules are recorded when --module names the \
         module, and inlined ones have no code of their own; the sets are {sets}"
    )]
    NoFunction {
        /// The wanted name.
        name: String,
        /// `, but` and functions with similar names; empty when there are none.
        like: String,
        /// The sets, with commas.
        sets: String,
    },
    /// Code that the kernel makes while it runs.
    #[error(
        "{name} is the name of a BPF program, which is not supported as a region: its code is made while the guest runs, \
         at an address that no table in the image has; name the kernel's function that calls it"
    )]
    BpfProgram {
        /// The wanted name.
        name: String,
    },
    /// An option that the emulator or the kernel would misread.
    #[error("{option} {value:?}: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// The given value.
        value: String,
        /// The allowed values.
        why: &'static str,
    },
}
