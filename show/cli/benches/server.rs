//! The cost of sampling a server's calls under load: `cargo bench -p lineup --bench server`.
//!
//! A server answers a load generator: untouched, with `lineup record --pid --calls-per-second 1000` attached to it,
//! attached again, untouched, and so on. Ratios of its processor time for a request, and of the time for a request,
//! with intervals over such blocks.
//!
//! - Redis answers its own benchmark over a socket. It must have its symbols: LINEUP_BENCH_REDIS names the folder with
//!   `redis-server` and `redis-benchmark`, such as the one that `make suites` builds.
//! - nginx answers `wrk` (apt: wrk) over the loopback interface. LINEUP_BENCH_NGINX names an `nginx` that was built
//!   with `-g -O2`.

#[allow(dead_code, reason = "it needs the command alone")]
mod setup;

use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BLOCKS: usize = 16;
/// Requests of each kind, in one turn of Redis.
const REQUESTS: u64 = 60_000;
const KINDS: &str = "get,set,incr";
/// One turn of nginx.
const SECONDS: &str = "2s";
/// Bytes of the page that nginx hands out.
const PAGE_BYTES: usize = 4096;
const CONNECTIONS: &str = "20";
const CALLS_PER_SECOND: &str = "1000";

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Redis,
    Nginx,
}

impl Kind {
    /// One function, and two of which one is called by the other.
    fn regions(self) -> [&'static [&'static str]; 2] {
        match self {
            Kind::Redis => [&["lookupKey"], &["lookupKey", "dictFind"]],
            Kind::Nginx => {
                [&["ngx_http_parse_request_line"], &["ngx_http_static_handler", "ngx_http_send_header"]]
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Redis => "redis-server",
            Kind::Nginx => "nginx",
        }
    }
}

fn main() {
    let lineup = setup::release_build();
    for (kind, variable) in [(Kind::Redis, "LINEUP_BENCH_REDIS"), (Kind::Nginx, "LINEUP_BENCH_NGINX")] {
        match std::env::var_os(variable).map(PathBuf::from) {
            Some(place) => measure(kind, &place, &lineup),
            None => println!("{variable} is not set: {} is not measured", kind.name()),
        }
    }
}

fn measure(kind: Kind, place: &Path, lineup: &Path) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let server = Server::start(kind, place, folder.path());
    server.serve();
    for regions in kind.regions() {
        let turn = |is_sampled: bool| {
            let recorder = is_sampled.then(|| server.sample(lineup, regions));
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
            let of = |wanted: bool, time: fn(&Took) -> f64| {
                let own = took.iter().filter(|(is_sampled, _)| *is_sampled == wanted);
                own.map(|(_, took)| time(took)).collect::<Vec<_>>()
            };
            processor.push((of(false, |took| took.processor), of(true, |took| took.processor)));
            wall.push((of(false, |took| took.wall), of(true, |took| took.wall)));
        }
        let (name, regions) = (kind.name(), regions.join(" and "));
        println!("{name}: {regions} sampled at {CALLS_PER_SECOND} calls a second, {BLOCKS} blocks:");
        println!("  processor time of the server for a request: {}", shown(&processor));
        println!("  time for a request, of all together: {}", shown(&wall));
    }
}

/// The ratio of sampled to untouched, and how long a request took untouched.
fn shown(runs: &[(Vec<f64>, Vec<f64>)]) -> String {
    let blocks = PairedBlocks::from_runs(runs).expect("both of each block");
    let RatioEstimate { ratio, interval, .. } = blocks.ratio(0.95).expect("times above zero");
    let untouched = blocks.means().0.iter().sum::<f64>() / blocks.len() as f64;
    format!("{ratio:.4} times [{:.4}, {:.4}] of {:.3} µs", interval.low, interval.high, untouched * 1e6)
}

/// The time of a request, in seconds.
struct Took {
    processor: f64,
    wall: f64,
}

struct Server<'a> {
    kind: Kind,
    place: &'a Path,
    folder: &'a Path,
    port: u16,
    process: Child,
}

impl Server<'_> {
    fn start<'a>(kind: Kind, place: &'a Path, folder: &'a Path) -> Server<'a> {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let mut command = match kind {
            Kind::Redis => {
                let mut command = Command::new(place.join("redis-server"));
                command.args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"]);
                command
            }
            Kind::Nginx => {
                fs::write(folder.join("page"), "x".repeat(PAGE_BYTES)).expect("a page");
                fs::write(folder.join("conf"), configuration(folder, port)).expect("a configuration");
                let mut command = Command::new(place);
                command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(folder.join("conf"));
                command
            }
        };
        let process = command.current_dir(folder).stdout(Stdio::null()).spawn().expect("the server");
        wait_for("the server", || match kind {
            Kind::Redis => folder.join("socket").exists(),
            Kind::Nginx => std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(),
        });
        Server { kind, place, folder, port, process }
    }

    /// Has it serve one turn's requests.
    fn serve(&self) -> Took {
        let (processor, begun) = (self.processor(), Instant::now());
        let requests = match self.kind {
            Kind::Redis => self.serve_redis(),
            Kind::Nginx => self.serve_nginx(),
        };
        let of_each = |time: Duration| time.as_secs_f64() / requests as f64;
        Took { processor: of_each(self.processor() - processor), wall: of_each(begun.elapsed()) }
    }

    fn serve_redis(&self) -> u64 {
        let requests = REQUESTS.to_string();
        let mut load = Command::new(self.place.join("redis-benchmark"));
        load.args(["-s", "socket", "-q", "-c", CONNECTIONS, "-t", KINDS, "-n", &requests]);
        setup::shown(load.current_dir(self.folder));
        KINDS.split(',').count() as u64 * REQUESTS
    }

    fn serve_nginx(&self) -> u64 {
        let mut load = Command::new("wrk");
        load.args(["-t", "1", "-c", CONNECTIONS, "-d", SECONDS])
            .arg(format!("http://127.0.0.1:{}/page", self.port));
        let output = load.output().expect("cannot run wrk; install it: apt install wrk");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!said.contains("Non-2xx"), "{said}");
        let line = said.lines().find_map(|line| line.split_once(" requests in "));
        let requests = line.and_then(|(count, _)| count.trim().parse().ok());
        requests.unwrap_or_else(|| panic!("wrk did not tell how many requests there were: {said}"))
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

    /// Attaches to it, and returns when calls are recorded.
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

/// nginx in one process, which hands out the page that lies in its folder.
fn configuration(folder: &Path, port: u16) -> String {
    format!(
        "daemon off; master_process off; pid pid; error_log stderr crit; events {{ worker_connections 256; }}\n\
         http {{ access_log off; keepalive_requests 100000000; server {{ listen 127.0.0.1:{port}; root {}; }} }}\n",
        folder.display()
    )
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
