//! Stalls as a profile of pprof's, so that its viewers open it: `profile.proto` of github.com/google/pprof, uncompressed.

use lineup_find::Stack;
use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

/// Both are places in the table of strings.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    /// A place in the table of strings.
    #[prost(int64, tag = "2")]
    name: i64,
}

/// All stacks, in cycles. A frame is a function and a location of its own; numbers begin with 1.
pub(crate) fn bytes(stacks: &[Stack]) -> Vec<u8> {
    let string_table = ["", "stalls", "cycles"].map(str::to_owned).to_vec();
    let sample_type = vec![ValueType { r#type: 1, unit: 2 }];
    let mut profile = Profile { sample_type, string_table, ..Profile::default() };
    let mut known: HashMap<&str, u64> = HashMap::new();
    for stack in stacks {
        let location_id = stack.frames.iter().rev().map(|frame| {
            let next = known.len() as u64 + 1;
            *known.entry(frame).or_insert_with(|| {
                let name = profile.string_table.len() as i64;
                profile.string_table.push(frame.clone());
                profile.function.push(Function { id: next, name });
                profile.location.push(Location { id: next, line: vec![Line { function_id: next }] });
                next
            })
        });
        let location_id = location_id.collect();
        profile
            .sample
            .push(Sample { location_id, value: vec![i64::try_from(stack.cycles).unwrap_or(i64::MAX)] });
    }
    profile.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A varint, and the bytes after it.
    fn varint(bytes: &[u8]) -> (u64, &[u8]) {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end");
        let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
        (value, &bytes[end + 1..])
    }

    /// Fields of a message by number: of those with a length their bytes, of others their value as eight bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (key, rest) = varint(bytes);
            let (value, rest) = varint(rest);
            let (payload, rest) = match key & 7 {
                0 => (value.to_le_bytes().to_vec(), rest),
                2 => (rest[..value as usize].to_vec(), &rest[value as usize..]),
                other => panic!("wire type {other}"),
            };
            all.push((key >> 3, payload));
            bytes = rest;
        }
        all
    }

    fn of(all: &[(u64, Vec<u8>)], number: u64) -> Vec<Vec<u8>> {
        all.iter().filter(|(own, _)| *own == number).map(|(_, payload)| payload.clone()).collect()
    }

    fn value(all: &[(u64, Vec<u8>)], number: u64) -> u64 {
        u64::from_le_bytes(of(all, number).remove(0).try_into().expect("eight bytes"))
    }

    /// By the numbers that `profile.proto` gives its fields.
    #[test]
    fn stacks_come_out_as_pprof_reads_them() {
        let stack = |frames: &[&str], cycles| Stack {
            frames: frames.iter().map(ToString::to_string).collect(),
            cycles,
        };
        let encoded = bytes(&[stack(&["data", "t", "f"], 300), stack(&["code", "f"], 7)]);
        let all = fields(&encoded);
        let strings: Vec<String> =
            of(&all, 6).into_iter().map(|text| String::from_utf8(text).expect("text")).collect();
        let text = |place: u64| strings[place as usize].as_str();
        let kind = fields(&of(&all, 1)[0]);
        assert_eq!((text(value(&kind, 1)), text(value(&kind, 2))), ("stalls", "cycles"));
        assert_eq!(strings[0], "");
        let functions: HashMap<u64, u64> = of(&all, 5)
            .iter()
            .map(|function| fields(function))
            .map(|one| (value(&one, 1), value(&one, 2)))
            .collect();
        let locations: HashMap<u64, u64> = of(&all, 4)
            .iter()
            .map(|location| fields(location))
            .map(|one| (value(&one, 1), value(&fields(&of(&one, 4)[0]), 1)))
            .collect();
        let samples = of(&all, 2).into_iter().map(|sample| {
            let sample = fields(&sample);
            let packed = of(&sample, 1).remove(0);
            let frames = packed.iter().map(|id| text(functions[&locations[&u64::from(*id)]]).to_owned());
            (frames.collect::<Vec<_>>(), varint(&of(&sample, 2).remove(0)).0)
        });
        let samples: Vec<(Vec<String>, u64)> = samples.collect();
        let expected = [(vec!["f", "t", "data"], 300), (vec!["f", "code"], 7)];
        assert_eq!(
            samples,
            expected.map(|(frames, cycles)| (frames.iter().map(ToString::to_string).collect(), cycles))
        );
        assert_eq!(functions.len(), 4, "a frame is told once");
    }
}
