//! Allocation sites.
//!
//! Programs allocate through functions of their own. A site is named after the first function under way that does not
//! return a `void *` and whose name does not suggest allocation. The function that called it is named too, since one
//! function may make objects of several kinds.

use crate::recorded::Recorded;
use crate::stalls::function_names::function_at;
use foldhash::{HashMap, HashSet};
use lineup_debuginfo::DebugInfo;
use lineup_model::types::{TypeKind, Types};
use lineup_recording::{Misses, SiteMemory};
use std::collections::BTreeMap;

/// Parts of names that suggest allocation, in small letters.
const TELLS: [&str; 5] = ["alloc", "strdup", "strndup", "memdup", "operator new"];

/// One of the functions under way when memory was allocated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) image: String,
    /// `FILE:LINE` of the call, where it is known.
    pub(crate) line: Option<String>,
    /// Whether the function's purpose is to allocate.
    pub(crate) is_wrapper: bool,
}

/// The site that a chain of calls is counted with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Key {
    pub(crate) frame: Frame,
    pub(crate) caller: Option<String>,
}

/// The counts of a site.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) most_bytes: u64,
    pub(crate) misses: Misses,
    pub(crate) memory: SiteMemory,
    pub(crate) numbers: Vec<u32>,
}

/// The most bytes that a run's objects take at one time: a sum over the sites, each at its own time.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HeapBytes {
    /// All objects of the run.
    pub(crate) objects: u64,
    /// Small objects, with what the allocator adds.
    pub(crate) small_chunks: u64,
    /// The same objects in pools.
    pub(crate) small_in_pools: u64,
    /// Large objects.
    pub(crate) large: u64,
}

/// The sites that all chains of calls are counted with.
pub(crate) struct Sites {
    pub(crate) all: Vec<(Key, Sum)>,
    /// By the number of a chain.
    numbers: HashMap<u32, u32>,
    /// By return address.
    frames: HashMap<u64, Frame>,
}

impl Sites {
    /// Finds them. `debug` holds the debug info of each image.
    pub(crate) fn of(recorded: &Recorded, debug: &[Option<DebugInfo>]) -> Sites {
        let frames = frames(recorded, debug);
        let memory: HashMap<u32, &SiteMemory> =
            recorded.memory.iter().map(|memory| (memory.site, memory)).collect();
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        for site in &recorded.sites {
            let sum = sums.entry(key(&site.frames, &frames)).or_default();
            sum.objects += site.objects;
            sum.bytes += site.bytes;
            sum.most_bytes += site.most_bytes;
            sum.misses += site.misses;
            if let Some(own) = memory.get(&site.number) {
                sum.memory.chunk_bytes += own.chunk_bytes;
                sum.memory.pages += own.pages;
                sum.memory.lines += own.lines;
                sum.memory.live_bytes += own.live_bytes;
            }
            sum.numbers.push(site.number);
        }
        let all: Vec<(Key, Sum)> = sums.into_iter().collect();
        let numbered = (1..).zip(&all);
        let numbers =
            numbered.flat_map(|(number, (_, sum))| sum.numbers.iter().map(move |own| (*own, number)));
        let numbers = numbers.collect();
        Sites { all, numbers, frames }
    }

    /// The largest number of small objects in use at one time: a sum over the sites, each at its own time, by the mean
    /// of its objects' sizes.
    pub(crate) fn live_small_objects(&self, most_size_bytes: u64) -> f64 {
        let of = |sum: &Sum| sum.bytes as f64 / (sum.objects as f64).max(1.0);
        let small = self.all.iter().filter(|(_, sum)| of(sum) <= most_size_bytes as f64);
        small.map(|(_, sum)| (sum.most_bytes as f64 / of(sum).max(1.0)).min(sum.objects as f64)).sum()
    }

    /// The most bytes of the run's objects at one time. `in_pool` gives the bytes of a small one in a pool.
    pub(crate) fn heap_bytes(&self, most_size_bytes: u64, in_pool: impl Fn(u32) -> u64) -> HeapBytes {
        let mut heap = HeapBytes::default();
        for (_, sum) in &self.all {
            heap.objects += sum.objects;
            let size = sum.bytes.div_ceil(sum.objects.max(1));
            let scaled = |to: u64| (sum.most_bytes as f64 * to as f64 / sum.bytes.max(1) as f64) as u64;
            match u32::try_from(size).ok().filter(|_| size <= most_size_bytes) {
                Some(size) => {
                    heap.small_chunks += scaled(sum.memory.chunk_bytes.max(sum.bytes));
                    heap.small_in_pools += scaled(in_pool(size) * sum.objects);
                }
                None => heap.large += sum.most_bytes,
            }
        }
        heap
    }

