#!/bin/bash
# Build Kubernetes and etcd from their Go modules, and the CSI driver beside this script, into the cache, once:
# 15 to 85 minutes on two cores.
set -euo pipefail
. "$(dirname "$0")/common.sh"
programs="kubectl kube-apiserver kube-controller-manager kube-scheduler kubelet"
missing=
for program in $programs etcd; do [ -x "$BIN/$program" ] || missing="$missing $program"; done
[ "$BIN/csi-driver" -nt "$HERE/csi/main.go" ] || missing="$missing csi-driver"
[ -n "$missing" ] || exit 0
export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0 GOFLAGS=-mod=mod
export GOMODCACHE=$CACHE/modules GOCACHE=$CACHE/gocache GOTMPDIR=$CACHE/gotmp
command -v go >/dev/null || { echo "missing: Go 1.24 or newer, to build Kubernetes" >&2; exit 1; }
mkdir -p "$BIN" "$GOTMPDIR" "$CACHE/source/kubernetes" "$CACHE/source/etcd"
begin=$(date +%s)

cd "$CACHE/source/kubernetes"
go mod download "k8s.io/kubernetes@v$KUBERNETES"
module=$GOMODCACHE/k8s.io/kubernetes@v$KUBERNETES
# The module has no staging modules, so a module of ours asks for them at the same version.
minor=v0.${KUBERNETES#1.}
{
    printf 'module example.test/k8s\n\ngo 1.24.0\n\ngodebug default=go1.24\n\nrequire k8s.io/kubernetes v%s\n\n' "$KUBERNETES"
    sed -n '/^require (/,/^)/p' "$module/go.mod" | sed -E "s#^(\s+k8s\.io/[a-z-]+) v0\.0\.0( //.*)?\$#\1 $minor\2#"
    echo 'replace ('
    grep staging/src "$module/go.mod" | sed -E "s#^\s+(k8s\.io/[a-z-]+) => .*#\t\1 => \1 $minor#"
    echo ')'
} >go.mod
cp -f "$module/go.sum" go.sum
chmod u+w go.sum
version=k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=34"
for program in $programs; do
    [ -x "$BIN/$program" ] && continue
    started=$(date +%s)
    nice -n 15 go build -p 2 -trimpath -ldflags "$flags" -o "$BIN/$program" "k8s.io/kubernetes/cmd/$program"
    echo "built $program in $(($(date +%s) - started)) s"
done
# Its imports are among those of Kubernetes.
mkdir -p csi
cp -f "$HERE/csi/main.go" csi
nice -n 15 go build -p 2 -trimpath -ldflags "-s -w" -o "$BIN/csi-driver" ./csi

cd "$CACHE/source/etcd"
[ -e go.mod ] || go mod init example.test/etcd 2>/dev/null
[ -x "$BIN/etcd" ] || {
    go get "go.etcd.io/etcd/server/v3@v$ETCD"
    nice -n 15 go build -p 2 -trimpath -ldflags "-s -w" -o "$BIN/etcd" go.etcd.io/etcd/server/v3
}
echo "built$missing (Kubernetes $KUBERNETES, etcd $ETCD) in $(($(date +%s) - begin)) s, $(du -sh "$CACHE" | cut -f1)"
