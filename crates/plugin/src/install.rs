//! Loading the recorder into the emulator: reads the plan and asks for callbacks.

use crate::audit;
use crate::callbacks::{on_exit, on_syscall, on_vcpu_exit, on_vcpu_init};
use crate::ffi::{Api, PluginId};
use crate::follow;
use crate::process;
use crate::recorder::{self, Recorder};
use crate::system;
use crate::translate::on_translate;
use lineup_model::machine::Machine;
use lineup_recording::plan::Plan;

/// Reads the plan, opens the output and asks for callbacks.
pub(crate) fn install(
    api: Api,
    id: PluginId,
    target: &str,
    is_system: bool,
    arguments: &[String],
) -> Result<(), String> {
    let machine =
        Machine::named(target).ok_or_else(|| format!("the emulator's target {target} is not known"))?;
    if let Some(table) = arguments.iter().find_map(|argument| argument.strip_prefix("audit=")) {
        return audit::install(api, id, machine, table);
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
        return system::install(api, id, machine, plan);
    }
    let program = arguments.iter().find_map(|argument| argument.strip_prefix(follow::PROGRAM));
    if let Some(program) = program.and_then(follow::unescape) {
        plan.program = program;
    }
    recorder::set(Recorder::new(api, plan, path, machine, follow::parent(arguments))?)?;
    process::watch_forks()?;
    register(&api, id);
    Ok(())
}

/// Asks the emulator for callbacks.
fn register(api: &Api, id: PluginId) {
    // SAFETY: `id` is ours, and the callbacks have the signatures that the interface asks for.
    unsafe {
        (api.on_vcpu_init)(id, on_vcpu_init);
        (api.on_vcpu_exit)(id, on_vcpu_exit);
        (api.on_translate)(id, on_translate);
        (api.on_syscall)(id, on_syscall);
        (api.on_exit)(id, on_exit, std::ptr::null_mut());
    }
}
