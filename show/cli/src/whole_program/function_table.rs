//! The table of functions and their counts.

use crate::whole_program::functions::FunctionProfile;
use lineup_model::figure::whole;
use lineup_report::text::{Align, Table, TextStyle};
use std::fmt::Write;

pub(crate) fn functions_text(out: &mut String, functions: &[FunctionProfile], top: usize, style: TextStyle) {
    let names = [
        "instructions",
        "I1 misses",
        "L2i misses",
        "loads",
        "D1 misses",
        "L2d misses",
        "stores",
        "D1 misses",
        "L2d misses",
    ];
    let columns = names.map(|name| (name, Align::Right));
    let mut table = Table::new(columns.into_iter().chain([("function", Align::Left), ("file", Align::Left)]));
    for profile in std::iter::once(&total(functions)).chain(functions.iter().take(top)) {
        let figures = figures(profile).map(whole);
        let function = profile.function.as_deref().unwrap_or("(no symbol)");
        let image = profile.image.as_deref().unwrap_or("");
        table.row(figures.into_iter().chain([function.to_owned(), image.to_owned()]));
    }
    out.push_str(&table.render(style));
    if functions.len() > top {
        let _ = writeln!(out, "{} more functions; --top shows more, --json all", functions.len() - top);
    }
}

pub(crate) fn figures(profile: &FunctionProfile) -> [u64; 9] {
    let FunctionProfile { fetch_misses, load_misses, store_misses, .. } = profile;
    [
        profile.instructions,
        fetch_misses.l1,
        fetch_misses.l2,
        profile.loads,
        load_misses.l1,
        load_misses.l2,
        profile.stores,
        store_misses.l1,
        store_misses.l2,
    ]
}

pub(crate) fn total(functions: &[FunctionProfile]) -> FunctionProfile {
    let mut total =
        FunctionProfile { function: Some("the whole program".into()), ..FunctionProfile::default() };
    for profile in functions {
        total.instructions += profile.instructions;
        total.loads += profile.loads;
        total.stores += profile.stores;
        total.fetch_misses += profile.fetch_misses;
        total.load_misses += profile.load_misses;
        total.store_misses += profile.store_misses;
    }
    total
}
