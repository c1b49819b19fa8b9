//! LTTng-UST, measured by a C program built here, with its session off and on.

use std::path::Path;
use std::process::Command;

const PACKAGES: &str = "apt install liblttng-ust-dev lttng-tools gcc";

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}; {PACKAGES}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?}: {}; {PACKAGES}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| format!("not a number: {text}"))
}

/// Nanoseconds per tracepoint, off and on.
pub(crate) fn measure() -> Result<(f64, f64), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/lttng");
    let program = folder.path().join("lttng-bench");
    let mut build = Command::new("gcc");
    build.args(["-O2", "-I"]).arg(&source).arg(source.join("bench.c")).arg("-o").arg(&program);
    run(build.args(["-llttng-ust", "-ldl"]))?;
    let off = number(&run(&mut Command::new(&program))?)?;
    let session = format!("lineup-bench-{}", std::process::id());
    let lttng =
        |arguments: &[&str]| run(Command::new("lttng").env("LTTNG_HOME", folder.path()).args(arguments));
    let output = format!("--output={}", folder.path().join("out").display());
    lttng(&["create", &session, &output])?;
    let on = (|| {
        lttng(&["enable-event", "--userspace", "lineup_bench:event"])?;
        lttng(&["start"])?;
        number(&run(Command::new(&program).env("LTTNG_HOME", folder.path()))?)
    })();
    // The session daemon was ours if none ran before; a destroyed session leaves it idle either way.
    let destroyed = lttng(&["destroy", &session]);
    on.and_then(|on| destroyed.map(|_| (off, on)))
}
