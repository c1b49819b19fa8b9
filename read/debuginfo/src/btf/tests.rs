//! Images are built word by word after the format's documentation.

use super::*;
use crate::Error;
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, TypeKind};

/// A BTF image under construction.
#[derive(Default)]
struct Image {
    types: Vec<u32>,
    strings: Vec<u8>,
    /// The first string's offset: the length of the base's strings.
    first_string: u32,
    shapes: Option<Vec<[u8; 4]>>,
}

impl Image {
    fn new() -> Self {
        Image { strings: vec![0], ..Image::default() }
    }

    fn string(&mut self, text: &str) -> u32 {
        let at = self.first_string + self.strings.len() as u32;
        self.strings.extend(text.bytes());
        self.strings.push(0);
        at
    }

    fn ty(&mut self, name: &str, kind: u32, flag: bool, count: u32, size_or_type: u32, rest: &[u32]) {
        let name = if name.is_empty() { 0 } else { self.string(name) };
        self.types.extend([name, u32::from(flag) << 31 | kind << 24 | count, size_or_type]);
        self.types.extend(rest);
    }

    fn int(&mut self, name: &str, bytes: u32) {
        self.ty(name, 1, false, 0, bytes, &[(1 << 24) | (bytes * 8)]);
    }

    fn bytes(&self) -> Vec<u8> {
        let shapes: Vec<u8> = self.shapes.iter().flatten().flatten().copied().collect();
        let header_len = if self.shapes.is_some() { 32 } else { 24 };
        let types = self.types.len() as u32 * 4;
        let strings = self.strings.len() as u32;
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [header_len, 0, types, types, strings] {
            bytes.extend(u32::to_le_bytes(word));
        }
        if self.shapes.is_some() {
            bytes.extend((types + strings).to_le_bytes());
            bytes.extend((shapes.len() as u32).to_le_bytes());
        }
        bytes.extend(self.types.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(&self.strings);
        bytes.extend(shapes);
        bytes
    }
}

fn layout(btf: &Btf, name: &str) -> Layout {
    let (id, _) = btf.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name)).unwrap();
    Layout::of(&btf.types, id, LineSize::B64).unwrap()
}

/// `struct s { char c; long l; int a:3; int b:4; }` as ids 1 char, 2 long, 3 int, 4 s.
fn sample() -> Image {
    let mut image = Image::new();
    image.int("char", 1);
    image.int("long int", 8);
    image.int("int", 4);
    let names = ["c", "l", "a", "b"].map(|name| image.string(name));
    image.ty(
        "s",
        4,
        true,
        4,
        24,
        &[names[0], 1, 0, names[1], 2, 64, names[2], 3, 128 | 3 << 24, names[3], 3, 131 | 4 << 24],
    );
    image
}

#[test]
fn members_bit_fields_and_holes_are_read() {
    let btf = parse(&sample().bytes(), None).unwrap();
    let layout = layout(&btf, "s");
    assert_eq!((layout.size_bytes, layout.hole_bytes(), layout.bit_field_bits()), (24, 7, 7));
    assert_eq!(layout.rows[3].offset_bits, Some(131));
    assert_eq!((layout.padding.bytes, layout.padding.bits), (4, 25));
}

#[test]
fn old_style_bit_fields_take_width_and_shift_from_their_integer_type() {
    let mut image = Image::new();
    image.ty("int", 1, false, 0, 4, &[1 << 24 | 2 << 16 | 5]);
    let name = image.string("b");
    image.ty("s", 4, false, 1, 4, &[name, 1, 0]);
    let btf = parse(&image.bytes(), None).unwrap();
    let row = &layout(&btf, "s").rows[0];
    assert_eq!((row.offset_bits, row.bit_size), (Some(2), Some(5)));
}

#[test]
fn pointers_are_as_wide_as_long() {
    let mut image = Image::new();
    image.int("long unsigned int", 4);
    image.ty("", 2, false, 0, 1, &[]);
    image.ty("pointer", 8, false, 0, 2, &[]);
    let btf = parse(&image.bytes(), None).unwrap();
    assert_eq!(btf.types.size_bytes(TypeId(2)), Some(4));
    assert_eq!(btf.types.size_bytes(TypeId(3)), Some(4));
}

