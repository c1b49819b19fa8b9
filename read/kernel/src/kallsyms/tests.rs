use super::*;
use crate::error::Error;
use crate::scan::align;
use crate::symbol::KernelSymbol;
use lineup_model::abi::Machine;

/// The place and form of the addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Layout {
    /// Until 6.3 on x86-64: offsets, negative but for per-CPU symbols, before the names.
    SplitBefore,
    /// Until 4.5, and without `KALLSYMS_BASE_RELATIVE`: pointers before the names.
    AbsoluteBefore,
    /// 6.2 and 6.3: as before, and sequence numbers between the markers and the tokens.
    SequenceBetween,
    /// Since 6.4: offsets and base behind the tokens.
    PlainBehind,
    /// The same in a kernel that relocates itself.
    RelocatedBehind,
    /// Since 7.0: everything at multiples of four bytes, and offsets from their own places.
    PlaceBehind,
    /// The same in a 32-bit kernel that does not relocate itself: addresses.
    NarrowAbsoluteBehind,
}

/// The link address of the test's kernels.
const BASE: u64 = 0xffff_ffff_8100_0000;

/// Every byte as its own token, but two for common parts.
fn token_texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = (0..=255).map(|byte: u8| vec![byte.max(1)]).collect();
    texts[200] = b"Tsched_".to_vec();
    texts[201] = b"clock".to_vec();
    texts
}

fn compress(symbol: &KernelSymbol) -> Vec<u8> {
    let text = format!("{}{}", symbol.kind, symbol.name);
    let numbers = match text.strip_prefix("Tsched_clock") {
        Some(rest) => [&[200, 201], rest.as_bytes()].concat(),
        None => text.into_bytes(),
    };
    let length = numbers.len();
    let mut bytes = match length {
        0..0x80 => vec![length as u8],
        _ => vec![length as u8 | 0x80, (length >> 7) as u8],
    };
    bytes.extend(numbers);
    bytes
}

/// The tiny encoder: its output is that of `scripts/kallsyms` in a kernel's build.
struct Table {
    bytes: Vec<u8>,
    word_bytes: usize,
}

/// An ELF file's header and its only segment, which begins at the file's first byte.
fn program_header(address: u64, file_bytes: u64) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves =
        |header: &mut Vec<u8>, values: &[u16]| header.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    let words =
        |header: &mut Vec<u8>, values: &[u64]| header.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    halves(&mut header, &[2, 62, 1, 0]);
    words(&mut header, &[address, 64, 0]);
    halves(&mut header, &[0, 0, 64, 56, 1, 64, 0, 0]);
    words(&mut header, &[1 | 5 << 32, 0, address, address, file_bytes, file_bytes, 4096]);
    header
}

impl Table {
    fn align(&mut self) {
        self.bytes.resize(align(self.bytes.len(), self.word_bytes), 0);
    }

    fn word(&mut self, word: u64) {
        self.bytes.extend(&word.to_le_bytes()[..self.word_bytes]);
    }

    fn addresses(&mut self, symbols: &[KernelSymbol], base: u64, layout: Layout) {
        for symbol in symbols {
            match layout {
                Layout::AbsoluteBefore => self.word(symbol.address),
                Layout::PlaceBehind => {
                    let place = base + self.bytes.len() as u64;
                    let offset = symbol.address.wrapping_sub(place) as i64 as i32;
                    self.bytes.extend(offset.to_le_bytes());
                }
                Layout::NarrowAbsoluteBehind => self.bytes.extend((symbol.address as u32).to_le_bytes()),
                Layout::SplitBefore if symbol.address < base => {
                    self.bytes.extend((symbol.address as u32).to_le_bytes())
                }
                Layout::SplitBefore => {
                    let offset = (base as i64 - 1 - symbol.address as i64) as i32;
                    self.bytes.extend(offset.to_le_bytes())
                }
                _ => self.bytes.extend(((symbol.address - base) as u32).to_le_bytes()),
            }
        }
        self.align();
        match layout {
            Layout::AbsoluteBefore => {}
            // The sequence numbers follow. They look like a base.
            Layout::PlaceBehind | Layout::NarrowAbsoluteBehind => {
                self.bytes.extend([0, 0x12, 0x34, 0, 0x80, 0, 0, 0xff])
            }
            Layout::RelocatedBehind => self.word(0),
            _ => self.word(base),
        }
    }

