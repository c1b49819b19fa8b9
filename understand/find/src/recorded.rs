//! The contents of a whole program's recording.

use lineup_explain::image::Placed;
use lineup_explain::kernel_files::KernelFiles;
use lineup_model::access::StackRange;
use lineup_model::image::LoadedImage;
use lineup_recording::{
    AllocationSite, Context, Damage, Ending, Event, Header, KernelTask, PageCounts, Placement,
    ProfileInstruction, ProfileRun, Reader, SiteMemory, Summary, Window, WindowObjects, WindowStep,
};
use std::collections::BTreeMap;
use std::io::Read;

/// A recording of a whole program, with windows of its run.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// The recording's header.
    pub header: Header,
    /// Files mapped into the program; of a guest its kernel and the modules of which sections were recorded.
    pub images: Vec<LoadedImage>,
    /// The places of modules' sections.
    pub places: Vec<Placed>,
    /// The same by the modules' positions among the images, and by the address that a section has when the file is read
    /// by itself. All addresses in such an image are those at which it ran.
    pub modules: BTreeMap<usize, BTreeMap<u64, u64>>,
    /// Stacks that the recorder reported.
    pub stacks: Vec<StackRange>,
    /// Base addresses of threads, as far as the recorder reported them.
    pub thread_bases: Vec<u64>,
    /// Counts of runs of instructions.
    pub runs: Vec<ProfileRun>,
    /// Counts of instructions that access data.
    pub instructions: Vec<ProfileInstruction>,
    /// Its allocation sites, as far as they were seen.
    pub sites: Vec<AllocationSite>,
    /// The memory of those sites.
    pub memory: Vec<SiteMemory>,
    /// The pages that instructions needed, by their addresses.
    pub pages: BTreeMap<u64, PageCounts>,
    /// The objects of each window's accesses, in the windows' order; without any where they were not seen.
    pub objects: Vec<WindowObjects>,
    /// A kernel's misses, by the work they were for.
    pub contexts: Vec<Context>,
    /// Its tasks.
    pub tasks: Vec<KernelTask>,
    /// Windows of the run, whole, by when they began.
    pub windows: Vec<Window>,
    /// The recorder's counts.
    pub summary: Option<Summary>,
    /// The program's ending.
    pub ending: Option<Ending>,
    /// The place where the file stopped being readable, if it did.
    pub damage: Option<Damage>,
}

impl Recorded {
    /// Leaves out the counts of code below an address, as that of a guest's programs; gives its share of all
    /// instructions. Windows stay whole, since such code uses the caches as well.
    pub fn leave_out_below(&mut self, start: u64) -> f64 {
        let sum = |runs: &[ProfileRun]| runs.iter().map(|run| run.instructions).sum::<u64>();
        let all = sum(&self.runs);
        self.runs.retain(|run| run.pc >= start);
        self.instructions.retain(|counts| counts.pc >= start);
        (all - sum(&self.runs)) as f64 / all.max(1) as f64
    }

    /// The image that is mapped at a runtime address, by its position, and the link address there. A module's before
    /// its kernel's, which the module lies in.
    pub(crate) fn place_of(&self, runtime: u64) -> Option<(usize, u64)> {
        let section = self.places.iter().find(|place| place.loaded.contains(runtime));
        if let Some(place) = section {
            return Some((place.image, place.loaded.to_link(runtime)));
        }
        let files = self.images.iter().enumerate().filter(|(index, _)| !self.modules.contains_key(index));
        let (index, file) = files.rev().find(|(_, image)| image.contains(runtime))?;
        Some((index, file.to_link(runtime)))
    }

