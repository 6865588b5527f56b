"""Makes a Python with this folder on its path take the machine for a Mac: no names of Linux alone.

Python reads it before anything of iolab; so a module that needs a name of Linux's fails there.
"""

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import time

LINUX_ONLY = {
    os: (
        "O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_TMPFILE ST_APPEND ST_MANDLOCK ST_NOATIME ST_NODEV "
        "ST_NODIRATIME ST_NOEXEC ST_RELATIME ST_SYNCHRONOUS ST_WRITE copy_file_range eventfd "
        "eventfd_read eventfd_write fdatasync getrandom getresgid getresuid getxattr listxattr "
        "memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate process_cpu_count removexattr "
        "sched_getaffinity sched_getparam sched_getscheduler sched_setaffinity sched_setparam "
        "sched_setscheduler setns setresgid setresuid setxattr splice timerfd_create unshare"
    ),
    fcntl: "F_ADD_SEALS F_NOTIFY F_OFD_SETLK F_SETPIPE_SZ",
    resource: "RLIMIT_NICE RLIMIT_OFILE RLIMIT_RTPRIO RLIMIT_SIGPENDING RUSAGE_THREAD prlimit",
    select: "epoll",
    signal: "SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    socket: "AF_NETLINK AF_PACKET AF_VSOCK SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED",
    time: "CLOCK_BOOTTIME CLOCK_TAI",
}

# Python's own settings lie in a file named after the platform: read before the name changes.
os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
for module, names in LINUX_ONLY.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
mac = os.uname_result(("Darwin", "mac", "24.6.0", "Darwin Kernel Version 24.6.0", "arm64"))
os.uname = lambda: mac
sys.platform = "darwin"
