//! Holds nothing: the dependency is what matters.
