//! Names of two halves of one thing: `readers` and `writers`, `rx_bytes` and `tx_bytes`.

/// Words of two halves.
const OPPOSITES: [(&str, &str); 30] = [
    ("r", "w"),
    ("read", "write"),
    ("reader", "writer"),
    ("readers", "writers"),
    ("reads", "writes"),
    ("rx", "tx"),
    ("recv", "send"),
    ("rcv", "snd"),
    ("in", "out"),
    ("src", "dst"),
    ("source", "dest"),
    ("start", "end"),
    ("begin", "end"),
    ("first", "last"),
    ("head", "tail"),
    ("front", "back"),
    ("next", "prev"),
    ("left", "right"),
    ("min", "max"),
    ("low", "high"),
    ("hits", "misses"),
    ("parent", "child"),
    ("parent", "children"),
    ("utime", "stime"),
    ("user", "system"),
    ("saved", "current"),
    ("old", "new"),
    ("nvcsw", "nivcsw"),
    ("min_flt", "maj_flt"),
    ("soft", "hard"),
];

/// Whether two names differ in one place, by words of two halves.
pub(crate) fn are_opposites(one: &str, other: &str) -> bool {
    let is_pair = |a: &str, b: &str| OPPOSITES.iter().any(|&(x, y)| (a, b) == (x, y) || (a, b) == (y, x));
    if is_pair(one, other) {
        return true;
    }
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split('_').collect(), other.split('_').collect());
    let mut differing = one.iter().zip(&other).filter(|(a, b)| a != b);
    let pair = differing.next();
    one.len() == other.len() && differing.next().is_none() && pair.is_some_and(|(a, b)| is_pair(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_of_the_names_differs() {
        for (one, other) in [
            ("readers", "writers"),
            ("r_counter", "w_counter"),
            ("rx_bytes", "tx_bytes"),
            ("min_flt", "maj_flt"),
        ] {
            assert!(are_opposites(one, other) && are_opposites(other, one), "{one} {other}");
        }
        for (one, other) in
            [("a", "b"), ("read", "read"), ("rx_bytes", "tx_packets"), ("start_min", "end_max")]
        {
            assert!(!are_opposites(one, other), "{one} {other}");
        }
    }
}