#[test]
fn split_btf_continues_ids_and_strings_of_its_base() {
    let base = sample();
    let mut split = Image { first_string: base.strings.len() as u32, ..Image::new() };
    let name = split.string("inner");
    split.ty("module", 4, false, 1, 24, &[name, 4, 0]);
    let btf = parse(&split.bytes(), Some(&base.bytes())).unwrap();
    assert_eq!(btf.first_own, TypeId(5));
    let row = &layout(&btf, "module").rows[0];
    assert_eq!((row.name.as_deref(), row.size_bytes), (Some("inner"), Some(24)));
    assert_eq!(parse(&split.bytes(), None).unwrap_err(), Error::BtfBaseNeeded);
}

#[test]
fn functions_and_variables_come_with_names_types_and_sections() {
    let mut image = Image::new();
    image.int("int", 4);
    let parameter = image.string("x");
    image.ty("", 13, false, 1, 1, &[parameter, 1]);
    image.ty("f", 12, false, 0, 2, &[]);
    image.ty("v", 14, false, 0, 1, &[0]);
    image.ty(".data", 15, false, 1, 4, &[4, 16, 4]);
    let btf = parse(&image.bytes(), None).unwrap();
    assert_eq!(btf.functions[0].name.as_ref(), "f");
    assert_eq!(btf.functions[0].parameters, [(Some("x".into()), Some(TypeId(1)))]);
    let variable = &btf.variables[0];
    assert_eq!((variable.section.as_deref(), variable.offset), (Some(".data"), 16));
}

#[test]
fn types_alone_are_the_same_types() {
    let mut image = sample();
    image.ty("", 13, false, 1, 0, &[0, 1]);
    let name = image.string("x");
    *image.types.iter_mut().rev().nth(1).expect("a parameter's name") = name;
    image.ty("f", 12, false, 0, 1, &[]);
    let (all, types) = (parse(&image.bytes(), None).unwrap(), parse_types(&image.bytes(), None).unwrap());
    assert_eq!(all.functions.len() + types.functions.len() + types.variables.len(), all.functions.len());
    assert_eq!(all.types.len(), types.types.len());
    for (id, ty) in all.types.iter() {
        let other = types.types.get(id).unwrap();
        let is_type = ty.kind != TypeKind::Opaque;
        assert!(!is_type || ty == other, "{ty:?} and {other:?}");
    }
}

#[test]
fn newer_kinds_are_known() {
    let mut image = Image::new();
    image.int("int", 4);
    image.ty("tag", 17, false, 0, 1, &[0]);
    image.ty("user", 18, false, 0, 1, &[]);
    image.ty("big", 19, false, 1, 8, &[0, 1, 2]);
    image.ty("double", 16, false, 0, 8, &[]);
    let btf = parse(&image.bytes(), None).unwrap();
    assert_eq!(btf.types.len(), 6);
    assert_eq!(btf.types.spell(Some(TypeId(3)), "p"), "user int p");
    assert_eq!(btf.types.size_bytes(TypeId(4)), Some(8));
    assert_eq!(btf.types.size_bytes(TypeId(5)), Some(8));
}

#[test]
fn a_kind_from_the_future_is_skipped_when_the_image_describes_it_and_named_when_not() {
    let mut image = Image::new();
    image.ty("new", 20, false, 2, 0, &[7, 8, 8, 9, 9]);
    image.int("int", 4);
    let error = parse(&image.bytes(), None).unwrap_err();
    assert!(error.to_string().contains("kind 20"), "{error}");
    let mut shapes = vec![[0; 4]; 21];
    shapes[20] = [4, 8, 0, 0];
    image.shapes = Some(shapes);
    let btf = parse(&image.bytes(), None).unwrap();
    assert_eq!(btf.types.get(TypeId(2)).unwrap().name.as_deref(), Some("int"));
}

#[test]
fn damaged_images_are_refused_with_a_reason() {
    let whole = sample().bytes();
    for cut in 0..whole.len() {
        assert!(parse(&whole[..cut], None).is_err(), "cut at {cut}");
    }
    let mut version = whole.clone();
    version[2] = 9;
    assert!(parse(&version, None).unwrap_err().to_string().contains("version 9"));
    // Only the magic number is of the other order.
    let mut mixed = whole.clone();
    mixed.swap(0, 1);
    assert!(parse(&mixed, None).is_err());
    assert_eq!(parse(b"", None).unwrap_err(), Error::NotBtf);
}

