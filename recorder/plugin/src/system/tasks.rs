//! The tasks of a kernel: the running task of each CPU, and the task's name in the kernel.
//!
//! The function that changes stacks stores a member of the old task's description, and then loads the same member of
//! the new one: their addresses show the places of both descriptions. Number and name are read there, from the
//! emulator's file of the guest's memory. No plugin of QEMU 7.2 reads the guest's memory, but it shares the emulator's
//! open files.

use super::lock::lock;
use lineup_model::entry_points::TaskStruct;
use lineup_recording::{Encoder, KernelTask};
use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock};

/// Bytes of a task's name.
const NAME_BYTES: usize = 16;

/// No task has a higher number.
const MOST_PID: u32 = 1 << 22;

/// The name of the emulator's file of the guest's memory.
const MEMORY: &str = "/memfd:memory-backend-memfd";

/// The physical address of a task's description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskAddress(u64);

/// The guest's memory.
#[derive(Debug)]
struct Memory {
    file: File,
    /// The physical addresses that are in it, from its start.
    holds: Range<u64>,
}

impl Memory {
    /// The memory of the emulator that this plugin is a part of.
    fn open(holds: Range<u64>) -> Option<Memory> {
        let mut files = fs::read_dir("/proc/self/fd").ok()?.flatten().map(|entry| entry.path());
        let is_memory = |path: &std::path::PathBuf| {
            fs::read_link(path).is_ok_and(|name| name.to_string_lossy().starts_with(MEMORY))
        };
        Some(Memory { file: File::open(files.find(is_memory)?).ok()?, holds })
    }

    fn read<const BYTES: usize>(&self, address: u64) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        let end = address.checked_add(BYTES as u64)?;
        let is_inside = self.holds.contains(&address) && end <= self.holds.end;
        self.file
            .read_exact_at(&mut bytes, address.checked_sub(self.holds.start).filter(|_| is_inside)?)
            .ok()?;
        Some(bytes)
    }
}

/// A task's identity: its stack, and its number, since a stack is used again.
type Identity = (u64, Option<u32>);

/// All tasks that ran.
#[derive(Default, Debug)]
struct TaskTable {
    numbers: HashMap<Identity, u32>,
    all: Vec<KernelTask>,
}

/// The tasks of a system.
#[derive(Default, Debug)]
pub(crate) struct Tasks {
    layout: Option<TaskStruct>,
    memory: OnceLock<Option<Memory>>,
    known: Mutex<TaskTable>,
}

impl Tasks {
    /// Without any task.
    pub(crate) fn new(layout: Option<TaskStruct>) -> Tasks {
        Tasks { layout, ..Tasks::default() }
    }

    /// The place of a task's description, by the physical address of the member that the function that changes stacks
    /// uses.
    fn place(&self, used: Option<u64>) -> Option<TaskAddress> {
        used?.checked_sub(self.layout.as_ref()?.stack_pointer).map(TaskAddress)
    }

    /// Number and name of the task at a place, if there is one.
    fn read(&self, place: Option<TaskAddress>) -> Option<(u32, String)> {
        let (TaskAddress(start), layout) = (place?, self.layout.as_ref()?);
        let memory = self.memory.get_or_init(|| Memory::open(layout.memory.clone())).as_ref()?;
        let pid = u32::from_le_bytes(memory.read(start.checked_add(layout.pid)?)?);
        let name = name(&memory.read::<NAME_BYTES>(start.checked_add(layout.name)?)?)?;
        (pid <= MOST_PID).then_some((pid, name))
    }

    /// The number of a task, by its stack and its place.
    fn number(&self, stack: u64, place: Option<TaskAddress>) -> u32 {
        let (pid, name) = self.read(place).unzip();
        let TaskTable { numbers, all } = &mut *lock(&self.known);
        let number = *numbers.entry((stack, pid)).or_insert_with(|| {
            let number = all.len() as u32;
            all.push(KernelTask { number, stack, pid, name: String::new() });
            number
        });
        // A program that is started gives its task another name.
        if let (Some(name), Some(task)) = (name, all.get_mut(number as usize)) {
            task.name = name;
        }
        number
    }

    /// Writes all tasks.
    pub(crate) fn write(&self, encoder: &mut Encoder) {
        lock(&self.known).all.iter().for_each(|task| encoder.task(task));
    }
}

/// A name that ends with a byte of 0 and can be printed.
fn name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(bytes.get(..end)?).ok()?;
    (!name.is_empty() && !name.chars().any(char::is_control)).then(|| name.to_owned())
}

