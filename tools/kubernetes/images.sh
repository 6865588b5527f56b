#!/bin/bash
# Build the images that the cluster runs, each a docker archive in the cache: a pause container, Debian
# with fio, and the product's own of deploy/Containerfile where its wheel is in dist.
set -euo pipefail
. "$(dirname "$0")/common.sh"
images=$CACHE/images
# Where apt gets its packages from, debootstrap does, too.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null | sed -nE "s/^(URIs:|deb) +(http[^ ]*).*/\2/p" | sed -n 1p || true)
mkdir -p "$images"
store="--root $CACHE/containers --runroot $CACHE/containers-run --storage-driver overlay"
# shellcheck disable=SC2086 # options
builder() { command buildah $store "$@"; }
# A build leaves a container mounted and the image before it, one that is cut more of them.
clean_up() {
    builder rm --all >/dev/null || true
    builder rmi --prune >/dev/null || true
    umount "$CACHE/containers/overlay" 2>/dev/null || true
}
trap clean_up EXIT
archive() { builder push -q "$1" "docker-archive:$images/$2.tar.part:$1" && mv "$images/$2.tar.part" "$images/$2.tar"; }

if [ ! -e "$images/pause.tar" ]; then
    work=$(mktemp -d)
    cat >"$work/pause.c" <<'C'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void reap(int number) { (void)number; while (waitpid(-1, NULL, WNOHANG) > 0) ; }
static void leave(int number) { (void)number; _exit(0); }
int main(void) { signal(SIGCHLD, reap); signal(SIGTERM, leave); signal(SIGINT, leave); for (;;) pause(); }
C
    gcc -static -o "$work/pause" "$work/pause.c"
    container=$(builder from scratch)
    builder copy -q "$container" "$work/pause" /pause
    builder config --entrypoint '["/pause"]' "$container"
    builder commit -q "$container" localhost/pause:1
    builder rm "$container" >/dev/null
    archive localhost/pause:1 pause
    rm -r "$work"
fi

if ! builder inspect --type image localhost/debian:12-slim >/dev/null 2>&1; then
    tree=$(mktemp -d)
    debootstrap --variant=minbase --include=ca-certificates bookworm "$tree" "$mirror" >/dev/null
    # Where the network has an authority of its own, whoever builds in the image needs it.
    if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
        cp /usr/local/share/ca-certificates/*.crt "$tree/usr/local/share/ca-certificates"
        chroot "$tree" update-ca-certificates >/dev/null 2>&1
        printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$tree/etc/pip.conf"
    fi
    rm -rf "$tree"/var/lib/apt/lists/* "$tree"/var/cache/apt/archives/*.deb
    container=$(builder from scratch)
    builder add -q "$container" "$tree" /
    builder commit -q "$container" localhost/debian:12-slim
    builder rm "$container" >/dev/null
    rm -rf "$tree"
fi

wheel=$(ls "$ROOT"/dist/iolab-*.whl 2>/dev/null | head -1 || true)
[ -n "$wheel" ] || { echo "no wheel in dist, so no image of iolab" >&2; exit 0; }
if [ ! -e "$images/iolab.tar" ] || [ "$wheel" -nt "$images/iolab.tar" ]; then
    container=$(builder from scratch)
    builder copy -q "$container" "$BIN/kubectl" /bin/kubectl
    builder commit -q "$container" localhost/kubectl:1
    builder rm "$container" >/dev/null
    builder build -q --isolation chroot --network host --build-arg BASE=localhost/debian:12-slim \
        --build-arg KUBECTL=localhost/kubectl:1 -f "$ROOT/deploy/Containerfile" -t localhost/iolab:test "$ROOT" >/dev/null
    archive localhost/iolab:test iolab
fi
ls -sh "$images"/*.tar
