#!/bin/bash
# A real Kubernetes on this machine: a control plane and nodes in network namespaces of their own, with
# local volumes of the classes "fast", "slow" (each of known I/Os a second), "standard", the default, and
# "block", and volumes of a CSI driver of the class "csi". Needs root.
#   cluster.sh up | down | volumes | kill-node N | start-node N | kill-api | start-api
set -euo pipefail
. "$(dirname "$0")/common.sh"
export PATH=$PATH:/usr/sbin:/sbin
PER_NODE=3
CLASSES="fast slow standard csi"
VOLUME_MIB=1536

in_plane() { nsenter --net=/run/netns/iolab-kcp "$@"; }
kubectl() { "$BIN/kubectl" --kubeconfig="$RUN/admin.conf" "$@"; }

start() { # NAME PROGRAM ARGUMENTS: in the control plane, its process id kept
    local name=$1
    shift
    setsid nsenter --net=/run/netns/iolab-kcp "$@" >>"$LOG/$name.log" 2>&1 </dev/null &
    echo $! >"$RUN/$name.pid"
}

stop() { # NAME [SIGNAL]
    local pid
    pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 0
    kill "-${2:-TERM}" "$pid" 2>/dev/null || true
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        sleep .1
    done
    kill -KILL "$pid" 2>/dev/null || true
    rm -f "$RUN/$1.pid"
}

network() {
    ip netns add iolab-kcp
    ip -n iolab-kcp link set lo up
    ip -n iolab-kcp addr add 10.96.0.1/32 dev lo
    ip -n iolab-kcp link add br0 type bridge
    ip -n iolab-kcp addr add 10.99.0.1/24 dev br0
    ip -n iolab-kcp link set br0 up
    in_plane sysctl -qw net.ipv4.ip_forward=1
    # The machine itself is on the bridge, too, so that kubectl works as for anybody.
    ip link add iolab-k8s type veth peer name up0 netns iolab-kcp
    ip -n iolab-kcp link set up0 master br0 up
    ip addr add 10.99.0.2/24 dev iolab-k8s
    ip link set iolab-k8s up
    for n in $(seq "$NODES"); do
        ip netns add "iolab-kn$n"
        ip -n "iolab-kn$n" link set lo up
        ip -n "iolab-kn$n" link add eth0 type veth peer name "node$n" netns iolab-kcp
        ip -n iolab-kcp link set "node$n" master br0 up
        ip -n "iolab-kn$n" addr add "10.99.0.1$n/24" dev eth0
        ip -n "iolab-kn$n" link set eth0 up
        ip -n "iolab-kn$n" route add default via 10.99.0.1
        nsenter "--net=/run/netns/iolab-kn$n" sysctl -qw net.ipv4.ip_forward=1
        ip -n iolab-kcp route add "10.244.$n.0/24" via "10.99.0.1$n"
    done
}

certificate() { # NAME SUBJECT [SUBJECT-ALTERNATIVE-NAMES]
    openssl req -newkey rsa:2048 -nodes -keyout "$PKI/$1.key" -subj "$2" -out "$PKI/$1.csr" 2>/dev/null
    openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 30 \
        -extfile <(echo "extendedKeyUsage=serverAuth,clientAuth"; [ -z "${3:-}" ] || echo "subjectAltName=$3") \
        -out "$PKI/$1.crt" 2>/dev/null
}

configuration() { # NAME FILE: a kubeconfig with the certificate of that name
    cat >"$2" <<END
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "https://10.99.0.1", certificate-authority: $PKI/ca.crt}}]
contexts: [{name: lab, context: {cluster: lab, user: $1}}]
users: [{name: $1, user: {client-certificate: $PKI/$1.crt, client-key: $PKI/$1.key}}]
END
}

certificates() {
    mkdir -p "$PKI"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$PKI/ca.key" -subj /CN=lab -days 30 -out "$PKI/ca.crt" 2>/dev/null
    openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
    openssl rsa -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
    certificate apiserver /CN=kube-apiserver IP:127.0.0.1,IP:10.96.0.1,IP:10.99.0.1
    certificate apiserver-kubelet /O=system:masters/CN=apiserver
    certificate admin /O=system:masters/CN=admin
    certificate kcm /CN=system:kube-controller-manager
    certificate scheduler /CN=system:kube-scheduler
    configuration admin "$RUN/admin.conf"
    configuration kcm "$PKI/kcm.conf"
    configuration scheduler "$PKI/scheduler.conf"
    for n in $(seq "$NODES"); do
        certificate "node$n" "/O=system:nodes/CN=system:node:node$n" "IP:10.99.0.1$n,DNS:node$n"
        configuration "node$n" "$PKI/node$n.conf"
    done
}

