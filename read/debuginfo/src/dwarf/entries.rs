//! A unit's entries one after another, read by compiled abbreviations.
//!
//! A kernel has tens of millions of attributes, and its types need a third of them. gimli decodes each into a value of
//! one type for all forms and then gives it the meaning of its class; that was half of the time. This reader compiles
//! an abbreviation at its first use into steps. Each step skips some bytes and copies one number of any length to its
//! place. Where all lengths are fixed, as nearly always, the steps are just the places to copy from. It reads only the
//! forms that compilers use for types. It leaves an abbreviation with any other form, and a unit of 64-bit or old
//! DWARF, to gimli.

use super::attributes::{Attributes, Field, Fields, is_reference};
use super::kind::{RawKind, belongs_to_type, type_kind};
use super::{Unit, View};
use gimli::{
    Abbreviation, AttributeSpecification, DwForm, DwTag, Encoding, Format, UnitOffset, constants as dw,
};

/// Abbreviation codes from here on are not compiled. Compilers count from 1.
const MAX_CODE: u64 = 1 << 14;

/// Abbreviations with more attributes are left to gimli.
const MAX_ATTRIBUTES: usize = 1 << 8;
/// Longer attributes of fixed length are read step by step.
const MAX_FIXED_BYTES: usize = 1 << 12;

/// The common properties of an abbreviation's entries.
#[derive(Clone, Copy)]
pub(crate) struct CompiledAbbreviation {
    pub(crate) tag: DwTag,
    /// The kind of type that the entry describes.
    pub(crate) kind: Option<RawKind>,
    /// True for entries that may belong to a type.
    pub(crate) may_be_part: bool,
    pub(crate) has_children: bool,
    /// False when gimli has to read it.
    is_simple: bool,
    /// Length of the attributes when it is always the same.
    pub(crate) fixed_bytes: Option<u16>,
    /// The fields that loads and constants fill.
    filled: Fields,
    /// First index and count in [`Compiled::steps`].
    steps: (u32, u16),
    /// First index and count in [`Compiled::loads`].
    loads: (u32, u16),
    /// First index and count in [`Compiled::given`].
    given: (u32, u16),
}

/// An abbreviation, by its place in [`Compiled::entries`].
#[derive(Clone, Copy)]
pub(crate) struct Code(pub(super) u32);

/// Passes over some bytes, then does one thing.
#[derive(Clone, Copy)]
struct Step {
    skip: usize,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    /// A number of up to eight bytes.
    Number(Field, u8),
    /// The abbreviation itself holds the number.
    Given(Field, u64),
    /// Anything else, with a field when it is of interest.
    Varying(Option<Field>, DwForm),
    Nothing,
}

/// Copies a number of up to eight bytes.
#[derive(Clone, Copy)]
struct Load {
    /// Offset in the attributes.
    at: u16,
    /// Bits of eight bytes that do not belong to the number.
    unused_bits: u8,
    field: Field,
}

/// The abbreviations of a unit that were met so far.
#[derive(Default)]
pub(crate) struct Compiled {
    /// By abbreviation code.
    entries: Vec<Option<CompiledAbbreviation>>,
    steps: Vec<Step>,
    loads: Vec<Load>,
    /// Numbers that abbreviations hold.
    given: Vec<(Field, u64)>,
}

/// The entries of a unit in the order of the file.
pub(crate) struct Entries<'u, 'a> {
    unit: &'u Unit<'a>,
    bytes: &'a [u8],
    at: usize,
    /// Offset in the unit of the first entry.
    first: usize,
    /// Offset in the unit of the last entry that [`Self::next`] returned.
    pub(crate) offset: usize,
    compiled: Compiled,
    /// The attributes of the last entry read.
    pub(crate) attributes: Attributes<'u, 'a>,
}

type Result<T> = std::result::Result<T, gimli::Error>;

impl<'u, 'a> Entries<'u, 'a> {
    /// Starts at the unit's first entry, with the abbreviations compiled so far.
    pub(crate) fn new(
        view: &'u View<'a>,
        (number, unit): (u32, &'u Unit<'a>),
        compiled: Compiled,
    ) -> Result<Self> {
        let dwarf = view.dwarf(number).ok_or(gimli::Error::MissingUnitDie)?;
        let first = unit.header.header_size();
        let bytes = unit.header.range_from(UnitOffset(first)..)?.slice();
        let attributes = Attributes::new(dwarf, unit, bytes, view.merged_strings(number));
        Ok(Entries { unit, bytes, at: 0, first, offset: first, compiled, attributes })
    }

    /// The abbreviations compiled so far.
    pub(crate) fn into_compiled(self) -> Compiled {
        self.compiled
    }

