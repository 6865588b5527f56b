#!/bin/sh
# Make sure that programs are there: install their packages as root, else say what is missing.
#
#   packages.sh required|optional TEST:PACKAGE:PURPOSE ...
#
# TEST is a program's name, or a command line (with a space in it) that succeeds where the package is.
# `required` fails when one is still missing at the end; `optional` says what that costs and goes on.
set -u

need=$1
shift

present() {
    case $1 in
        *" "*) $1 >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=""
for entry in "$@"; do
    rest=${entry#*:}
    present "${entry%%:*}" || missing="$missing ${rest%%:*}"
done
[ -n "$missing" ] || exit 0

# Another apt-get, as of unattended upgrades on a fresh machine, holds dpkg's lock for minutes.
LOCK_S=600

apt() {
    apt-get -o DPkg::Lock::Timeout=$LOCK_S -o Acquire::Retries=3 "$@" >/dev/null
}

install() {
    apt install -y --no-install-recommends "$@"
}

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing (waits up to $((LOCK_S / 60)) minutes for another apt-get)"
    # RUNLEVEL=1: a package that brings a service (an sshd, say) must not start it.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    # A fresh machine has no package lists; an old list may name versions that are gone. What apt
    # says of those is of no interest; what it says after an update is why a package lacks.
    # shellcheck disable=SC2086  # the list is words on purpose
    install $missing 2>/dev/null || {
        apt update -qq
        # shellcheck disable=SC2086
        install $missing || echo "apt-get could not install:$missing" >&2
    }
fi

status=0
for entry in "$@"; do
    rest=${entry#*:}
    present "${entry%%:*}" && continue
    echo "missing: ${entry%%:*}, needed ${rest#*:}" >&2
    echo "         install it with: sudo apt-get install ${rest%%:*}" >&2
    [ "$need" = optional ] || status=1
done
exit $status
