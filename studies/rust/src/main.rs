//! A discrete-event simulation of a network: packets hop between nodes until they arrive, expire or are
//! dropped. The same numbers on every run and machine.

mod network;
mod packet;
mod queue;

use network::Network;
use std::process::ExitCode;

const USAGE: &str = "usage: events [--packets N]\n  --packets N  up to 10000000 (20000)";

/// The number of packets that the arguments ask for; `None` when they make no sense.
fn packets(arguments: &[String]) -> Option<u32> {
    match arguments {
        [] => Some(20_000),
        [option, count] if option == "--packets" => count.parse().ok().filter(|count| *count <= 10_000_000),
        _ => None,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(packets) = packets(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut network = Network::new(61);
    network.send_all(packets);
    let events = network.run();
    println!("packets {packets}, events {events}, checksum {:016x}", network.checksum());
    ExitCode::SUCCESS
}
