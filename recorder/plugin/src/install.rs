//! Loading the recorder into the emulator: reads the plan and asks for callbacks.

use crate::audit;
use crate::callbacks::{Begins, Calls, Ends, Exits};
use crate::ffi::Api;
use crate::follow;
use crate::process;
use crate::recorder::{self, Recorder};
use crate::system;
use crate::translate::Translates;
use lineup_model::machine::Machine;
use lineup_recording::plan::Plan;

/// Reads the plan, opens the output and asks for callbacks.
pub(crate) fn install(api: Api, target: &str, is_system: bool, arguments: &[String]) -> Result<(), String> {
    let machine = Machine::named(target).and_then(|machine| machine.description().code);
    let machine = machine.ok_or_else(|| format!("the emulator's target {target} is not known"))?;
    if let Some(table) = arguments.iter().find_map(|argument| argument.strip_prefix("audit=")) {
        return audit::install(api, machine, table);
    }
    let path = arguments.iter().find_map(|argument| argument.strip_prefix("plan="));
    let path = path.ok_or("the argument plan=FILE is missing; start the recorder with `lineup record`")?;
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read the plan {path}: {error}"))?;
    let mut plan = Plan::parse(&text).map_err(|error| error.to_string())?;
    if is_system != plan.system.is_some() {
        let (is, wanted) =
            if is_system { ("a whole system", "a program") } else { ("a program", "a whole system") };
        return Err(format!("the emulator runs {is}, but the plan is for {wanted}"));
    }
    if is_system {
        return system::install(api, machine, plan);
    }
    let program = arguments.iter().find_map(|argument| argument.strip_prefix(follow::PROGRAM));
    if let Some(program) = program.and_then(follow::unescape) {
        plan.program = program;
    }
    recorder::set(Recorder::new(api, plan, path, machine, follow::parent(arguments))?)?;
    process::watch_forks()?;
    register(&api);
    Ok(())
}

/// Asks the emulator for callbacks.
fn register(api: &Api) {
    api.callbacks.on_vcpu_init::<Begins>();
    api.callbacks.on_vcpu_exit::<Ends>();
    api.callbacks.on_translate::<Translates>();
    api.callbacks.on_syscall::<Calls>();
    api.callbacks.on_exit::<Exits>();
}
