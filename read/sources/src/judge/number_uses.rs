//! Uses of sizes and offsets that depend on their values.

use super::Judge;
use super::number_places::{Distances, Places};
use crate::collect::INDEX;
use crate::facts::{NumberUse, Where};
use crate::smallest_size::least_bytes;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl<'f> Judge<'f> {
    /// `sizes[i] == n`, `printf("%zu", field->offset)`.
    pub(super) fn number_uses(&mut self, places: &Places<'f>) {
        let facts = self.facts;
        for (place, used, at) in &facts.number_uses {
            let found = places.collected(place, true);
            match used {
                NumberUse::Equals(0) => self.offsets_tested(&found, at),
                NumberUse::Equals(number) => {
                    let written = BTreeSet::from([*number]);
                    self.sizes_equal(&found, &written, at);
                    self.offsets_equal(&found, &written, at);
                }
                NumberUse::EqualsPlace(other) => {
                    let others = places.collected(other, true);
                    let (own, theirs) = (found.numbers(), others.numbers());
                    let written = &own | &theirs;
                    self.sizes_equal(&found, &written, at);
                    self.sizes_equal(&others, &written, at);
                    self.offsets_equal(&found, &theirs, at);
                    self.offsets_equal(&others, &own, at);
                }
                NumberUse::Bounded(number) => {
                    for record in &found.sizes {
                        self.size_bounded(record, *number, at);
                    }
                }
                NumberUse::Shown(how) => {
                    self.offsets_shown(&found, how, at);
                    // A function that gives memory prints how much it was asked for, where there is none left.
                    for record in places.collected(place, false).sizes {
                        self.keep_size(record, at, &format!("its size {how}"));
                    }
                }
                NumberUse::Index => self.offsets_shown(&found, INDEX, at),
            }
        }
    }

    /// Zero stands for no offset, which the first member has.
    fn offsets_tested(&mut self, found: &Distances, at: &Where) {
        for record in found.records() {
            let reason = "an offset of its members is compared with zero";
            self.find(record, Verdict::First, UseKind::Offset, at, reason);
        }
    }

    fn offsets_equal(&mut self, found: &Distances, written: &BTreeSet<u64>, at: &Where) {
        for record in found.records() {
            for &number in written.iter().filter(|&&number| number > 0) {
                self.member_at(record, number, "an offset of its members is compared with", at);
            }
        }
    }

    fn offsets_shown(&mut self, found: &Distances, how: &str, at: &Where) {
        for (record, member) in &found.of {
            let verdict = Verdict::Keep(vec![member.to_string()]);
            self.find(record, verdict, UseKind::Offset, at, format!("the offset of {member} {how}"));
        }
    }

    /// A size that no order gives the type is equal to it in none.
    fn sizes_equal(&mut self, found: &Distances, written: &BTreeSet<u64>, at: &Where) {
        for record in &found.sizes {
            let Some(own) = self.own(record) else { continue };
            if written.range(least_bytes(own)..=own.size_bytes).next().is_some() {
                self.keep_size(record, at, "its size is compared");
            }
        }
    }

    /// `sizeof(struct t) <= 64`: an order that makes the type smaller may change the answer.
    pub(super) fn size_bounded(&mut self, record: &Name, number: u64, at: &Where) {
        let Some(own) = self.own(record) else { return };
        if (least_bytes(own).saturating_sub(1)..=own.size_bytes).contains(&number) {
            self.keep_size(record, at, "its size is compared");
        }
    }
}
