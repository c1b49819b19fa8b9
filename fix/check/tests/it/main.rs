//! Certificates of programs that GCC and clang build here.

mod corruption;
mod dependences;
mod forms;
mod gimple_words;
mod hidden_types;
mod reader;
