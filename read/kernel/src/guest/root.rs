//! The part of the init script that mounts a root file system, read-only, with an overlay in memory.

/// The modules without which a guest cannot mount its root; their dependencies are loaded as well. Kernels have some of
/// them built in.
pub const DISK_MODULES: &[&str] =
    &["virtio_pci", "virtio_pmem", "nd_pmem", "crc32c_generic", "ext4", "overlay"];

/// The folder of the initramfs that holds files of the host before they are copied into the root.
pub const FILES: &str = "/lineup/files";

/// The shell of the root, else busybox's. Applets of busybox that the root lacks are at the end of the path.
pub(super) const START: &str = "\
shell=/bin/sh\n\
chroot /lineup/root $shell -c : 2>/dev/null || shell=/lineup/bin/sh\n\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/lineup/bin\n";

/// Runs the workload in the root. Init's own commands are the initramfs's, by their full names.
pub(super) const RUN: &str = "chroot /lineup/root \"$shell\" /lineup/workload </dev/null\n";

/// The lines that mount everything. Times of access are not kept: whether one is to be changed depends
/// on when the host's file was read last, which would be another each time.
pub(super) const MOUNTING: &str = "\
mkdir -p /lineup/lower /lineup/memory /lineup/root\n\
tries=0\n\
until [ -b /dev/pmem0 ]; do\n\
[ $tries -lt 50 ] || fail 'the kernel has no driver for the disk of the root: virtio_pci, virtio_pmem, nd_pmem'\n\
tries=$((tries + 1)); sleep 0.1\n\
done\n\
mount -t ext4 -o ro,noatime /dev/pmem0 /lineup/lower || fail 'the kernel cannot mount the root: ext4'\n\
mount -t tmpfs -o size=100% memory /lineup/memory || fail 'the kernel has no tmpfs'\n\
mkdir /lineup/memory/changes /lineup/memory/work\n\
mount -t overlay -o noatime,lowerdir=/lineup/lower,upperdir=/lineup/memory/changes,workdir=/lineup/memory/work \
overlay /lineup/root || fail 'the kernel cannot mount an overlay: overlay'\n\
cd /lineup/root\n\
mkdir -p proc sys dev tmp run root lineup/bin\n\
mount -t proc proc proc\n\
mount -t sysfs sysfs sys\n\
mount -t devtmpfs devtmpfs dev\n\
mkdir -p dev/shm dev/pts\n\
mount -t tmpfs shm dev/shm\n\
mount -t devpts devpts dev/pts\n\
mount --bind /bin lineup/bin\n\
[ ! -d /lineup/files ] || cp -a /lineup/files/. . || fail 'the files of the workload cannot be copied into the root'\n\
cp /lineup/workload lineup/workload\n\
chmod 1777 tmp\n\
cd /\n";