/// An image as a big-endian machine has it.
fn big_endian(little: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(little[at..at + 4].try_into().unwrap()) as usize;
    let mut big = little.to_vec();
    big.swap(0, 1);
    let (len, start, size) = (word(4), word(8), word(12));
    big[4..len].chunks_exact_mut(4).for_each(<[u8]>::reverse);
    big[len + start..len + start + size].chunks_exact_mut(4).for_each(<[u8]>::reverse);
    big
}

#[test]
fn an_image_of_a_big_endian_machine_says_the_same() {
    let whole = sample().bytes();
    let big = big_endian(&whole);
    let (one, other) = (parse(&whole, None).unwrap(), parse(&big, None).unwrap());
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
    for cut in 0..big.len() {
        assert!(parse(&big[..cut], None).is_err(), "cut at {cut}");
    }
}

#[test]
fn cycles_end() {
    let mut image = Image::new();
    image.ty("a", 8, false, 0, 2, &[]);
    image.ty("b", 8, false, 0, 1, &[]);
    // An array of itself.
    image.ty("", 3, false, 0, 0, &[3, 1, 2]);
    let btf = parse(&image.bytes(), None).unwrap();
    assert_eq!(btf.types.size_bytes(TypeId(1)), None);
    assert_eq!(btf.types.size_bytes(TypeId(3)), None);
}

#[test]
fn a_struct_that_holds_itself_is_refused_by_its_id() {
    let mut image = Image::new();
    let name = image.string("me");
    image.ty("s", 4, false, 1, 8, &[name, 1, 0]);
    let error = parse(&image.bytes(), None).unwrap_err();
    assert!(error.to_string().contains("type 1 holds itself"), "{error}");
}

#[test]
fn functions_that_take_themselves_are_spelt_to_an_end() {
    let mut image = Image::new();
    image.ty("", 13, false, 8, 1, &[0, 1].repeat(8));
    let btf = parse(&image.bytes(), None).unwrap();
    assert!(btf.types.spell(Some(TypeId(1)), "f").len() < 100_000);
}

#[test]
fn of_named_types_everything_that_their_layout_needs_is_read() {
    let mut image = sample();
    // 5: pointer to 8; 6: struct inner { s; }; 7: struct outer { pointer; inner; }; 8: struct far { long; }
    image.ty("", 2, false, 0, 8, &[]);
    let names = ["held", "far_away", "inside", "l"].map(|name| image.string(name));
    image.ty("inner", 4, false, 1, 24, &[names[0], 4, 0]);
    image.ty("outer", 4, false, 2, 32, &[names[1], 5, 0, names[2], 6, 64]);
    image.ty("far", 4, false, 1, 8, &[names[3], 2, 0]);
    image.ty("other", 4, false, 1, 8, &[names[3], 2, 0]);
    let bytes = image.bytes();
    let (all, named) = (parse(&bytes, None).unwrap(), parse_named_types(&bytes, None, &["oute"]).unwrap());
    assert_eq!(named.types.len(), all.types.len());
    for id in [1, 2, 3, 4, 5, 6, 7].map(TypeId) {
        assert_eq!(named.types.get(id), all.types.get(id), "{id:?}");
    }
    let far = named.types.get(TypeId(8)).unwrap();
    assert_eq!((far.name.as_deref(), far.size_bytes), (Some("far"), Some(8)));
    assert!(named.types.aggregate(TypeId(8)).unwrap().1.is_declaration);
    assert_eq!(named.types.get(TypeId(9)).unwrap().kind, TypeKind::Opaque);
}

#[test]
fn named_types_of_a_split_image_have_what_their_base_holds() {
    let base = sample();
    let mut split = Image { first_string: base.strings.len() as u32, ..Image::new() };
    let name = split.string("inner");
    split.ty("module", 4, false, 1, 24, &[name, 4, 0]);
    let (split, base) = (split.bytes(), base.bytes());
    let named = parse_named_types(&split, Some(&base), &["module"]).unwrap();
    assert_eq!(layout(&named, "module"), layout(&parse(&split, Some(&base)).unwrap(), "module"));
    assert!(matches!(parse_named_types(&split, None, &["module"]), Err(Error::BtfBaseNeeded)));
}
