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

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    # RUNLEVEL=1: a package that brings a service (an sshd, say) must not start it.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    # A fresh machine has no package lists; an old list may name versions that are gone.
    # shellcheck disable=SC2086  # the list is words on purpose
    apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 || {
        apt-get update -qq >/dev/null 2>&1
        # shellcheck disable=SC2086
        apt-get install -y --no-install-recommends $missing >/dev/null || true
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
