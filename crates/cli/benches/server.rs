//! What sampling calls costs a server under load: `cargo bench -p lineup --bench server`.
//!
//! A Redis server answers its own benchmark over a socket: untouched, with `lineup record --pid --calls-per-second 1000`
//! attached to it, attached again, untouched, and so on. Ratios of its processor time for a request, and of requests a
//! second, with intervals over such blocks. Redis must have its symbols: LINEUP_BENCH_REDIS names the folder with
//! `redis-server` and `redis-benchmark`, such as that which `make suites` builds.

#[allow(dead_code, reason = "it needs the command alone")]
mod setup;

use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BLOCKS: usize = 16;
/// Of each kind, in one turn.
const REQUESTS: u64 = 60_000;
const KINDS: &str = "get,set,incr";
const CALLS_PER_SECOND: &str = "1000";
/// One function, and two of which one is called by the other.
const REGIONS: [&[&str]; 2] = [&["lookupKey"], &["lookupKey", "dictFind"]];

fn main() {
    let Some(redis) = std::env::var_os("LINEUP_BENCH_REDIS").map(PathBuf::from) else {
        println!(
            "LINEUP_BENCH_REDIS names no folder with redis-server and redis-benchmark: nothing is measured"
        );
        return;
    };
    let lineup = setup::release_build();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let server = Server::start(&redis, folder.path());
    server.serve();
    for regions in REGIONS {
        let turn = |is_sampled: bool| {
            let recorder = is_sampled.then(|| server.sample(&lineup, regions));
            let took = server.serve();
            if let Some(recorder) = recorder {
                stop(recorder);
            }
            took
        };
        let (mut processor, mut wall) = (Vec::new(), Vec::new());
        for block in 0..BLOCKS {
            // ABBA and BAAB in turn.
            let order = [false, true, true, false].map(|is_sampled| is_sampled != (block % 2 == 1));
            let took: Vec<(bool, Took)> =
                order.iter().map(|is_sampled| (*is_sampled, turn(*is_sampled))).collect();
            let of = |wanted: bool, time: fn(&Took) -> Duration| {
                let own = took.iter().filter(|(is_sampled, _)| *is_sampled == wanted);
                own.map(|(_, took)| time(took).as_secs_f64()).collect::<Vec<_>>()
            };
            processor.push((of(false, |took| took.processor), of(true, |took| took.processor)));
            wall.push((of(false, |took| took.wall), of(true, |took| took.wall)));
        }
        println!("{} sampled at {CALLS_PER_SECOND} calls a second, {BLOCKS} blocks:", regions.join(" and "));
        println!("  processor time of the server for a request: {}", shown(&processor));
        println!("  time for all requests: {}", shown(&wall));
    }
}

/// The ratio of sampled to untouched, and how long a request took untouched.
fn shown(runs: &[(Vec<f64>, Vec<f64>)]) -> String {
    let blocks = PairedBlocks::from_runs(runs).expect("both of each block");
    let RatioEstimate { ratio, interval, .. } = blocks.ratio(0.95).expect("times above zero");
    let kinds = KINDS.split(',').count() as f64;
    let untouched = blocks.means().0.iter().sum::<f64>() / blocks.len() as f64 / (kinds * REQUESTS as f64);
    format!("{ratio:.4} times [{:.4}, {:.4}] of {:.3} µs", interval.low, interval.high, untouched * 1e6)
}

/// What a turn took.
struct Took {
    processor: Duration,
    wall: Duration,
}

struct Server<'a> {
    redis: &'a Path,
    folder: &'a Path,
    process: Child,
}

impl Server<'_> {
    fn start<'a>(redis: &'a Path, folder: &'a Path) -> Server<'a> {
        let mut command = Command::new(redis.join("redis-server"));
        command.args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"]);
        let process = command.current_dir(folder).stdout(Stdio::null()).spawn().expect("redis-server");
        wait_for("the server", || folder.join("socket").exists());
        Server { redis, folder, process }
    }

    /// Has it serve all requests.
    fn serve(&self) -> Took {
        let (processor, begun) = (self.processor(), Instant::now());
        let requests = REQUESTS.to_string();
        let mut load = Command::new(self.redis.join("redis-benchmark"));
        load.args(["-s", "socket", "-q", "-c", "20", "-t", KINDS, "-n", &requests]).current_dir(self.folder);
        setup::shown(&mut load);
        Took { processor: self.processor() - processor, wall: begun.elapsed() }
    }

    /// Processor time of all threads until now.
    fn processor(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("its threads");
        let files = threads.map(|thread| thread.expect("a thread").path().join("schedstat"));
        let ran = files.map(|file| {
            let text = fs::read_to_string(file).expect("what a thread has run");
            text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("nanoseconds")
        });
        Duration::from_nanos(ran.sum())
    }

    /// Attaches to it, and comes back when calls are recorded.
    fn sample(&self, lineup: &Path, regions: &[&str]) -> Child {
        let mut command = Command::new(lineup);
        command.args([
            "record",
            "--calls-per-second",
            CALLS_PER_SECOND,
            "--max-seconds",
            "600",
            "--out",
            "calls",
        ]);
        command.args(["--pid", &self.process.id().to_string()]);
        regions.iter().for_each(|region| {
            command.args(["--region", region]);
        });
        let command = command.current_dir(self.folder).stdout(Stdio::null()).stderr(Stdio::null());
        let recorder = command.spawn().expect("lineup");
        let maps = format!("/proc/{}/maps", self.process.id());
        wait_for("the engine", || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("lineup_engine")));
        // Its code is made and changed.
        std::thread::sleep(Duration::from_millis(500));
        recorder
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Has the recorder leave the server in good order.
fn stop(mut recorder: Child) {
    let process = recorder.id().to_string();
    setup::shown(Command::new("kill").args(["-INT", &process]));
    assert!(recorder.wait().expect("the recorder").success(), "recording failed");
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
