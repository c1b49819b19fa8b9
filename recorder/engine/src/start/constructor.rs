//! The start: the loader calls this when the library is loaded, before the program's own code runs.

use crate::cache::blocks::Blocks;
use crate::cache::code_memory::Cache;
use crate::cache::sequence_copies;
use crate::cache::targets::Targets;
use crate::engine::{self, Engine, Whole};
use crate::entries::{choosers, patching};
use crate::machine::{Abi, Gates, Host, Places, Translation};
use crate::shared::{Shared, remember_first};
use crate::signals::code_ranges::Signals;
use crate::syscalls::redirections;
use crate::system;
use crate::system::lock::{self, Lock};
use crate::threads::thread;
use crate::timing::{ends, stamps};
use crate::whole_program::sieve::Sieves;
use lineup_recording::native::{ANY_PROGRAM_BUT, VARIABLE, note, state, timed, whole};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const FIRST_STACK_BYTES: usize = 1 << 17;
const _: () = assert!(Host::VECTOR_BYTES < FIRST_STACK_BYTES);

const NO_MEMORY_FOR_CODE: &str =
    "the system allows no memory for code that is written at one address and executed at another";

/// Held by a thread that is on the first stack.
static FIRST_LOCK: AtomicU32 = AtomicU32::new(0);

// Miri starts such functions without arguments. No supported loader does.
#[cfg(not(miri))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = construct;

#[cfg_attr(miri, allow(dead_code))]
extern "C" fn construct(_count: c_int, _arguments: *const *const c_char, environment: *mut *mut c_char) {
    if environment.is_null() {
        return;
    }
    // The following code runs in the cache, where no memory of the engine may be held or given back: so all of that is
    // over. SAFETY: the loader passes the environment: strings, and null at the end.
    if let Some(begins_here) = unsafe { start(environment) } {
        // SAFETY: made for this, by `Gates::begin_here`: takes nothing, and changes only registers that a function may.
        let begins_here: extern "C" fn() = unsafe { std::mem::transmute(begins_here as *const ()) };
        begins_here();
    }
}

/// Starts the engine when it is this program's. When the whole program is to be recorded: the function that leads into
/// the cache.
///
/// # Safety
/// The environment must be strings and end with null.
unsafe fn start(environment: *mut *mut c_char) -> Option<u64> {
    // SAFETY: the caller's promise.
    let named = unsafe { find(environment, VARIABLE) }?;
    // FILE:PROGRAM: another program, such as a shell that starts ours, hands both variables on.
    let colon = named.iter().position(|byte| *byte == b':')?;
    let (file, program) = (&named[..colon], &named[colon + 1..]);
    let but = program.strip_prefix(ANY_PROGRAM_BUT.as_bytes());
    let is_any = but.is_some();
    let own = system::read_link(b"/proc/self/exe\0");
    if but.is_some_and(|but| own == but) {
        return None;
    }
    if !is_any {
        if own != program {
            return None;
        }
        // SAFETY: as above.
        unsafe { strip(environment) };
    }
    let mut path = file.to_vec();
    path.push(0);
    remember_first(&path);
    let shared = Shared::open(&path)?;
    match shared.is_first() {
        true => from_the_start(shared),
        false if is_any => from_the_start(shared.of_child(file)?),
        false => {
            shared.tell(note::SECOND, program);
            None
        }
    }
}

/// In a process that was forked while another thread may have been on the first stack: that thread does not exist here.
pub(crate) fn release_first_stack() {
    FIRST_LOCK.store(0, Ordering::Relaxed);
}

/// The program has not begun, so no other code runs. For a whole program, returns the function that leads into the
/// cache.
fn from_the_start(shared: Shared) -> Option<u64> {
    begin_first(prepare(shared).filter(|engine| !engine.shared.refuses())?)
}

/// Calls are recorded, or timed, from now on, in a process that has one thread. As [`from_the_start`].
pub(crate) fn begin_first(engine: &Engine) -> Option<u64> {
    redirections::system_calls(engine);
    begin(engine);
    let whole = engine.whole.as_ref()?;
    // The thread enters the cache on the first stack.
    FIRST_LOCK.store(1, Ordering::Relaxed);
    Some(whole.begins_here)
}