# What the Job of deploy/base requests, so that its rights can be held against it.
audit_policy() {
    cat >"$RUN/audit.yaml" <<END
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - {level: Metadata, users: ["system:serviceaccount:iolab:iolab"]}
  - {level: None}
END
}

start_api() {
    start apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --secure-port=443 \
        --bind-address=0.0.0.0 --advertise-address=10.99.0.1 --service-cluster-ip-range=10.96.0.0/16 \
        "--client-ca-file=$PKI/ca.crt" "--tls-cert-file=$PKI/apiserver.crt" "--tls-private-key-file=$PKI/apiserver.key" \
        "--kubelet-client-certificate=$PKI/apiserver-kubelet.crt" "--kubelet-client-key=$PKI/apiserver-kubelet.key" \
        "--kubelet-certificate-authority=$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
        "--service-account-key-file=$PKI/sa.pub" "--service-account-signing-key-file=$PKI/sa.key" \
        --service-account-issuer=https://kubernetes.default.svc --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --allow-privileged=true \
        "--audit-policy-file=$RUN/audit.yaml" "--audit-log-path=$LOG/audit.log"
    for _ in $(seq 300); do
        kubectl get --raw /readyz >/dev/null 2>&1 && return
        sleep .2
    done
    echo "the API server is not ready; see $LOG/apiserver.log" >&2
    return 1
}

start_plane() {
    start etcd "$BIN/etcd" --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster default=http://127.0.0.1:2380
    start_api
    start controller-manager "$BIN/kube-controller-manager" "--kubeconfig=$PKI/kcm.conf" \
        "--authentication-kubeconfig=$PKI/kcm.conf" "--authorization-kubeconfig=$PKI/kcm.conf" \
        "--service-account-private-key-file=$PKI/sa.key" "--root-ca-file=$PKI/ca.crt" \
        --use-service-account-credentials=true --leader-elect=false --bind-address=127.0.0.1 \
        --node-monitor-grace-period=20s
    start scheduler "$BIN/kube-scheduler" "--kubeconfig=$PKI/scheduler.conf" \
        "--authentication-kubeconfig=$PKI/scheduler.conf" "--authorization-kubeconfig=$PKI/scheduler.conf" \
        --leader-elect=false --bind-address=127.0.0.1
}

start_node() { # N
    mkdir -p "$RUN/nodes/$1"
    setsid nsenter "--net=/run/netns/iolab-kn$1" unshare --mount --uts --pid --fork --kill-child --mount-proc \
        --propagation private "$HERE/node.sh" "$1" >>"$LOG/node$1.log" 2>&1 </dev/null &
    echo $! >"$RUN/node$1.pid"
}

# A class has a file system of its own on each node, a volume is a folder there; one of "block" is a device.
disks() {
    mkdir -p "$RUN/disks" "$RUN/volumes"
    for n in $(seq "$NODES"); do
        for class in $CLASSES block; do
            truncate -s "$((PER_NODE * VOLUME_MIB))M" "$RUN/disks/$class$n"
            device=$(losetup --find --show --direct-io=on "$RUN/disks/$class$n")
            echo "$device" >>"$RUN/loops"
            echo "$device" >"$RUN/disks/$class$n.device"
            [ "$class" = block ] && continue
            mkfs.ext4 -q -E nodiscard "$device"
            mkdir -p "$RUN/volumes/$class$n"
            mount "$device" "$RUN/volumes/$class$n"
        done
    done
}

