# What the scripts beside this one share: versions, and where a cluster is kept.
KUBERNETES=1.34.4
ETCD=3.6.16
KUSTOMIZE=5.7.1
KUBECONFORM=0.8.0
KUBE_SCORE=1.20.0
CACHE=${IOLAB_KUBERNETES:-${XDG_CACHE_HOME:-$HOME/.cache}/iolab/kubernetes}
NODES=${KUBERNETES_NODES:-3}
# I/Os a second, each of reads and of writes, that the disks of the two classes are held to in a pod.
FAST_IOPS=2000
SLOW_IOPS=500
CSI_DRIVER=csi.iolab.test
BIN=$CACHE/bin
RUN=$CACHE/cluster
PKI=$RUN/pki
LOG=$RUN/log
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