/// Calls are recorded, or timed, from now on.
pub(crate) fn begin(engine: &Engine) {
    engine.is_on.store(1, Ordering::Release);
    engine.shared.control().state.store(state::RUNS, Ordering::Release);
}

/// The value of a variable.
///
/// # Safety
/// The environment must be strings and end with null.
unsafe fn find(environment: *mut *mut c_char, name: &str) -> Option<Vec<u8>> {
    let mut at = environment;
    // SAFETY: the caller's promise.
    unsafe {
        while !(*at).is_null() {
            let value = CStr::from_ptr(*at)
                .to_bytes()
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            if let Some(value) = value {
                return Some(value.to_vec());
            }
            at = at.add(1);
        }
    }
    None
}

/// Takes our variables out, so that programs that the program starts are left alone. Libraries that others preload
/// stay.
///
/// # Safety
/// As for [`find`].
unsafe fn strip(environment: *mut *mut c_char) {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    let (mut from, mut to) = (environment, environment);
    // SAFETY: the caller's promise; `to` never overtakes `from`.
    unsafe {
        while !(*from).is_null() {
            let bytes = CStr::from_ptr(*from).to_bytes();
            let is_ours = bytes.strip_prefix(VARIABLE.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
            let others = bytes.strip_prefix(PRELOAD).map(|list| list.iter().position(|byte| *byte == b':'));
            match others {
                _ if is_ours => {}
                // We stand first.
                Some(None) => {}
                Some(Some(colon)) => {
                    let others = (*from).add(PRELOAD.len() + colon + 1);
                    std::ptr::copy(others, (*from).add(PRELOAD.len()), bytes.len() - PRELOAD.len() - colon);
                    *to = *from;
                    to = to.add(1);
                }
                None => {
                    *to = *from;
                    to = to.add(1);
                }
            }
            from = from.add(1);
        }
        *to = std::ptr::null_mut();
    }
}

/// Reads the command's request, and patches the entries. `None` when that fails; a note gives the reason.
pub(crate) fn prepare(shared: Shared) -> Option<&'static Engine> {
    let give_up = |shared: &Shared, why: &str| {
        shared.give_up(why);
        None
    };
    let Some(parts) = parts(&shared) else {
        return give_up(&shared, NO_MEMORY_FOR_CODE);
    };
    let process = system::process_in_proc().unwrap_or_else(system::process);
    shared.control().process.store(process, Ordering::Relaxed);
    shared.control().state.store(state::ASKS, Ordering::Release);
    if !shared.wait_for_answer() {
        return give_up(&shared, "the command did not answer");
    }
    let Parts { places, mut cache, gate, release_first, entry, is_on, signals } = parts;
    let slots = places.slots;
    let mut thread_key = 0;
    let mode = shared.control().mode.load(Ordering::Relaxed);
    let end_thread = if mode == timed::MODE { stamps::end_thread } else { thread::end_thread };
    // SAFETY: the key is ours; the function lives as long as the library, which takes the key back before it goes.
    if unsafe { libc::pthread_key_create(&raw mut thread_key, Some(end_thread)) } != 0 || thread_key >= 32 {
        return give_up(&shared, "the C library has no room for what is kept of a thread");
    }
    if let Some(why) = Host::lacks_for_whole_programs().filter(|_| mode == whole::MODE) {
        return give_up(&shared, why);
    }
    let mut whole = (mode == whole::MODE).then(|| whole_program(&shared, &mut cache, &places, gate));
    if let Some(None) = whole {
        return give_up(&shared, NO_MEMORY_FOR_CODE);
    }
    let logs_all = mode == whole::MODE && shared.control().logs_all.load(Ordering::Relaxed) != 0;
    let targets = if logs_all { Targets::new(&mut cache, slots) } else { None };
    if logs_all && targets.is_none() {
        return give_up(&shared, Host::NO_TARGET_MEMORY);
    }
    if let (Some(Some(whole)), Some(targets)) = (&mut whole, &targets) {
        whole.blocks.targets = targets.table();
    }
    let code = Lock::new(Blocks::new(cache, targets));
    let engine = Engine {
        shared,
        slots,
        gate,
        release_first,
        entry,
        is_on,
        code,
        thread_key,
        signals,
        whole: whole.flatten(),
    };
    let engine = engine::set(engine)?;
    match engine.shared.control().signature.load(Ordering::Relaxed) as u32 {
        0 => {}
        signature => sequence_copies::add_signature(engine, signature),
    }
    system::register_serializing();
    if mode == timed::MODE {
        if !stamps::prepare(engine) {
            return give_up(&engine.shared, "there is no memory for what timing calls needs");
        }
        engine.is_on.store(1, Ordering::Release);
        if !ends::calibrate(engine) {
            return give_up(&engine.shared, "there is no room for the code that stamps calls");
        }
    }
    if !choosers::call_all(engine) {
        return give_up(&engine.shared, "the command did not answer");
    }
    patching::watch_allocators(engine);
    patching::all(engine, system::blocked_signals());
    Some(engine)
}

