#!/bin/sh
# Print the path of a rustc with the standard library of every MACHINE: cross_rust.sh FOLDER MACHINE ...
#
# The one on PATH if build_agent.py takes musl for them all; else, with GNU's linkers, one with all standard libraries
# for glibc: that on PATH, or, on Debian and its kin, that of the distribution's packages, unpacked into FOLDER without
# a change to the system.
set -eu

folder=$1
shift

has_all() {
    for machine in "$@"; do
        [ -d "$("$rustc" --print target-libdir --target "$machine-unknown-linux-gnu" 2>/dev/null)" ] || return 1
    done
}

takes_musl() {
    for machine in "$@"; do
        target=$(PYTHONPATH="$(dirname "$0")/.." "${PYTHON:-python3}" -c \
            "import build_agent; print(build_agent.target('$machine'))" 2>/dev/null)
        [ "$target" = "$machine-unknown-linux-musl" ] || return 1
    done
}

rustc=$(command -v rustc || true)
[ -n "$rustc" ] && takes_musl "$@" && { echo "$rustc"; exit 0; }
"$(dirname "$0")/packages.sh" required \
    "aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu libc6-dev-arm64-cross:to link the agent for aarch64" \
    "x86_64-linux-gnu-gcc:gcc-x86-64-linux-gnu libc6-dev-amd64-cross:to link the agent for x86_64" >&2
[ -n "$rustc" ] && has_all "$@" && { echo "$rustc"; exit 0; }
rustc=$(readlink -m "$folder")/rustc
[ -x "$rustc" ] && has_all "$@" && { echo "$rustc"; exit 0; }

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "missing: the standard library of Rust for: $*" >&2
    echo "         install it with: rustup target add MACHINE-unknown-linux-musl" >&2
    exit 1
}

# Lists of our own: a package of another architecture is only looked for where that is switched on.
rm -rf "$folder"
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/debs"
folder=$(cd "$folder" && pwd)
rustc=$folder/rustc
here=$(dpkg --print-architecture)
cat >"$folder/apt.conf" <<END
Dir::State::lists "$folder/lists";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
APT::Architectures { "amd64"; "arm64"; };
END
export APT_CONFIG="$folder/apt.conf"
# One of many sources may fail without need of it.
apt-get -qq update >/dev/null 2>&1 || true

# Debian keeps one release of Rust up to date in its stable ones: rustc-web.
for suffix in -web ""; do
    version=$(apt-cache show --no-all-versions "rustc$suffix" 2>/dev/null | sed -n 's/^Version: //p')
    [ -n "$version" ] && break
done
[ -n "$version" ] || { echo "missing: no source of apt has rustc-web or rustc" >&2; exit 1; }
library=$(apt-cache depends "libstd-rust$suffix-dev:$here" | sed -n 's/.*Depends: \(libstd-rust[^: ]*\).*/\1/p')
llvm=$(apt-cache depends "$library:$here" | sed -n 's/.*Depends: \(libllvm[^: ]*\).*/\1/p')
packages="rustc$suffix:$here $library:$here $llvm:$here"
for architecture in amd64 arm64; do
    packages="$packages libstd-rust$suffix-dev:$architecture"
done
# shellcheck disable=SC2086  # the list is words on purpose
(cd "$folder/debs" && apt-get -qq download $packages >&2)
for package in "$folder"/debs/*.deb; do
    dpkg-deb -x "$package" "$folder"
done
rm -rf "$folder/debs" "$folder/lists" "$folder/cache"
# Its libraries are looked for where the package would have put them.
cat >"$rustc" <<END
#!/bin/sh
export LD_LIBRARY_PATH="\$(echo "$folder"/usr/lib/*-linux-gnu)"
exec "$folder/usr/bin/rustc" "\$@"
END
chmod +x "$rustc"
has_all "$@" || { echo "missing: the standard library of Rust for: $*" >&2; exit 1; }
echo "$rustc"