    /// Continues at the entry at an offset of the unit.
    pub(crate) fn seek(&mut self, offset: u32) {
        self.at = (offset as usize).saturating_sub(self.first);
    }

    /// True at the end of the unit.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The abbreviation of the next entry; `None` for the mark that ends the children of an entry. Its
    /// attributes must be read or passed over before the one after it.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Code>> {
        self.offset = self.first + self.at;
        let code = self.leb128()?;
        if code == 0 {
            return Ok(None);
        }
        match self.compiled.entries.get(code as usize) {
            Some(Some(_)) => Ok(Some(Code(code as u32))),
            _ => self.learn(code).map(Some),
        }
    }

    /// Compiles an abbreviation and keeps it.
    #[cold]
    fn learn(&mut self, code: u64) -> Result<Code> {
        let unknown = gimli::Error::InvalidAbbreviationCode(code);
        let abbreviation = self.unit.abbreviations.get(code).ok_or(unknown)?;
        let is_kept = code < MAX_CODE;
        let entry = if is_kept {
            self.compiled.compile(abbreviation, self.unit.encoding())
        } else {
            let entry = Compiled::default().compile(abbreviation, self.unit.encoding());
            CompiledAbbreviation { is_simple: false, fixed_bytes: None, ..entry }
        };
        // No abbreviation has the code 0: its slot holds abbreviations that are not kept.
        let at = if is_kept { code as usize } else { 0 };
        let entries = &mut self.compiled.entries;
        if entries.len() <= at {
            entries.resize(at + 1, None);
        }
        if let Some(slot) = entries.get_mut(at) {
            *slot = Some(entry);
        }
        Ok(Code(at as u32))
    }

    /// The unit from its first entry on.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The position of the next entry in [`Self::bytes`].
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Continues at a place in [`Self::bytes`].
    pub(crate) fn go_to(&mut self, place: usize) {
        self.at = place;
    }

    /// The offset in the unit of a place in [`Self::bytes`].
    pub(crate) fn offset_of(&self, place: usize) -> u32 {
        (self.first + place) as u32
    }

    /// The position of the name's `.debug_str` offset among attributes that always have one length; they have no other
    /// name.
    pub(crate) fn name_place(&self, code: Code) -> Option<u16> {
        let loads = part(&self.compiled.loads, self.about(code)?.loads);
        loads.iter().find(|load| load.field == Field::NameOffset).map(|load| load.at)
    }

    /// The common properties of an abbreviation's entries.
    #[inline]
    pub(crate) fn about(&self, code: Code) -> Option<&CompiledAbbreviation> {
        self.compiled.entries.get(code.0 as usize)?.as_ref()
    }

    /// Passes over an entry's attributes.
    #[inline]
    pub(crate) fn skip(&mut self, code: Code) -> Result<()> {
        match self.about(code).and_then(|entry| entry.fixed_bytes) {
            Some(len) => self.pass(len.into()),
            None => self.step_by_step(code),
        }
    }

    /// Reads an entry's attributes into [`Self::attributes`].
    #[inline]
    pub(crate) fn read(&mut self, code: Code) -> Result<()> {
        if let Some(&Some(CompiledAbbreviation { fixed_bytes: Some(len), filled, loads, given, .. })) =
            self.compiled.entries.get(code.0 as usize)
        {
            // Every number is copied from eight bytes; the last ones of a unit are read step by step.
            let end = self.at + usize::from(len);
            if let Some(bytes) = self.bytes.get(self.at..end + 8) {
                self.attributes.clear(filled);
                for load in part(&self.compiled.loads, loads) {
                    if let Some(&word) = bytes.get(usize::from(load.at)..).and_then(<[u8]>::first_chunk) {
                        let number = u64::from_le_bytes(word) << load.unused_bits >> load.unused_bits;
                        self.attributes.fill(load.field, number);
                    }
                }
                for &(field, number) in part(&self.compiled.given, given) {
                    self.attributes.fill(field, number);
                }
                self.at = end;
                return Ok(());
            }
        }
        self.step_by_step(code)
    }

    fn step_by_step(&mut self, code: Code) -> Result<()> {
        self.attributes.clear(Fields::default());
        let Some(&CompiledAbbreviation { steps, is_simple: true, .. }) = self.about(code) else {
            return self.by_gimli();
        };
        for at in steps.0 as usize..steps.0 as usize + usize::from(steps.1) {
            let Some(&Step { skip, then }) = self.compiled.steps.get(at) else { break };
            self.pass(skip)?;
            match then {
                Then::Number(field, len) => {
                    let number = self.number(len)?;
                    self.attributes.set(field, number);
                }
                Then::Given(field, number) => self.attributes.set(field, number),
                Then::Varying(field, form) => self.varying(field, form)?,
                Then::Nothing => {}
            }
        }
        Ok(())
    }

    fn by_gimli(&mut self) -> Result<()> {
        let mut entries = self.unit.entries_raw(Some(UnitOffset(self.offset)))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(specification)?;
                // gimli's value gives the meaning of other forms.
                let form =
                    Some(attribute.form()).filter(|form| is_reference(*form)).unwrap_or(dw::DW_FORM_data8);
                if let Some(field) = Field::of(attribute.name(), form) {
                    self.attributes.set_value(field, attribute.value());
                }
            }
        }
        self.at = entries.next_offset().0.saturating_sub(self.first);
        Ok(())
    }

    /// A number of one to eight bytes.
    #[inline]
    fn number(&mut self, len: u8) -> Result<u64> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(&word) => u64::from_le_bytes(word),
            // Less than eight bytes are left of the unit.
            None => {
                let mut word = [0; 8];
                let left = rest.get(..usize::from(len)).ok_or_else(|| self.cut_off())?;
                word[..left.len()].copy_from_slice(left);
                u64::from_le_bytes(word)
            }
        };
        self.at += usize::from(len);
        let unused_bits = 64 - 8 * u32::from(len);
        Ok(word << unused_bits >> unused_bits)
    }

    /// Reads or passes over a value of varying length.
    fn varying(&mut self, field: Option<Field>, form: DwForm) -> Result<()> {
        match form {
            dw::DW_FORM_string => {
                let start = self.at;
                let rest = self.bytes.get(start..).unwrap_or_default();
                let len = rest.iter().position(|&byte| byte == 0).ok_or_else(|| self.cut_off())?;
                if field.is_some() {
                    self.attributes.set(Field::Name, start as u64);
                }
                self.pass(len + 1)
            }
            dw::DW_FORM_block1 | dw::DW_FORM_block2 | dw::DW_FORM_block4 => {
                let of_len = match form {
                    dw::DW_FORM_block1 => 1,
                    dw::DW_FORM_block2 => 2,
                    _ => 4,
                };
                let len = self.number(of_len)?;
                self.pass(len as usize)
            }
            dw::DW_FORM_block | dw::DW_FORM_exprloc => {
                let len = self.leb128()?;
                self.pass(usize::try_from(len).unwrap_or(usize::MAX))
            }
            _ => {
                let number = if form == dw::DW_FORM_sdata { self.signed_leb128()? } else { self.leb128()? };
                if let Some(field) = field {
                    self.attributes.set(field, number);
                }
                Ok(())
            }
        }
    }

    fn pass(&mut self, len: usize) -> Result<()> {
        let at = self.at.saturating_add(len);
        if at > self.bytes.len() {
            return Err(self.cut_off());
        }
        self.at = at;
        Ok(())
    }

    /// An unsigned number of varying length; bits beyond 64 are dropped.
    #[inline]
    fn leb128(&mut self) -> Result<u64> {
        if let Some(&byte) = self.bytes.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Ok(byte.into());
        }
        self.long_leb128()
    }

    fn long_leb128(&mut self) -> Result<u64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let &byte = self.bytes.get(self.at).ok_or_else(|| self.cut_off())?;
            self.at += 1;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    /// A signed number of varying length, in two's complement.
    fn signed_leb128(&mut self) -> Result<u64> {
        let start = self.at;
        let value = self.leb128()?.cast_signed();
        let unused_bits = 64_usize.saturating_sub(7 * (self.at - start)) as u32;
        Ok((value << unused_bits >> unused_bits).cast_unsigned())
    }

    fn cut_off(&self) -> gimli::Error {
        gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(self.at as u64))
    }
}

