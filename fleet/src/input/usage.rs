//! Reads the used bytes of recorded calls: `lineup explain --usage`, which `lineup fleet add` runs on
//! recordings.

use super::{About, Filling};
use crate::json::Json;
use crate::table::Cell;
use crate::tables::{LAYOUTS, MEMBERS, PATTERNS, REGIONS, SHARED_LINES};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A type of the document.
struct Type {
    name: Arc<str>,
    build_id: Option<String>,
    /// Each member's name with its first byte, and the byte behind it.
    members: Vec<(Arc<str>, u64, u64)>,
}

pub(super) fn fill(filling: &mut Filling<'_>, document: Json<'_>) -> Result<About, String> {
    let content = document.text("content_sha256").filter(|hash| is_hash(hash));
    let content = content.ok_or("damaged: the hash of the recording is missing")?;
    filling.run = Cell::from(content.as_str());
    let regions: Vec<Arc<str>> =
        document.required("regions")?.map(|region| region.text("name").unwrap_or_default().into()).collect();
    document.required("regions")?.for_each(|region| region_row(filling, region));
    let types: Vec<Type> = document.required("types")?.map(|ty| type_rows(filling, ty)).collect();
    for (number, used) in document.required("uses")?.enumerate() {
        let at = |name: &str| used.whole(name).and_then(|at| usize::try_from(at).ok());
        let region = at("region").and_then(|at| regions.get(at));
        let ty = at("type").and_then(|at| types.get(at));
        let (region, ty) = region.zip(ty).ok_or_else(|| format!("damaged: use {number} is of nothing"))?;
        use_rows(filling, used, region, ty)?;
    }
    for variable in document.required("variables")? {
        let region = variable.whole("region").and_then(|at| regions.get(usize::try_from(at).ok()?));
        variable_row(filling, variable, region.ok_or("damaged: a variable is of no region")?);
    }
    document.list("shared_lines").for_each(|line| line_row(filling, line));
    Ok(About {
        source: "recording",
        file: document.text("file"),
        content: Some(content),
        host: document.text("host"),
        build_id: document.text("build_id"),
        recorded_at_s: document.whole("recorded_at_s").and_then(|at| i64::try_from(at).ok()),
        program: document.text("program"),
        machine: document.text("machine"),
        data_model: document.text("data_model"),
        ..About::default()
    })
}

/// It becomes part of file names.
fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn region_row(filling: &mut Filling<'_>, region: Json<'_>) {
    let made = region.whole("calls_made");
    let told = made.zip(filling.labels.seconds).map(|(made, seconds)| made as f64 / seconds);
    let per_second = told.or(region.number("calls_per_second"));
    let row = [
        filling.run.clone(),
        region.text_cell("name"),
        region.number_cell("weight"),
        region.whole_cell("calls"),
        made.into(),
        per_second.into(),
        region.number_cell("instructions_per_call"),
        region.number_cell("data_lines_32"),
        region.number_cell("data_lines_64"),
        region.number_cell("data_lines_128"),
        region.number_cell("code_lines_64"),
        region.number_cell("data_misses_per_call"),
        region.number_cell("stall_cycles_per_call"),
        Cell::None,
        Cell::None,
    ];
    filling.table(&REGIONS).push(row);
}

fn type_rows(filling: &mut Filling<'_>, ty: Json<'_>) -> Type {
    let name: Arc<str> = ty.text("name").unwrap_or_default().into();
    let build_id = ty.text("build_id");
    let mut members = Vec::new();
    for (index, member) in ty.list("members").enumerate() {
        let member_name: Arc<str> = member.text("name").unwrap_or_else(|| "(anonymous)".into()).into();
        let row = [
            filling.run.clone(),
            build_id.clone().into(),
            Cell::from(&name),
            ty.text_cell("kind"),
            ty.whole_cell("size_bytes"),
            ty.whole_cell("align_bytes"),
            ty.flag("first_is_held").into(),
            index.into(),
            Cell::from(&member_name),
            member.text_cell("type"),
            member.whole_cell("offset_bits"),
            member.whole_cell("bit_size"),
            member.whole_cell("size_bytes"),
            member.whole_cell("align_bytes"),
        ];
        filling.table(&LAYOUTS).push(row);
        members.extend(extent(member).map(|(start, end)| (member_name, start, end)));
    }
    Type { name, build_id, members }
}

