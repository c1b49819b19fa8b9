//! Further notes on findings.

use crate::trials::replay::cycles;
use crate::work::Work;
use lineup_explain::explanation::Lack;
use lineup_model::figure;
use lineup_recording::{ProgramExit, Summary};
use std::collections::{BTreeMap, BTreeSet};

/// A file whose debug information lacks something is reported when its code has at least this share of all stalls.
const LEAST_LACKING: f64 = 0.01;

/// The recorder's name in recordings that were made inside the program.
const NATIVE_ENGINE: &str = "native engine";

impl Work<'_, '_> {
    /// The images without debug information, shared libraries aside, that have code.
    pub(crate) fn undescribed_images(&self) -> BTreeSet<usize> {
        let is_undescribed = |pc: u64| self.naming.namer.lack_at(pc) == Some(Lack::DebugInfo);
        let pcs = self.recorded.runs.iter().map(|run| run.pc).filter(|pc| is_undescribed(*pc));
        pcs.filter_map(|pc| self.recorded.place_of(pc)).map(|(image, _)| image).collect()
    }

    /// The missing part of the debug information of the code that stalls most without it.
    pub(crate) fn main_lack(&self) -> Option<&'static str> {
        let most = self.lacking().into_iter().max_by_key(|(_, cycles)| *cycles);
        most.map(|((_, lack), _)| lack)
    }

    /// Stalls for data of code without debug information.
    pub(crate) fn undescribed_cycles(&self) -> u64 {
        let all = self.lacking().into_iter();
        all.filter(|((_, lack), _)| *lack == Lack::DebugInfo.advice()).map(|(_, cycles)| cycles).sum()
    }

    /// Stalls for data of code whose debug information lacks something, by file.
    fn lacking(&self) -> BTreeMap<(&str, &'static str), u64> {
        let mut lacking: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
        for run in &self.recorded.runs {
            let [loads, stores] = [run.load_misses, run.store_misses];
            let of_data = cycles(loads, self.options.latency) + cycles(stores, self.options.latency);
            if of_data == 0 {
                continue;
            }
            let image = self.recorded.place_of(run.pc).map(|(image, _)| &self.recorded.images[image]);
            let lack = self.naming.namer.lack_at(run.pc).map(|lack| lack.advice());
            if let (Some(image), Some(lack)) = (image, lack) {
                *lacking.entry((&image.path, lack)).or_default() += of_data;
            }
        }
        lacking
    }

    /// The recorder's notes, and the files whose debug information lacks names.
    pub(crate) fn notes(&self, all_cycles: f64) -> Vec<String> {
        let share = |cycles: u64| cycles as f64 / all_cycles;
        let worth = self.lacking().into_iter().filter(|(_, cycles)| share(*cycles) >= LEAST_LACKING);
        let lacks = worth.map(|((path, lack), cycles)| {
            format!(
                "{} of modelled stalls are for data of code in {path}: {lack}",
                figure::share(share(cycles))
            )
        });
        let told = self.recorded.summary.iter().flat_map(|summary| summary.notes.clone());
        let in_turn = self.between.is_of_threads_in_turn.then(|| {
            "some threads ran one after the other while they were recorded; what they do to each other is counted as if they ran side \
             by side, since each had a stack of its own"
                .to_owned()
        });
        let failed = match self.recorded.ending.as_ref().map(|ending| ending.exit) {
            Some(ProgramExit::Exited(status)) if status != 0 => Some(format!(
                "the program ended with exit status {status}; one that fails early shows little of what it does"
            )),
            _ => None,
        };
        self.forked()
            .into_iter()
            .chain(self.uncounted())
            .chain(failed)
            .chain(in_turn)
            .chain(told)
            .chain(self.unseen())
            .chain(lacks)
            .collect()
    }

    /// The reason why allocation sites are unknown; `None` for guests, whose sites are never known.
    fn unseen(&self) -> Option<String> {
        let is_guest = self.options.next.is_some();
        let is_told = !self.recorded.sites.is_empty();
        let why = match self.recorded.header.emulator.as_str() {
            _ if self.options.bursts.is_some() => "it happened before, or outside bursts",
            NATIVE_ENGINE => "no allocator was called by a name that is known",
            _ => "the native engine sees that, and did not record here",
        };
        (!is_guest && !is_told).then(|| format!("where objects were allocated is not known: {why}"))
    }

    /// The note on processes of which the native engine counted nothing.
    pub(crate) fn forked(&self) -> Option<String> {
        let is_native = self.recorded.header.emulator == NATIVE_ENGINE && self.options.bursts.is_none();
        let forks = self.recorded.summary.iter().filter(|_| is_native).map(|summary| summary.forks).sum();
        let (subject, they) = match forks {
            0 => return None,
            1 => ("a process was forked off and is".to_owned(), "it"),
            many => (format!("{many} processes were forked off and are"), "them"),
        };
        Some(format!(
            "{subject} not counted, and waits between processes for memory that they share are not seen: `lineup record \
             --whole-program --children` counts {they} as well, each with caches of its own"
        ))
    }

    /// Programs that this one started or became, which are not counted: the user may mean one of those, for instance
    /// when a script starts it.
    fn uncounted(&self) -> Vec<String> {
        let all = self.recorded.summary.iter().flat_map(Summary::unfollowed_each_once);
        let told = all.map(|(one, times)| {
            let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!(
                "{} was started {times} and is not counted: to look into it, name it after --",
                one.program
            )
        });
        told.collect()
    }
}
