#!/bin/bash
# kubelet.sh SHARE: starts this machine's kubelet, again after it was killed.
share=$1 n=$(hostname | tr -d h)
"$share/hyperkube" kubelet --config=/etc/kubelet.yaml --kubeconfig="$share/k8s/kubeconfig" --hostname-override=h$n --node-ip=10.99.0.$n \
	--root-dir=/var/lib/k8s/kubelet --cert-dir=/var/lib/k8s/pki >>"$share/k8s/kubelet-$n.log" 2>&1 &