/// The bytes that a member lies in.
fn extent(member: Json<'_>) -> Option<(u64, u64)> {
    let bits = member.whole("offset_bits")?;
    let start = bits / 8;
    let size = match member.whole("bit_size") {
        Some(width) => (bits % 8).checked_add(width)?.div_ceil(8),
        None => member.whole("size_bytes")?,
    };
    Some((start, start.checked_add(size)?))
}

fn use_rows(filling: &mut Filling<'_>, used: Json<'_>, region: &Arc<str>, ty: &Type) -> Result<(), String> {
    let mut sums: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for pattern in used.required("patterns")? {
        let number = filling.patterns;
        filling.patterns += 1;
        let anyway = pattern.get("needed_anyway");
        // For lines of 32, 64 and 128 bytes.
        let needed = ["first", "last", "both"].map(|end| anyway.wholes(end).get(1).copied().flatten());
        let [first, last, both] = needed;
        for bytes in pattern.required("bytes")? {
            let (offset, size) = (bytes.whole("offset"), bytes.whole("size_bytes"));
            let (offset, size) = offset.zip(size).ok_or("damaged: a pattern's bytes have no place")?;
            let (loads, stores) = (bytes.whole("loads").unwrap_or(0), bytes.whole("stores").unwrap_or(0));
            let touches = |(_, start, end): &(Arc<str>, u64, u64)| {
                offset < *end && *start < offset.saturating_add(size)
            };
            for at in (0..ty.members.len()).filter(|at| touches(&ty.members[*at])) {
                let sum = sums.entry(at).or_default();
                *sum = (sum.0.saturating_add(loads), sum.1.saturating_add(stores));
            }
            let row = [
                filling.run.clone(),
                Cell::from(region),
                Cell::from(&ty.name),
                ty.build_id.clone().into(),
                number.into(),
                used.whole_cell("calls"),
                pattern.whole_cell("occurrences"),
                pattern.whole_cell("base_in_line"),
                pattern.whole_cell("neighbour_distance_bytes"),
                offset.into(),
                size.into(),
                loads.into(),
                stores.into(),
                first.into(),
                last.into(),
                both.into(),
            ];
            filling.table(&PATTERNS).push(row);
        }
    }
    for (at, (loads, stores)) in sums {
        let (member, start, end) = &ty.members[at];
        let place = [Cell::from(member), (*start).into(), (end - start).into()];
        filling.accesses(region, [Cell::from(&ty.name), "member".into()], place, (loads, stores));
    }
    Ok(())
}

fn variable_row(filling: &mut Filling<'_>, variable: Json<'_>, region: &Arc<str>) {
    let count = |name: &str| variable.whole(name).unwrap_or(0);
    let owner = [variable.text_cell("name"), "variable".into()];
    let place = [Cell::None, 0_u64.into(), variable.whole_cell("size_bytes")];
    filling.accesses(region, owner, place, (count("loads"), count("stores")));
}

impl Filling<'_> {
    fn accesses(
        &mut self,
        region: &Arc<str>,
        owner: [Cell; 2],
        place: [Cell; 3],
        (loads, stores): (u64, u64),
    ) {
        let ([owner, class], [member, offset, size]) = (owner, place);
        let accesses = loads.saturating_add(stores) as f64;
        let counted = [accesses.into(), loads.into(), stores.into()];
        let [accesses, loads, stores] = counted;
        let run = self.run.clone();
        self.table(&MEMBERS).push([
            run,
            Cell::from(region),
            owner,
            class,
            member,
            offset,
            size,
            accesses,
            loads,
            stores,
            Cell::None,
            Cell::None,
            Cell::None,
            Cell::None,
            Cell::None,
        ]);
    }
}

fn line_row(filling: &mut Filling<'_>, line: Json<'_>) {
    let parts: Vec<&str> = line.list("parts").filter_map(Json::own_text).collect();
    let row = [
        filling.run.clone(),
        line.text_cell("address"),
        parts.join(", ").into(),
        line.whole_cell("readers"),
        line.whole_cell("writers"),
        line.whole_cell("true_handovers"),
        line.whole_cell("false_handovers"),
    ];
    filling.table(&SHARED_LINES).push(row);
}
