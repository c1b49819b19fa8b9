//! Every integration test of this crate, in one program.

mod array_part;
mod background_lines;
mod cold_part;
mod cold_part_read;
mod confirmed;
mod constraints;
mod contracts;
mod gathering;
mod guard;
mod heap_part;
mod hints;
mod hostile;
mod kernel;
mod known_answers;
mod lua;
mod pahole;
mod parting;
mod prefetch;
mod randomisation;
mod review;
mod rewriting;
mod splitting;
mod together;
mod user_orders;
mod volatile;
mod worth;
