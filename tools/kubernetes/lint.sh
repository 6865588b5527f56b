#!/bin/bash
# Lint deploy/ as the ecosystem does: kustomize builds the base, kubeconform holds it against the schemas of
# the API, and kube-score against good practice. The three are built from Go modules into the cache, once.
# Runs where the Python package kubernetes-validate is installed, which has the schemas.
set -euo pipefail
. "$(dirname "$0")/common.sh"
export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN=$BIN
export GOMODCACHE=$CACHE/modules GOCACHE=$CACHE/gocache GOTMPDIR=$CACHE/gotmp
mkdir -p "$BIN" "$GOTMPDIR"

tool() { # NAME PACKAGE@VERSION
    [ -x "$BIN/$1" ] || nice -n 15 go install -p 2 -trimpath -ldflags "-s -w" "$2"
}

tool kustomize "sigs.k8s.io/kustomize/kustomize/v5@v$KUSTOMIZE"
tool kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@v$KUBECONFORM"
tool kube-score "github.com/zegl/kube-score/cmd/kube-score@v$KUBE_SCORE"

# The schemas name themselves and each other by paths of a server.
version=${KUBERNETES%.*}.0
schemas=$CACHE/schemas
rm -rf "$schemas"
packaged=$(python -c 'import kubernetes_validate as k; print(k.__path__[0])')/kubernetes-json-schema
cp -r "$packaged/v$version-local-strict" "$schemas"
sed -i 's#"/api/_definitions#"_definitions#; s#"$id":#"$comment":#' "$schemas"/*.json
{
    "$BIN/kustomize" build "$ROOT/deploy/base"
    echo ---
    cat "$ROOT/deploy/fetch.yaml"
} >"$CACHE/deploy.yaml"
"$BIN/kubeconform" -strict -summary -kubernetes-version "$version" \
    -schema-location "$schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$CACHE/deploy.yaml"
# The images may be loaded by hand, and a limit of processors would throttle what is measured.
"$BIN/kube-score" score --kubernetes-version "v${KUBERNETES%.*}" \
    --enable-optional-test container-seccomp-profile \
    --ignore-test container-image-pull-policy --ignore-container-cpu-limit "$CACHE/deploy.yaml"
