#!/bin/bash
# A node: containerd and a kubelet, started by cluster.sh as the first process of namespaces of its own.
# Whoever kills this process kills the node, and to start it again is a reboot.
set -u
. "$(dirname "$0")/common.sh"
number=$1
own=$RUN/nodes/$number
hostname "node$number"
mount --make-rprivate /
for hierarchy in cpu cpuacct cpuset memory devices freezer blkio pids systemd unified; do
    [ -d "/sys/fs/cgroup/$hierarchy" ] || continue
    group=/sys/fs/cgroup/$hierarchy/iolab-node$number
    mkdir -p "$group" "$group/system"
    if [ "$hierarchy" = cpuset ]; then
        for here in "$group" "$group/system"; do
            cat /sys/fs/cgroup/cpuset/cpuset.cpus >"$here/cpuset.cpus"
            cat /sys/fs/cgroup/cpuset/cpuset.mems >"$here/cpuset.mems"
        done
    fi
    echo 0 >"$group/system/cgroup.procs"
done
mount -t tmpfs -o mode=755 tmpfs /run
for folder in var/lib/kubelet var/lib/containerd var/log/pods var/log/containers etc/cni/net.d etc/containerd opt/cni; do
    mkdir -p "$own/$folder" "/$folder"
    mount --bind "$own/$folder" "/$folder"
done
mount --make-rshared /
cat >/etc/cni/net.d/10-lab.conflist <<END
{"cniVersion":"0.4.0","name":"lab","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":false,
 "ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.$number.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}],"dataDir":"/run/cni-ipam"}}]}
END
cat >/etc/containerd/config.toml <<'END'
version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE runc cannot lower a score, and every pod would stay in ContainerCreating.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
END
cat >/run/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 10.99.0.1$number
cgroupDriver: cgroupfs
cgroupRoot: /iolab-node$number
failSwapOn: false
resolvConf: ""
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $PKI/node$number.crt
tlsPrivateKeyFile: $PKI/node$number.key
evictionHard: {memory.available: 50Mi, nodefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
END
trap 'kill $(jobs -p) 2>/dev/null; exit' TERM INT
containerd >"$LOG/containerd$number.log" 2>&1 &
for _ in $(seq 100); do
    [ -S /run/containerd/containerd.sock ] && ctr version >/dev/null 2>&1 && break
    sleep .1
done
for archive in "$CACHE"/images/*.tar; do
    mark=$own/$(basename "$archive").in
    [ -e "$mark" ] && [ "$mark" -nt "$archive" ] && continue
    ctr -n k8s.io images import "$archive" >>"$LOG/import$number.log" 2>&1 && touch "$mark"
done
# The disks of the classes are held to known rates, in each pod as it comes: that is what sets them apart.
while :; do
    for class in fast slow; do
        device=$(lsblk -dno MAJ:MIN "$(cat "$RUN/disks/$class$number.device")")
        iops=$FAST_IOPS
        [ "$class" = slow ] && iops=$SLOW_IOPS
        find "/sys/fs/cgroup/blkio/iolab-node$number" -mindepth 3 -type d 2>/dev/null | while read -r group; do
            for way in read write; do
                echo "$device $iops" >"$group/blkio.throttle.${way}_iops_device" 2>/dev/null
            done
        done
    done
    sleep 2
done &
"$BIN/csi-driver" "$CSI_DRIVER" "node$number" "$RUN/volumes/csi$number" >>"$LOG/csi$number.log" 2>&1 &
while :; do
    "$BIN/kubelet" --config=/run/kubelet.yaml --kubeconfig="$PKI/node$number.conf" \
        --hostname-override="node$number" --node-ip="10.99.0.1$number" --v=2 >>"$LOG/kubelet$number.log" 2>&1
    sleep 2
done &
while :; do wait; sleep 1; done
