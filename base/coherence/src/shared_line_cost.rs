//! The price of a line that threads share.

/// The assumed price of one wait for a line that another thread has, in cycles. Processors take some 40 to 400, by how
/// far apart their caches lie.
pub const WAIT_CYCLES: f64 = 100.0;
