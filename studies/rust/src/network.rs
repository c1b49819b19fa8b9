//! Nodes, and what they do with packets.

use crate::packet::{Packet, Payload};
use crate::queue::{Event, Queue};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A hash map whose hashes are the same on every run.
type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A node. `repr(C)`: the members stay in this order, hot and cold mixed.
#[repr(C)]
struct Node {
    /// How many packets it passed on since its last rest.
    busy: u32,
    /// What it is called.
    name: String,
    /// Every packet it dropped, with the reason.
    dropped: Vec<(u32, Fate)>,
    /// Its neighbours.
    links: [u16; 4],
    /// Where it is, for drawing.
    position: [f64; 2],
    /// The least it takes to pass a packet on, in steps.
    delay: u32,
    /// Packets it passed on, ever.
    forwarded: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fate {
    Arrived,
    Expired,
    Congested,
}

/// The nodes, the packets under way, and what is to happen.
pub struct Network {
    nodes: Vec<Node>,
    packets: Vec<Option<Box<Packet>>>,
    queue: Queue,
    fates: Map<(u16, Fate), u32>,
    digest: u64,
    random: u64,
}

/// More than this many packets between two rests is too much for a node.
const BUSY_LIMIT: u32 = 90;

/// Steps between two rests of a node.
const REST_STEPS: u64 = 64;

impl Network {
    /// A network of so many nodes, at least 5.
    pub fn new(count: u16) -> Self {
        let nodes = (0..count).map(|index| Node::new(index, count)).collect();
        let mut queue = Queue::default();
        (0..count).for_each(|node| queue.put(u64::from(node), Event::Rest { node }));
        Self {
            nodes,
            packets: Vec::new(),
            queue,
            fates: Map::default(),
            digest: 0,
            random: 88_172_645_463_325_252,
        }
    }

    /// Lets so many packets start, spread over time.
    pub fn send_all(&mut self, count: u32) {
        for index in 0..count {
            let packet = self.make_packet(index);
            let (at, node) = (packet.sent_at, packet.source);
            self.packets.push(Some(Box::new(packet)));
            self.queue.put(at, Event::Arrive { packet: index, node });
        }
    }

    fn make_packet(&mut self, index: u32) -> Packet {
        let count = self.nodes.len() as u64;
        let source = (self.next_random() % count) as u16;
        let destination = (self.next_random() % count) as u16;
        let payload = match self.next_random() % 4 {
            0 => Payload::Probe,
            1 => Payload::Reading(self.next_random() % 1000),
            2 => Payload::Message(format!("message {index}").into()),
            _ => Payload::Samples((0..index % 17).collect()),
        };
        let label = format!("packet {index}");
        let sent_at = u64::from(index) / 2;
        Packet { payload, source, destination, hops_left: 24, label, sent_at, moved_bytes: 0 }
    }

    /// Runs until nothing is under way; returns how many events there were.
    pub fn run(&mut self) -> u64 {
        let mut under_way = self.packets.len();
        let mut events = 0;
        while under_way > 0 {
            let Some((now, event)) = self.queue.take() else { break };
            events += 1;
            match event {
                Event::Rest { node } => self.rest(now, node),
                Event::Arrive { packet, node } => {
                    if let Some(fate) = self.arrive(now, packet, node) {
                        self.finish(now, packet, node, fate);
                        under_way -= 1;
                    }
                }
            }
        }
        events
    }

    fn rest(&mut self, now: u64, node: u16) {
        self.nodes[usize::from(node)].busy = 0;
        self.queue.put(now + REST_STEPS, Event::Rest { node });
    }

    /// Passes a packet on from a node, or says what became of it. Region.
    #[inline(never)]
    fn arrive(&mut self, now: u64, index: u32, at: u16) -> Option<Fate> {
        let packet = self.packets[index as usize].as_mut()?;
        let node = &mut self.nodes[usize::from(at)];
        if packet.destination == at {
            return Some(Fate::Arrived);
        }
        if packet.hops_left == 0 {
            return Some(Fate::Expired);
        }
        if node.busy >= BUSY_LIMIT {
            return Some(Fate::Congested);
        }
        packet.hops_left -= 1;
        packet.moved_bytes += u64::from(packet.payload.wire_bytes());
        node.busy += 1;
        node.forwarded += 1;
        let link = (u32::from(packet.destination) + node.busy) as usize % node.links.len();
        let next =
            if node.links.contains(&packet.destination) { packet.destination } else { node.links[link] };
        self.queue.put(now + u64::from(node.delay), Event::Arrive { packet: index, node: next });
        None
    }

    /// Takes a packet out and counts what became of it. Region.
    #[inline(never)]
    fn finish(&mut self, now: u64, index: u32, at: u16, fate: Fate) {
        let Some(packet) = self.packets[index as usize].take() else { return };
        *self.fates.entry((at, fate)).or_default() += 1;
        if fate != Fate::Arrived {
            self.nodes[usize::from(at)].dropped.push((index, fate));
        }
        let age = now - packet.sent_at;
        let said = packet.payload.digest() + packet.label.len() as u64 + u64::from(packet.source);
        self.digest = self.digest.wrapping_mul(31).wrapping_add(said + packet.moved_bytes + age);
    }

    /// A number that depends on everything that happened.
    pub fn checksum(&self) -> u64 {
        let fates = self.fates.iter().fold(0u64, |sum, ((node, fate), count)| {
            sum + u64::from(*count) * (u64::from(*node) + 100 * (*fate as u64 + 1))
        });
        let nodes = self.nodes.iter().fold(0u64, |sum, node| {
            let place = (node.position[0] + node.position[1]) as u64;
            sum + node.forwarded * (node.name.len() as u64 + place) + node.dropped.len() as u64
        });
        self.digest ^ fates ^ nodes
    }

    /// xorshift.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

impl Node {
    fn new(index: u16, count: u16) -> Self {
        let link = |step: u16| (index + step) % count;
        Self {
            busy: 0,
            name: format!("node {index}"),
            dropped: Vec::new(),
            links: [link(1), link(5), link(count - 1), link(count - 5)],
            position: [f64::from(index % 8), f64::from(index / 8)],
            delay: 1 + u32::from(index % 3),
            forwarded: 0,
        }
    }
}