impl Compiled {
    fn compile(&mut self, abbreviation: &Abbreviation, encoding: Encoding) -> CompiledAbbreviation {
        let mut is_simple = encoding.format == Format::Dwarf32
            && encoding.version >= 4
            && abbreviation.attributes().len() <= MAX_ATTRIBUTES;
        let starts = (self.steps.len(), self.loads.len(), self.given.len());
        let mut fixed_bytes = Some(0_usize);
        let mut filled = Fields::default();
        let mut skip = 0;
        for specification in abbreviation.attributes() {
            let form = specification.form();
            let fixed = fixed_len(form, encoding.address_size);
            let at = fixed_bytes.unwrap_or(0);
            fixed_bytes = fixed_bytes.zip(fixed).map(|(sum, len)| sum + len);
            let field = Field::of(specification.name(), form);
            filled = field.map_or(filled, |field| filled.with(field));
            let then = then(field, specification, fixed);
            match then {
                Then::Number(field, len) => {
                    self.loads.push(Load { at: at as u16, unused_bits: 64 - 8 * len, field });
                }
                Then::Given(field, number) => self.given.push((field, number)),
                Then::Varying(field, form) => is_simple &= is_readable(field, form),
                Then::Nothing => {
                    skip += fixed.unwrap_or(0);
                    continue;
                }
            }
            self.steps.push(Step { skip, then });
            skip = 0;
        }
        if skip > 0 {
            self.steps.push(Step { skip, then: Then::Nothing });
        }
        let tag = abbreviation.tag();
        let fixed_bytes = fixed_bytes.filter(|len| is_simple && *len <= MAX_FIXED_BYTES);
        let range = |start: usize, end: usize| (start as u32, (end - start) as u16);
        CompiledAbbreviation {
            tag,
            kind: type_kind(tag),
            may_be_part: belongs_to_type(tag),
            has_children: abbreviation.has_children(),
            is_simple,
            fixed_bytes: fixed_bytes.map(|len| len as u16),
            filled,
            steps: range(starts.0, self.steps.len()),
            loads: range(starts.1, self.loads.len()),
            given: range(starts.2, self.given.len()),
        }
    }
}

