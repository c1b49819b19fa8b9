//! A unit's entries one after another, read by compiled abbreviations.
//!
//! A kernel has tens of millions of attributes, and its types need a third of them. gimli decodes each
//! into a value of one type for all forms and then gives it the meaning of its class; that was half of
//! the time. Here an abbreviation is turned, when it is first met, into steps that each pass over some
//! bytes and copy one number, whatever its length, to its place. Only the forms that compilers use for
//! types are read so. An abbreviation with any other form, and a unit of 64-bit or old DWARF, is left
//! to gimli.

use super::attributes::{Attributes, Field};
use super::{Dwarf, Unit};
use gimli::{DwForm, DwTag, Format, UnitOffset, constants as dw};

/// Abbreviation codes from here on are not compiled. Compilers count from 1.
const MAX_CODE: u64 = 1 << 14;

/// An entry whose attributes were neither read nor passed over yet.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Offset in the unit.
    pub(super) offset: usize,
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    /// Indices in [`Entries::steps`]; `None` when gimli has to read it.
    steps: Option<(u32, u32)>,
    /// Length of the attributes when it is always the same.
    fixed_bytes: Option<usize>,
}

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

/// The entries of a unit in the order of the file.
pub(super) struct Entries<'u, 'a> {
    unit: &'u Unit<'a>,
    bytes: &'a [u8],
    at: usize,
    /// Offset in the unit of the first entry.
    first: usize,
    /// By abbreviation code.
    compiled: Vec<Option<Entry>>,
    steps: Vec<Step>,
    /// Of the entry that was read last.
    pub(super) attributes: Attributes<'u, 'a>,
}

type Result<T> = std::result::Result<T, gimli::Error>;

impl<'u, 'a> Entries<'u, 'a> {
    /// Starts at the unit's first entry.
    pub(super) fn new(dwarf: &'u Dwarf<'a>, unit: &'u Unit<'a>) -> Result<Self> {
        let first = unit.header.header_size();
        let bytes = unit.header.range_from(UnitOffset(first)..)?.slice();
        let attributes = Attributes::new(dwarf, unit, bytes);
        Ok(Entries { unit, bytes, at: 0, first, compiled: Vec::new(), steps: Vec::new(), attributes })
    }

    /// True at the end of the unit.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next entry; `None` for the mark that ends the children of an entry. Its attributes must be
    /// read or passed over before the one after it.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let offset = self.first + self.at;
        let code = self.leb128()?;
        if code == 0 {
            return Ok(None);
        }
        if let Some(&Some(entry)) = self.compiled.get(code as usize) {
            return Ok(Some(Entry { offset, ..entry }));
        }
        let entry = self.compile(code)?;
        if code < MAX_CODE {
            if self.compiled.len() <= code as usize {
                self.compiled.resize(code as usize + 1, None);
            }
            if let Some(slot) = self.compiled.get_mut(code as usize) {
                *slot = Some(entry);
            }
        }
        Ok(Some(Entry { offset, ..entry }))
    }

    fn compile(&mut self, code: u64) -> Result<Entry> {
        let unknown = gimli::Error::InvalidAbbreviationCode(code);
        let abbreviation = self.unit.abbreviations.get(code).ok_or(unknown)?;
        let encoding = self.unit.encoding();
        let mut is_simple = encoding.format == Format::Dwarf32 && encoding.version >= 4 && code < MAX_CODE;
        let start = self.steps.len();
        let mut fixed_bytes = Some(0_usize);
        let mut skip = 0;
        for specification in abbreviation.attributes() {
            let form = specification.form();
            let fixed = fixed_len(form, encoding.address_size);
            fixed_bytes = fixed_bytes.zip(fixed).map(|(sum, len)| sum + len);
            let field = Field::of(specification.name(), form);
            let then = match (field, specification.implicit_const_value(), fixed) {
                (Some(field), Some(value), _) => Then::Given(field, value.cast_unsigned()),
                (Some(field), _, Some(0)) => Then::Given(field, 1),
                (Some(field), _, Some(len)) if is_number(form) => Then::Number(field, len as u8),
                (None, _, Some(len)) => {
                    skip += len;
                    continue;
                }
                (field, ..) => {
                    is_simple &= if field.is_some() { is_varying_number(form) } else { is_varying(form) };
                    Then::Varying(field, form)
                }
            };
            self.steps.push(Step { skip, then });
            skip = 0;
        }
        if skip > 0 {
            self.steps.push(Step { skip, then: Then::Nothing });
        }
        Ok(Entry {
            offset: 0,
            tag: abbreviation.tag(),
            has_children: abbreviation.has_children(),
            steps: is_simple.then_some((start as u32, self.steps.len() as u32)),
            fixed_bytes: fixed_bytes.filter(|_| is_simple),
        })
    }

    /// Passes over an entry's attributes.
    pub(super) fn skip(&mut self, entry: &Entry) -> Result<()> {
        match entry.fixed_bytes {
            Some(len) => self.pass(len),
            None => self.read(entry),
        }
    }

    /// Reads an entry's attributes into [`Self::attributes`].
    pub(super) fn read(&mut self, entry: &Entry) -> Result<()> {
        self.attributes.clear();
        let Some((start, end)) = entry.steps else { return self.by_gimli(entry) };
        for at in start as usize..end as usize {
            let Some(&Step { skip, then }) = self.steps.get(at) else { break };
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

    fn by_gimli(&mut self, entry: &Entry) -> Result<()> {
        let mut entries = self.unit.entries_raw(Some(UnitOffset(entry.offset)))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(specification)?;
                if let Some(field) = Field::of(attribute.name(), dw::DW_FORM_data8) {
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
                    self.attributes.set_inline_name(start..start + len);
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