# Make every volume that was released available again, and those that are missing.
volumes() {
    exec 9>"$RUN/volumes.lock"
    flock 9
    for name in $(kubectl get pv -o jsonpath='{range .items[?(@.status.phase=="Released")]}{.metadata.name}{"\n"}{end}'); do
        kubectl delete pv "$name" --ignore-not-found >/dev/null
    done
    there=$(kubectl get pv -o jsonpath='{.items[*].metadata.name}')
    {
        printf -- '---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: %s}\n' "$CSI_DRIVER"
        printf 'spec: {attachRequired: false, fsGroupPolicy: File}\n'
        for class in $CLASSES block; do
            printf -- '---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: %s\n' "$class"
            [ "$class" = standard ] && printf '  annotations: {storageclass.kubernetes.io/is-default-class: "true"}\n'
            provisioner=kubernetes.io/no-provisioner
            [ "$class" = csi ] && provisioner=$CSI_DRIVER && printf 'parameters: {medium: loop}\n'
            printf 'provisioner: %s\nvolumeBindingMode: WaitForFirstConsumer\n' "$provisioner"
            for n in $(seq "$NODES"); do
                for k in $(seq "$PER_NODE"); do
                    [ "$class" = block ] && [ "$k" -gt 1 ] && continue
                    case " $there " in *" $class$n-$k "*) continue ;; esac
                    mode=Filesystem path=$RUN/volumes/$class$n/$k
                    if [ "$class" = block ]; then
                        mode=Block path=$(cat "$RUN/disks/block$n.device")
                        wipefs -qa "$path"
                    else
                        mkdir -p "$path"
                        find "$path" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
                    fi
                    printf -- '---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s}\nspec:\n' "$class$n-$k"
                    printf '  capacity: {storage: %sMi}\n  volumeMode: %s\n' "$VOLUME_MIB" "$mode"
                    printf '  accessModes: [ReadWriteOnce, ReadWriteMany]\n  persistentVolumeReclaimPolicy: Retain\n'
                    source="local: {path: $path}"
                    [ "$class" = csi ] && source="csi: {driver: $CSI_DRIVER, volumeHandle: node$n/$k}"
                    printf '  storageClassName: %s\n  %s\n' "$class" "$source"
                    printf '  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: ['
                    printf '{key: kubernetes.io/hostname, operator: In, values: [node%s]}]}]}}\n' "$n"
                done
            done
        done
    } | kubectl apply -f - >/dev/null
}

up() {
    [ ! -e "$RUN" ] || { echo "$RUN is there already; remove it by '$0 down'" >&2; exit 1; }
    "$HERE/build.sh"
    "$HERE/images.sh" >/dev/null
    mkdir -p "$LOG"
    trap down ERR
    network
    certificates
    audit_policy
    disks
    start_plane
    for n in $(seq "$NODES"); do start_node "$n"; done
    for n in $(seq "$NODES"); do
        for _ in $(seq 180); do
            kubectl get node "node$n" >/dev/null 2>&1 && break
            sleep 1
        done
        kubectl wait --for=condition=Ready "node/node$n" --timeout=120s >/dev/null
    done
    volumes
    kubectl create namespace iolab >/dev/null
    trap - ERR
    kubectl get nodes
    echo "export KUBECONFIG=$RUN/admin.conf PATH=$BIN:\$PATH"
}

down() {
    for n in $(seq "$NODES"); do stop "node$n" KILL; done
    for name in scheduler controller-manager apiserver etcd; do stop "$name"; done
    for n in $(seq "$NODES"); do ip netns del "iolab-kn$n" 2>/dev/null || true; done
    ip netns del iolab-kcp 2>/dev/null || true
    ip link del iolab-k8s 2>/dev/null || true
    for n in $(seq "$NODES"); do
        for class in $CLASSES; do umount "$RUN/volumes/$class$n" 2>/dev/null || true; done
        for hierarchy in /sys/fs/cgroup/*; do
            group=$hierarchy/iolab-node$n
            for _ in $(seq 50); do
                [ -d "$group" ] || break
                find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
                sleep .1
            done
        done
    done
    for device in $(cat "$RUN/loops" 2>/dev/null); do losetup -d "$device" 2>/dev/null || true; done
    rm -rf "$RUN"
}

case ${1:-} in
up) up ;;
down) down ;;
volumes) volumes ;;
kill-node) stop "node$2" KILL ;;
start-node) start_node "$2" ;;
kill-api) stop apiserver KILL ;;
start-api) start_api ;;
*)
    sed -n '2,5p' "$0" >&2
    exit 2
    ;;
esac