    fn names(&mut self, symbols: &[KernelSymbol]) {
        self.word(symbols.len() as u64);
        let start = self.bytes.len();
        let mut markers = Vec::new();
        for (number, symbol) in symbols.iter().enumerate() {
            if number % 256 == 0 {
                markers.push((self.bytes.len() - start) as u32);
            }
            self.bytes.extend(compress(symbol));
        }
        self.align();
        self.bytes.extend(markers.into_iter().flat_map(u32::to_le_bytes));
        self.align();
    }

    fn tokens(&mut self) {
        let start = self.bytes.len();
        let mut index = Vec::new();
        for text in token_texts() {
            index.extend(((self.bytes.len() - start) as u16).to_le_bytes());
            self.bytes.extend(text);
            self.bytes.push(0);
        }
        self.align();
        self.bytes.extend(index);
        self.align();
    }
}

fn encode(symbols: &[KernelSymbol], base: u64, word_bytes: usize, layout: Layout) -> Vec<u8> {
    let behind = !matches!(layout, Layout::SplitBefore | Layout::AbsoluteBefore | Layout::SequenceBetween);
    let is_new = matches!(layout, Layout::PlaceBehind | Layout::NarrowAbsoluteBehind);
    let mut table = match is_new {
        true => {
            Table { bytes: [program_header(base, 1 << 20), vec![0xcc; 1004 - 120]].concat(), word_bytes: 4 }
        }
        false => Table { bytes: vec![0xcc; 1000], word_bytes },
    };
    if !behind {
        table.addresses(symbols, base, layout);
    }
    table.names(symbols);
    if layout == Layout::SequenceBetween {
        table.bytes.resize(table.bytes.len() + 3 * symbols.len(), 0xab);
        table.align();
    }
    table.tokens();
    if behind {
        table.addresses(symbols, base, layout);
        let base_at = table.bytes.len() - word_bytes;
        if layout == Layout::RelocatedBehind {
            // The image begins before its first symbol; the second relocation is of another place.
            let image = base - (2 << 20);
            let relocations = [image + base_at as u64, 0x403, base, image + 8, 0x403, base + 0x40];
            table.bytes.extend(relocations.into_iter().flat_map(u64::to_le_bytes));
        }
    }
    table.bytes.extend([0xcc; 100]);
    table.bytes
}

fn symbols(base: u64) -> Vec<KernelSymbol> {
    let symbol = |address, kind, name: &str| KernelSymbol { address, kind, name: name.into() };
    let mut symbols = vec![
        symbol(base, 'T', "_text"),
        symbol(base + 0x40, 'T', "sched_clock"),
        symbol(base + 0x80, 'T', "start_kernel"),
        symbol(base + 0x80, 'T', "another_name"),
    ];
    symbols
        .extend((0..700).map(|n| symbol(base + 0x100 + 16 * n, 't', &format!("function_{n}.constprop.0"))));
    symbols.push(symbol(base + 0x9000, 'T', &"long".repeat(100)));
    symbols.push(symbol(base + 0xa000, 'D', "jiffies"));
    symbols
}

#[test]
fn every_layout_of_the_table_gives_the_same_symbols() {
    let layouts = [
        Layout::SplitBefore,
        Layout::AbsoluteBefore,
        Layout::SequenceBetween,
        Layout::PlainBehind,
        Layout::RelocatedBehind,
        Layout::PlaceBehind,
    ];
    for layout in layouts {
        let encoded = encode(&symbols(BASE), BASE, 8, layout);
        let decoded =
            decode_bytes(&encoded, Machine::X86_64).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        assert_eq!(decoded.all(), symbols(BASE), "{layout:?}");
    }
}

