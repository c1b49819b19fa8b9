//! Smaller objects of C: members that nothing reads leave, integers whose values fit get a smaller type.

mod member_text;
pub(crate) mod narrowings;
mod smaller;
mod statements;
