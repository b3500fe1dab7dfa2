#!/bin/busybox sh
# The first process of the machine that `cargo xtask vm` boots: runs the checks, and ends it.
# What each says stands between two lines that begin with "@@".

/bin/busybox mkdir -p /sbin /proc /sys /dev /tmp /etc
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ NO_COLOR=1 OBSERVER_REQUIRE_KERNEL=1

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tracefs tracefs /sys/kernel/tracing
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /tmp
ip link set lo up
# A distribution's kernel would load it by itself.
insmod /unix_diag.ko

check() { # NAME COMMAND...
  echo "@@ begin $1"
  shift
  "$@" </dev/null 2>&1
  echo "
@@ end $?"
}

@CHECKS@
reboot -f