/// The step for an attribute; `fixed` is its length when that is always the same.
fn then(field: Option<Field>, specification: &AttributeSpecification, fixed: Option<usize>) -> Then {
    let form = specification.form();
    match (field, specification.implicit_const_value(), fixed) {
        (Some(field), Some(value), _) => Then::Given(field, value.cast_unsigned()),
        (Some(field), _, Some(0)) => Then::Given(field, 1),
        (Some(field), _, Some(len)) if is_number(form) => Then::Number(field, len as u8),
        (None, _, Some(_)) => Then::Nothing,
        (field, ..) => Then::Varying(field, form),
    }
}

/// True for forms that a step of varying length can read, or skip when there is no field.
fn is_readable(field: Option<Field>, form: DwForm) -> bool {
    if field.is_some() { is_varying_number(form) } else { is_varying(form) }
}

/// A part of a list by first index and count.
#[inline]
fn part<T>(list: &[T], (first, count): (u32, u16)) -> &[T] {
    list.get(first as usize..first as usize + usize::from(count)).unwrap_or_default()
}

/// Length of a value in 32-bit DWARF when it is always the same.
fn fixed_len(form: DwForm, address_bytes: u8) -> Option<usize> {
    Some(match form {
        dw::DW_FORM_flag_present | dw::DW_FORM_implicit_const => 0,
        dw::DW_FORM_data1 | dw::DW_FORM_ref1 | dw::DW_FORM_flag => 1,
        dw::DW_FORM_strx1 | dw::DW_FORM_addrx1 => 1,
        dw::DW_FORM_data2 | dw::DW_FORM_ref2 | dw::DW_FORM_strx2 | dw::DW_FORM_addrx2 => 2,
        dw::DW_FORM_strx3 | dw::DW_FORM_addrx3 => 3,
        dw::DW_FORM_data4 | dw::DW_FORM_ref4 | dw::DW_FORM_strx4 | dw::DW_FORM_addrx4 => 4,
        dw::DW_FORM_strp | dw::DW_FORM_line_strp | dw::DW_FORM_sec_offset | dw::DW_FORM_ref_addr => 4,
        dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_ref_alt | dw::DW_FORM_GNU_strp_alt => 4,
        dw::DW_FORM_data8 | dw::DW_FORM_ref8 | dw::DW_FORM_ref_sig8 => 8,
        dw::DW_FORM_data16 => 16,
        dw::DW_FORM_addr => address_bytes.into(),
        _ => return None,
    })
}

/// True for the forms of fixed length that a field is read from.
fn is_number(form: DwForm) -> bool {
    matches!(
        form,
        dw::DW_FORM_data1
            | dw::DW_FORM_data2
            | dw::DW_FORM_data4
            | dw::DW_FORM_data8
            | dw::DW_FORM_flag
            | dw::DW_FORM_ref1
            | dw::DW_FORM_ref2
            | dw::DW_FORM_ref4
            | dw::DW_FORM_strp
    )
}

/// True for the forms of varying length that a field is read from.
fn is_varying_number(form: DwForm) -> bool {
    matches!(form, dw::DW_FORM_string | dw::DW_FORM_udata | dw::DW_FORM_sdata)
}

/// True for the forms of varying length that can be passed over.
fn is_varying(form: DwForm) -> bool {
    is_varying_number(form)
        || matches!(
            form,
            dw::DW_FORM_block1
                | dw::DW_FORM_block2
                | dw::DW_FORM_block4
                | dw::DW_FORM_block
                | dw::DW_FORM_exprloc
                | dw::DW_FORM_ref_udata
                | dw::DW_FORM_strx
                | dw::DW_FORM_addrx
                | dw::DW_FORM_loclistx
                | dw::DW_FORM_rnglistx
        )
}
