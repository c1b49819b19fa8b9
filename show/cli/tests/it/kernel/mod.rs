//! Kernels as Debian ships them, booted and recorded. `make test` boots seven times; `make test-kernel` also runs the ignored
//! tests, which boot more often and other machines, and `make test-emulators` those of [`other_emulators`].

mod advised;
mod boot;
mod copied;
mod emulators;
mod find;
mod grief;
mod guests;
mod machines;
mod modules;
mod no_caches;
mod other_emulators;
mod record;
mod rootfs;
mod shared;
mod sweep;
mod table;
mod threads;
mod what_if;