#[test]
fn a_32_bit_kernel_has_narrow_words() {
    for layout in
        [Layout::AbsoluteBefore, Layout::SequenceBetween, Layout::PlainBehind, Layout::NarrowAbsoluteBehind]
    {
        let encoded = encode(&symbols(0xc010_0000), 0xc010_0000, 4, layout);
        assert_eq!(decode_bytes(&encoded, Machine::Arm).unwrap().all(), symbols(0xc010_0000), "{layout:?}");
    }
}

#[test]
fn per_cpu_symbols_keep_their_small_addresses() {
    let mut with_percpu = vec![KernelSymbol { address: 0x1f000, kind: 'A', name: "cpu_info".into() }];
    with_percpu.extend(symbols(BASE));
    let encoded = encode(&with_percpu, BASE, 8, Layout::SplitBefore);
    assert_eq!(decode_bytes(&encoded, Machine::X86_64).unwrap().all(), with_percpu);
}

#[test]
fn a_table_that_is_cut_or_damaged_is_refused() {
    let whole = encode(&symbols(BASE), BASE, 8, Layout::SplitBefore);
    let said = |bytes: &[u8]| decode_bytes(bytes, Machine::X86_64).unwrap_err().to_string();
    assert!(said(&whole[..whole.len() - 300]).contains("table of tokens"));
    let mut damaged = whole.clone();
    let count_at = whole.windows(8).position(|word| word == 706u64.to_le_bytes()).unwrap();
    damaged[count_at] ^= 1;
    assert!(said(&damaged).contains("names were not found"));
    assert!(said(&whole[count_at..]).contains("addresses of its names"));
    assert!(said(b"").contains("--debug"));
}

/// A small number before the tokens looks like the count of a few names.
#[test]
fn names_without_the_kernels_entry_are_no_table() {
    let few: Vec<_> = symbols(BASE).into_iter().filter(|symbol| symbol.name != "start_kernel").collect();
    for layout in [Layout::SplitBefore, Layout::PlainBehind, Layout::PlaceBehind] {
        let error = decode_bytes(&encode(&few, BASE, 8, layout), Machine::X86_64).unwrap_err();
        assert!(error.to_string().contains("names were not found"), "{layout:?}: {error}");
    }
    let error = KernelSymbols::new(few[..1].to_vec()).checked().unwrap_err();
    assert!(error.to_string().starts_with("the list of symbols has 1 symbols and no function start_kernel"));
    assert!(KernelSymbols::new(symbols(BASE)).checked().is_ok());
}

#[test]
fn symbols_are_found_by_name_and_by_address() {
    let known = KernelSymbols::new(symbols(BASE));
    assert_eq!(known.named("sched_clock").map(|symbol| symbol.address).collect::<Vec<_>>(), [BASE + 0x40]);
    assert_eq!(known.named("nothing").count(), 0);
    let (function, range) = known.function_at(BASE + 0x105).unwrap();
    assert_eq!((function.name.as_str(), range), ("function_0.constprop.0", BASE + 0x100..BASE + 0x110));
    // Data is no function, and below the first symbol there is nothing.
    assert!(known.function_at(BASE + 0xa000).is_none());
    assert!(known.function_at(BASE - 1).is_none());
    assert_eq!(known.range_of(&known.all()[0]), BASE..BASE + 0x40);
}

#[test]
fn the_list_of_a_guest_is_read_without_its_modules() {
    let text = "0000000000000000 A fixed\r\nffffffff81000000 T _text\nffffffff81000040 t f.isra.0\n\
                ffffffffc0000000 t virtio_init\t[virtio]\n";
    let known = parse_proc_kallsyms(text).unwrap();
    let names: Vec<&str> = known.all().iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["fixed", "_text", "f.isra.0"]);
    assert_eq!(parse_proc_kallsyms("0 T _text\n0 t f\n"), Err(Error::HiddenAddresses));
    let damaged = parse_proc_kallsyms("ffffffff81000000 T _text\nffffffff8100 hello\n").unwrap_err();
    assert!(damaged.to_string().starts_with("line 2"), "{damaged}");
}