/// The running task of a CPU.
#[derive(Default, Debug)]
pub(crate) struct Running {
    task: Option<(u32, u64, Option<TaskAddress>)>,
    /// The task whose stack is loaded next.
    next: Option<TaskAddress>,
}

impl Running {
    /// The number of the task that runs; `None` before the first switch.
    pub(crate) fn number(&self) -> Option<u32> {
        self.task.map(|(number, ..)| number)
    }

    /// A switch begins.
    pub(crate) fn begins_switch(&mut self) {
        self.next = None;
    }

    /// The function that changes stacks uses the description of a task, whose stack is this one when it stores there.
    pub(crate) fn uses(&mut self, used: Option<u64>, stored_of: Option<u64>, tasks: &Tasks) {
        let place = tasks.place(used);
        match stored_of {
            Some(stack) if self.task.is_none() => {
                self.task = Some((tasks.number(stack, place), stack, place));
            }
            Some(_) => {}
            None => self.next = self.next.or(place),
        }
    }

    /// The stack is that of the next task.
    pub(crate) fn switched(&mut self, stack: u64, tasks: &Tasks) {
        self.look_again(tasks);
        let place = self.next.take();
        self.task = Some((tasks.number(stack, place), stack, place));
    }

    /// Takes the present name of the running task.
    pub(crate) fn look_again(&self, tasks: &Tasks) {
        if let Some((_, stack, place)) = self.task {
            tasks.number(stack, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Memory that begins at 0x1000, with a task's number at distance 8 and its name at 16.
    fn tasks(bytes: &[u8]) -> Tasks {
        let layout = TaskStruct { stack_pointer: 4, pid: 8, name: 16, memory: 0x1000..0x2000 };
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        let tasks = Tasks::new(Some(layout.clone()));
        tasks.memory.set(Some(Memory { file, holds: layout.memory })).expect("not opened yet");
        tasks
    }

    fn told(tasks: &Tasks) -> Vec<(u64, Option<u32>, String)> {
        lock(&tasks.known).all.iter().map(|task| (task.stack, task.pid, task.name.clone())).collect()
    }

    #[test]
    fn a_tasks_number_and_name_are_read_where_the_switch_uses_its_description() {
        let mut bytes = vec![0; 0x200];
        bytes[0x108..0x10c].copy_from_slice(&42_u32.to_le_bytes());
        bytes[0x110..0x115].copy_from_slice(b"gzip\0");
        let tasks = tasks(&bytes);
        let mut cpu = Running::default();
        cpu.uses(Some(0x1104), None, &tasks);
        cpu.uses(Some(0x1004), None, &tasks);
        cpu.switched(0x8000, &tasks);
        assert_eq!((cpu.number(), told(&tasks)), (Some(0), vec![(0x8000, Some(42), "gzip".to_owned())]));
        // Invalid names and names elsewhere do not count; such tasks are identified by their stacks.
        cpu.begins_switch();
        cpu.uses(Some(0x1004), None, &tasks);
        cpu.switched(0x4000, &tasks);
        cpu.begins_switch();
        cpu.uses(Some(0x9_0000), None, &tasks);
        cpu.switched(0xc000, &tasks);
        assert_eq!(told(&tasks)[1..], [(0x4000, None, String::new()), (0xc000, None, String::new())]);
    }

    #[test]
    fn a_stack_that_is_used_again_is_another_task_and_a_started_program_is_the_same_one() {
        let mut bytes = vec![0; 0x80];
        bytes[8] = 7;
        bytes[16..19].copy_from_slice(b"sh\0");
        let tasks = tasks(&bytes);
        let mut cpu = Running::default();
        // The first switch shows both.
        cpu.uses(Some(0x1004), Some(0x8000), &tasks);
        assert_eq!(cpu.number(), Some(0));
        let change = |at: u64, bytes: &[u8]| {
            let path = tasks.memory.get().and_then(Option::as_ref).expect("memory");
            path.file.write_all_at(bytes, at).expect("written");
        };
        change(16, b"dd\0");
        cpu.switched(0x8000, &tasks);
        assert_eq!(told(&tasks)[0], (0x8000, Some(7), "dd".to_owned()));
        change(8, &[9]);
        cpu.begins_switch();
        cpu.uses(Some(0x1004), None, &tasks);
        cpu.switched(0x8000, &tasks);
        assert_eq!(told(&tasks).last(), Some(&(0x8000, Some(9), "dd".to_owned())));
    }
}
