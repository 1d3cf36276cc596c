#!/bin/bash
# kubernetes.sh SHARE: this machine's part of a cluster. SHARE/hyperkube is Kubernetes' programs in one; h1 has the
# control plane too.
set -eu
share=$1 k=$1/k8s h=$1/hyperkube
n=$(hostname | tr -d h)
mine=/var/lib/k8s
mkdir -p $k $mine/kubelet $mine/certs /etc/cni/net.d
if [ $n = 1 ]; then
	openssl genrsa -out $mine/sa.key 2048 2>/dev/null
	echo 'sesame,admin,admin,"system:masters"' >$mine/tokens.csv
	cat >$k/kubeconfig.part <<T
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.99.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: sesame}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
T
	etcd --data-dir $mine/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync >$k/etcd.log 2>&1 &
	$h kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://test --api-audiences=test \
		--service-account-signing-key-file=$mine/sa.key --service-account-key-file=$mine/sa.key --authorization-mode=RBAC --allow-privileged=true --cert-dir=$mine/certs \
		--advertise-address=10.99.0.1 --bind-address=0.0.0.0 --secure-port=6443 --token-auth-file=$mine/tokens.csv --endpoint-reconciler-type=lease >$k/apiserver.log 2>&1 &
	until $h kubectl --kubeconfig $k/kubeconfig.part get --raw /readyz >/dev/null 2>&1; do sleep 0.5; done
	$h kube-controller-manager --kubeconfig=$k/kubeconfig.part --service-account-private-key-file=$mine/sa.key --leader-elect=false --root-ca-file=$mine/certs/apiserver.crt --bind-address=127.0.0.1 --node-monitor-grace-period=20s >$k/manager.log 2>&1 &
	$h kube-scheduler --kubeconfig=$k/kubeconfig.part --leader-elect=false --bind-address=127.0.0.1 >$k/scheduler.log 2>&1 &
	cp $k/kubeconfig.part $k/kubeconfig.new && mv $k/kubeconfig.new $k/kubeconfig
fi
for m in 1 2 3; do [ $m = $n ] || ip route add 10.97.$m.0/24 via 10.99.0.$m; done # of other nodes' pods
mount --make-rshared /
mount -t tmpfs tmpfs $mine/kubelet # a shared mount of its own
mount --make-rshared $mine/kubelet
mkdir -p $mine/containerd
mount -t tmpfs tmpfs $mine/containerd # overlayfs wants layers on one that is none
cat >/etc/containerd.toml <<T
version = 2
root = "$mine/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/test/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
T
cat >/etc/cni/net.d/10-b.conflist <<T
{"cniVersion":"0.4.0","name":"b","plugins":[
 {"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":false,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.97.$n.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
T
cat >/etc/kubelet.yaml <<T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 2s
syncFrequency: 2s
resolvConf: /etc/resolv.conf
healthzPort: 0
T
containerd --config /etc/containerd.toml >$k/containerd-$n.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.2; done
for i in pause skerry; do ctr -n k8s.io images import $share/$i.tar >/dev/null; done
until [ -e $k/kubeconfig ]; do sleep 0.2; done
"$share/kubelet.sh" "$share"
