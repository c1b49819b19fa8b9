#!/bin/sh
# Builds every study in every variant that this machine can build and holds them against what their README says:
# the same output from every variant, and the offsets that the known answers rest on.
set -eu
cd "$(dirname "$0")"

need() {
	command -v "$1" >/dev/null || { echo "studies/check.sh: $1 is missing; apt-get install $2" >&2; exit 2; }
}
need gcc gcc
need g++ g++
need make make
need cargo cargo
need pahole dwarves
need arm-linux-gnueabihf-gcc gcc-arm-linux-gnueabihf
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need qemu-arm qemu-user
need qemu-aarch64 qemu-user

failed=0
fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# same WHAT COMMAND...: all commands print the same.
same() {
	what=$1
	shift
	expected=$($1)
	for command in "$@"; do
		[ "$($command)" = "$expected" ] || fail "$what: '$command' prints something else than '$1'"
	done
	echo "$what: $# variants print the same"
}

# lies PROGRAM TYPE MEMBER OFFSET: where pahole sees a member.
lies() {
	seen=$(pahole -C "$2" "$1" 2>/dev/null | sed -n "s|.*[ *(]$3[;:)\[].*/\* *\([0-9]*\)[: ].*|\1|p" | head -n 1)
	[ "$seen" = "$4" ] || fail "$1: $2.$3 lies at ${seen:-no place}, not at $4"
}

cd clockevents
for layout in before patch; do
	make --quiet LAYOUT=$layout
	make --quiet LAYOUT=$layout ARCH=arm
done
make --quiet BOUNDS=ticks
same clockevents ./clockevents ./clockevents-patch ./clockevents-ticks \
	"qemu-arm ./clockevents-arm" "qemu-arm ./clockevents-arm-patch"
while read -r program member offset; do
	lies "$program" clock_event_device "$member" "$offset"
done <<END
clockevents set_next_event 8
clockevents mult_adjusted 52
clockevents features 60
clockevents mult 148
clockevents list 176
clockevents-patch shift 32
clockevents-patch list 64
clockevents-patch mult 80
clockevents-arm features 48
clockevents-arm mult 96
clockevents-arm list 116
clockevents-arm-patch features 32
clockevents-arm-patch list 48
clockevents-arm-patch mult 56
END
cd ../sched-clock
for layout in before patch; do
	make --quiet LAYOUT=$layout
	make --quiet LAYOUT=$layout ARCH=arm
done
same sched-clock ./sched_clock ./sched_clock-patch "qemu-arm ./sched_clock-arm" "qemu-arm ./sched_clock-arm-patch"
lies sched_clock clock_data suspended 48
lies sched_clock clock_data wrap_kt 0
lies sched_clock-patch clock_data seq 0
lies sched_clock-patch clock_read_data suspended 40
lies sched_clock-arm clock_data suspended 40

cd ../lua
make --quiet 2>/dev/null
make --quiet ARCH=arm 2>/dev/null
same lua "./lua bench.lua 2" "qemu-arm ./lua-arm bench.lua 2"

cd ../cpp
make --quiet
make --quiet ARCH=arm64
same cpp ./exchange "qemu-aarch64 ./exchange-arm64"

cd ../rust
make --quiet
same rust ./events ./events

[ $failed = 0 ] && echo "studies: all as their README says"
exit $failed