    /// The function under way with a return address.
    pub(crate) fn frame(&self, back: u64) -> Option<&Frame> {
        self.frames.get(&back)
    }

    /// The number of the site that a chain is counted with; 0 for none.
    pub(crate) fn number_of(&self, chain: u32) -> u32 {
        self.numbers.get(&chain).copied().unwrap_or_default()
    }
}

/// The site of a chain of return addresses: its first function that is not for allocating, with the one that called it.
/// If all functions are for allocating, it is the outermost known one.
fn key(chain: &[u64], frames: &HashMap<u64, Frame>) -> Key {
    let own = |number: usize| chain.get(number).and_then(|pc| frames.get(pc));
    let first = (0..chain.len()).find(|number| own(*number).is_some_and(|frame| !frame.is_wrapper));
    let first = first.unwrap_or(chain.len().saturating_sub(1));
    let frame = own(first).cloned();
    Key {
        frame: frame.unwrap_or_else(|| Frame { function: "(unknown)".to_owned(), ..Frame::default() }),
        caller: own(first + 1).map(|frame| frame.function.clone()),
    }
}

/// The function, file and call of every return address.
fn frames(recorded: &Recorded, debug: &[Option<DebugInfo>]) -> HashMap<u64, Frame> {
    let all: HashSet<u64> = recorded.sites.iter().flat_map(|site| site.frames.iter().copied()).collect();
    let makers = makers(recorded, debug, &all);
    let frame = |back: u64| {
        // The call before it may end its function.
        let pc = back - 1;
        let (function, image) = function_at(recorded, debug, pc);
        let line = recorded.place_of(pc).and_then(|(place, link)| {
            let line = debug.get(place)?.as_ref()?.line_of(link)?;
            let file = line.file.rsplit('/').next().unwrap_or_default();
            Some(format!("{file}:{}", line.line))
        });
        let small = function.to_lowercase();
        let is_wrapper = makers.contains(&back) || TELLS.iter().any(|part| small.contains(part));
        (back, Frame { function, image, line, is_wrapper })
    };
    all.into_iter().filter(|back| *back > 0).map(frame).collect()
}

/// The return addresses that lie in functions which return a `void *`.
fn makers(recorded: &Recorded, debug: &[Option<DebugInfo>], all: &HashSet<u64>) -> HashSet<u64> {
    let mut makers = HashSet::default();
    for (image, debug) in recorded.images.iter().zip(debug) {
        let Some(debug) = debug else { continue };
        let own: Vec<u64> = all.iter().copied().filter(|back| image.contains(back - 1)).collect();
        let mut links = own.iter().map(|back| image.to_link(back - 1));
        for function in debug.functions_covering(&mut links) {
            let returns = function.returns.and_then(|ty| debug.types().strip(ty));
            if returns.is_some_and(|ty| is_void_pointer(debug.types(), ty)) {
                let holds = |back: &&u64| {
                    let link = image.to_link(**back - 1);
                    function.ranges.iter().any(|range| range.contains(&link))
                };
                makers.extend(own.iter().filter(holds));
            }
        }
    }
    makers
}

fn is_void_pointer(types: &Types, ty: lineup_model::types::TypeId) -> bool {
    match types.get(ty).map(|ty| &ty.kind) {
        Some(TypeKind::Pointer(None)) => true,
        // To `const void` or another name of it.
        Some(TypeKind::Pointer(Some(to))) => matches!(
            types.get(*to).map(|ty| &ty.kind),
            Some(TypeKind::Qualified(None) | TypeKind::Typedef(None))
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, is_wrapper: bool) -> Frame {
        Frame { function: function.to_owned(), is_wrapper, ..Frame::default() }
    }

    #[test]
    fn the_site_is_the_first_function_that_is_not_for_allocating_with_its_caller() {
        let frames = HashMap::from_iter([
            (1, frame("xmalloc", true)),
            (2, frame("new_node", false)),
            (3, frame("main", false)),
            (4, frame("xcalloc", true)),
        ]);
        let told = |chain: &[u64]| {
            let key = key(chain, &frames);
            (key.frame.function, key.caller)
        };
        assert_eq!(told(&[1, 2, 3]), ("new_node".to_owned(), Some("main".to_owned())));
        assert_eq!(told(&[4, 1]), ("xmalloc".to_owned(), None));
        assert_eq!(told(&[3]), ("main".to_owned(), None));
        assert_eq!(told(&[]), ("(unknown)".to_owned(), None));
    }
}