/// State for whole programs alone.
fn whole_program(shared: &Shared, cache: &mut Cache, places: &Places, gate: u64) -> Option<Whole> {
    let begins_here = cache.put(&Host::begin_here(places, gate))?;
    let begins_threads = cache.put(&Host::begin_thread(places, gate))?;
    let sieves = Sieves::new(shared, cache, places.slots)?;
    Some(Whole {
        begins_here,
        blocks: crate::machine::Whole { begins_threads, levels: sieves.levels, targets: 0 },
        sieves,
        runs_handlers: cache.put(&Host::go_in(places.slots))?,
        masking_gate: cache.put(&Host::masking(places.slots, gate))?,
        retired: Lock::new(Vec::new()),
    })
}

/// The parts that can be made before the command is asked.
struct Parts {
    places: Places,
    cache: Cache,
    gate: u64,
    release_first: u64,
    entry: u64,
    is_on: &'static AtomicU8,
    signals: Signals,
}

fn parts(shared: &Shared) -> Option<Parts> {
    let mut cache = Cache::new()?;
    let page = system::memory(Host::page_bytes() as usize)?;
    if !system::wipe_on_fork(page, Host::page_bytes() as usize) {
        return None;
    }
    // SAFETY: zeroed memory of our own that stays as long as the engine.
    let is_on = unsafe { &*page.cast::<AtomicU8>() };
    // SAFETY: as above, on a cache line of its own.
    lock::remember(unsafe { &*page.wrapping_add(64).cast::<AtomicU32>() });
    let stack = system::memory(FIRST_STACK_BYTES)? as u64;
    let slots = Host::slots_distance();
    let places = Places {
        slots,
        engine: engine::hand_over as *const () as u64,
        is_on: page as u64,
        is_sealed: system::sealed_flag(),
        first_stack: stack + FIRST_STACK_BYTES as u64,
        first_vectors: stack,
        first_lock: FIRST_LOCK.as_ptr() as u64,
        run_shift: (shared.control().run_shift.load(Ordering::Relaxed) & 63) as u8,
    };
    let (unmask, delivers) = Host::unmask(slots);
    let unmask_bytes = unmask.len() as u64;
    let unmask = cache.put(&unmask)?;
    let (gate, check) = Host::gate(&places, unmask);
    let gate_bytes = gate.len() as u64;
    let gate = cache.put(&gate)?;
    let signals = Signals {
        unmask,
        delivering: unmask + delivers as u64..unmask + unmask_bytes,
        going_back: gate + check as u64 + 1..gate + gate_bytes,
        cache: cache.range(),
        entry: 0..0,
    };
    let release_first = cache.put(&Host::release_first(&places))?;
    // Before all blocks: a signal that comes there waits until the engine has begun.
    let burst = cache.put(&Host::begin_burst(&places, gate))?;
    shared.control().burst_code.store(burst, Ordering::Relaxed);
    let entry_code = Host::entry(&places, gate);
    let entry = cache.put(&entry_code)?;
    let signals = Signals { entry: entry..entry + entry_code.len() as u64, ..signals };
    Some(Parts { places, cache, gate, release_first, entry, is_on, signals })
}