    /// Reads a recording through.
    pub fn read<R: Read>(mut reader: Reader<R>) -> Recorded {
        let mut recorded = Recorded {
            header: reader.header().clone(),
            images: Vec::new(),
            places: Vec::new(),
            modules: BTreeMap::new(),
            stacks: Vec::new(),
            thread_bases: Vec::new(),
            runs: Vec::new(),
            instructions: Vec::new(),
            sites: Vec::new(),
            memory: Vec::new(),
            pages: BTreeMap::new(),
            objects: Vec::new(),
            contexts: Vec::new(),
            tasks: Vec::new(),
            windows: Vec::new(),
            summary: None,
            ending: None,
            damage: None,
        };
        let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
        let mut objects: BTreeMap<u64, WindowObjects> = BTreeMap::new();
        for event in reader.by_ref() {
            match event {
                Event::Image(image) => recorded.images.push(image),
                Event::Stack(stack) => recorded.stacks.push(stack),
                Event::ThreadBase(base) => recorded.thread_bases.push(base),
                Event::Profile(run) => recorded.runs.push(run),
                Event::Instruction(counts) => recorded.instructions.push(counts),
                Event::Window(part) => {
                    let Window { number, thread, .. } = part;
                    let empty = Window { number, thread, ..Window::default() };
                    let window = windows.entry(number).or_insert(empty);
                    window.resident = window.resident.take().or(part.resident);
                    window.steps.extend(part.steps);
                    window.sites.extend(part.sites);
                }
                Event::Context(context) => recorded.contexts.push(context),
                Event::Task(task) => recorded.tasks.push(task),
                Event::AllocationSite(site) => recorded.sites.push(site),
                Event::Placement(Placement::Pages { pc, counts }) => {
                    *recorded.pages.entry(pc).or_default() += counts;
                }
                Event::Placement(Placement::Site(memory)) => recorded.memory.push(memory),
                Event::Placement(Placement::Objects(part)) => {
                    append(objects.entry(part.window).or_default(), part);
                }
                Event::Summary(summary) => Summary::add_to(&mut recorded.summary, summary),
                Event::Ending(ending) => recorded.ending = Some(ending),
                _ => {}
            }
        }
        if recorded.images.first().is_some_and(LoadedImage::is_kernel) {
            let files = KernelFiles::of(std::mem::take(&mut recorded.images));
            (recorded.images, recorded.places, recorded.modules) =
                (files.images, files.places, files.sections);
        }
        recorded.windows = windows.into_values().collect();
        let mut own = |window: &Window| objects.remove(&window.number).filter(|own| fits(window, own));
        recorded.objects = recorded.windows.iter().map(|window| own(window).unwrap_or_default()).collect();
        recorded.damage = reader.damage().cloned();
        recorded
    }
}

/// Appends the objects of a window's next part.
fn append(window: &mut WindowObjects, part: WindowObjects) {
    let before = window.objects.len() as u32;
    window.objects.extend(part.objects);
    window.uses.extend(part.uses.into_iter().map(|used| if used == 0 { 0 } else { used + before }));
}

/// Whether each access of a window has a word on its object.
fn fits(window: &Window, objects: &WindowObjects) -> bool {
    let is_access = |step: &&WindowStep| matches!(step, WindowStep::Access { .. });
    window.steps.iter().filter(is_access).count() == objects.uses.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::abi::{Abi, Machine};
    use lineup_recording::{Encoder, Writer};

    fn image(path: &str, start: u64, end: u64, bias: u64) -> LoadedImage {
        LoadedImage { path: path.into(), start, end, bias, build_id: None }
    }

    /// The sections of two modules in turn, inside the kernel.
    #[test]
    fn a_place_in_a_module_is_the_modules_and_one_between_its_sections_is_not() {
        let header = Header::new(Abi::usual(Machine::X86_64), Vec::new());
        let mut writer = Writer::new(Vec::new(), &header).expect("a recording");
        let mut encoder = Encoder::new();
        encoder.image(&image("vmlinux", 0x1000, u64::MAX, 0));
        encoder.image(&image("a.ko", 0x8000, 0x8100, 0x7000));
        encoder.image(&image("b.ko", 0x8100, 0x8200, 0x8000));
        encoder.image(&image("a.ko", 0x9000, 0x9100, 0x6000));
        writer.append(&encoder.seal().expect("a block")).expect("a recording");
        let recorded = Recorded::read(Reader::new(&*writer.into_inner()).expect("a recording"));
        let paths: Vec<&str> = recorded.images.iter().map(|image| image.path.as_str()).collect();
        assert_eq!(paths, ["vmlinux", "a.ko", "b.ko"]);
        let places = [0x1000, 0x8000, 0x80ff, 0x8100, 0x8200, 0x9000, 0x9100, 0xfff];
        let of = places.map(|runtime| recorded.place_of(runtime));
        let at = |image, link| Some((image, link));
        let expected = [
            at(0, 0x1000),
            at(1, 0x8000),
            at(1, 0x80ff),
            at(2, 0x8100),
            at(0, 0x8200),
            at(1, 0x9000),
            at(0, 0x9100),
            None,
        ];
        assert_eq!(of, expected);
        assert_eq!(recorded.modules[&1], BTreeMap::from([(0x1000, 0x8000), (0x3000, 0x9000)]));
    }
}
