//! Runs `lineup advise --what-if`.

use super::report::{LinesOfType, Misses, RegionMisses, Report, TriedType};
use super::view;
use crate::options::advice;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::{ReadInStage, Stages};
use anyhow::{Context, Result, bail};
use lineup_advise::order_file::Arrangement;
use lineup_advise::proposal::{Advice, RegionLines};
use lineup_advise::type_named;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_explain::what_if::{NewOrder, Relayout, compare};
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, Types};
use lineup_recording::Reader;
use lineup_study::progress::Progress;
use std::io::BufReader;
use std::path::Path;

/// An order with the name of its type.
pub(crate) struct Named {
    name: String,
    /// The type's present size, and its size in this order.
    sizes: [u64; 2],
    order: NewOrder,
    lines: Vec<RegionLines>,
}

/// The orders that advice proposes.
pub(crate) fn proposed(advice: &Advice, recorded: &Explained) -> Vec<Named> {
    let named = |order: &lineup_advise::proposal::OrderProposal| {
        let id = type_named(recorded.types(), &order.type_name)?;
        let members = order.field_order.len();
        let arrangement = Arrangement {
            order: order.field_order.clone(),
            align_bytes: vec![None; members],
            groups: Vec::new(),
        };
        named(recorded, &order.type_name, id, &arrangement)
    };
    advice.orders.iter().filter_map(named).collect()
}

/// Reads a file of orders of recorded types.
pub(crate) fn read_orders(file: &Path, recorded: &Explained) -> Result<Vec<Named>> {
    let types = recorded.types();
    let mut all: Vec<Named> = Vec::new();
    for order in &advice::read_orders(file)? {
        let name = &order.type_name;
        let at = || format!("{}, line {}", file.display(), order.line);
        let id = type_named(types, name).with_context(|| format!("{}: no type {name} was recorded", at()))?;
        let (_, aggregate) =
            types.aggregate(id).with_context(|| format!("{}: {name} has no members", at()))?;
        let named = named(recorded, name, id, &order.resolve(aggregate)?)
            .with_context(|| format!("{}: the layout of {name} cannot be worked out", at()))?;
        if let Some(other) = all.iter().find(|other| lies_in(types, &named, other)) {
            bail!("{}: {name} and {} lie in each other: try one at a time", at(), other.name);
        }
        all.push(named);
    }
    Ok(all)
}

/// True when objects of one lie in those of the other, or they are of one type.
fn lies_in(types: &Types, one: &Named, other: &Named) -> bool {
    let holds = |outer: &Named, inner: &Named| {
        let relayout = Relayout::new(types, std::slice::from_ref(&inner.order), &[(outer.order.ty, 0)]);
        relayout.objects(0).0 > 0
    };
    holds(one, other) || holds(other, one)
}

fn named(recorded: &Explained, name: &str, id: TypeId, arrangement: &Arrangement) -> Option<Named> {
    let types = recorded.types();
    let usage = Usage::of_explained(recorded);
    let arranged = arrangement.place(types, &usage, id)?;
    let (ty, _) = types.aggregate(id)?;
    let sizes = [types.size_bytes(ty)?, arranged.size_bytes];
    let offsets_bytes = arranged.offsets_bits.iter().map(|bits| bits / 8).collect();
    let order = NewOrder { ty, offsets_bytes, align_bytes: arranged.align_bytes };
    let lines = arrangement.lines(types, &usage, id);
    Some(Named { name: name.to_owned(), sizes, order, lines })
}

/// Lines of this size, in the data model that was recorded.
fn lines_of(named: &Named, line: LineSize, data_model: &str) -> Vec<LinesOfType> {
    let rows = named.lines.iter();
    let rows = rows.filter(|row| row.line_bytes == line.bytes() && row.data_model == data_model);
    rows.map(|row| LinesOfType {
        region: row.region.clone(),
        before: row.before.unwrap_or_default(),
        after: row.after,
    })
    .collect()
}

/// Replays the stream twice and prints the difference.
pub(crate) fn run(
    recording: &Path,
    recorded: &Explained,
    orders: &[Named],
    (line, json): (LineSize, bool),
    stages: &Stages,
) -> Result<Outcome> {
    if orders.is_empty() {
        bail!("nothing to try: no order of a type is proposed; name orders in a file");
    }
    let plain: Vec<NewOrder> = orders.iter().map(|named| named.order.clone()).collect();
    let relayout = Relayout::new(recorded.types(), &plain, recorded.objects());
    let tried = orders.iter().enumerate().map(|(index, named)| {
        let (objects, unaligned) = relayout.objects(index);
        let [size_bytes, new_size_bytes] = named.sizes;
        let lines = lines_of(named, line, recorded.abi().data_model());
        TriedType { name: named.name.clone(), objects, unaligned, lines, size_bytes, new_size_bytes }
    });
    let types = tried.collect();
    let name = || recording.display().to_string();
    stages.stage("running the caches over the recorded stream");
    let found = compare(reader(recording, stages)?, relayout).with_context(name)?;
    stages.end();
    let named = recorded.header().regions.iter().zip(&found.regions);
    let regions = named.map(|((_, region), found)| RegionMisses {
        region: region.name.clone(),
        calls: found.calls,
        before: Misses::of(&found.before),
        after: Misses::of(&found.after),
    });
    let report = Report {
        schema: "lineup.what-if/2",
        types,
        cpus: found.cpus,
        reproduces_recording: found.is_exact,
        regions: regions.collect(),
    };
    let printed = match json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => view::text(&report),
    };
    output::print(&printed)?;
    Ok(Outcome::Done)
}

fn reader<'s>(recording: &Path, stages: &'s Stages) -> Result<Reader<BufReader<ReadInStage<'s>>>> {
    let name = || recording.display().to_string();
    let file = ReadInStage::new(lineup_mapping::open(recording).with_context(name)?, stages);
    Reader::new(BufReader::new(file)).with_context(name)
}
