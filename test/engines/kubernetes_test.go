package engines

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/testkit"
)

// Three nodes of Kubernetes for real: its programs in one, and Debian's etcd and containerd.
func TestKubernetes(t *testing.T) {
	dir := testkit.Asked(t, "SKERRY_KUBERNETES", "a folder with hyperkube and tree, which test/engines/kubernetes-setup.sh makes in ten minutes")
	r := newRoom(t)
	tree, err := filepath.Abs(filepath.Join(dir, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	r.must(exec.Command("cp", filepath.Join(dir, "hyperkube"), r.path("hyperkube")))
	r.must(exec.Command("ln", "-s", "hyperkube", r.path("kubectl")))
	r.must(exec.Command("./image.sh", r.path("pause.tar"), "docker.io/test/pause:1", "/usr/bin/sleep", "/bin/sh"))
	r.must(exec.Command("./image.sh", r.path("skerry.tar"), "docker.io/test/skerry:1", r.path("skerry")+":/usr/bin/skerry", "/usr/bin/env", "/var/cache/skerry/redis"))
	r.must(exec.Command("cp", "kubernetes.sh", r.share))
	r.write("grid.yaml", grid)
	for n := 1; n <= 3; n++ {
		m := r.machine(n, tree)
		r.must(m.command("bash", "-c", `"$0/kubernetes.sh" "$0" >"$0/$(hostname).log" 2>&1 </dev/null`, r.share))
	}
	kubectl := func(args ...string) string {
		out, err := r.machines["h1"].command(append([]string{r.path("kubectl"), "--kubeconfig", r.path("k8s/kubeconfig")}, args...)...).CombinedOutput()
		if err != nil {
			return ""
		}
		return string(out)
	}
	r.await("three nodes to be ready", func() bool { return strings.Count(kubectl("get", "nodes", "--no-headers"), " Ready ") == 3 })
	out, err := r.machines["h1"].command("bash", "-c", `cd "$0" && export KUBECONFIG=$0/k8s/kubeconfig PATH=$0:$PATH && ./skerry run grid.yaml --on kubernetes --image docker.io/test/skerry:1`, r.share).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, kubectl("get", "pods", "-o", "wide"))
	}
	t.Logf("%s", out)
	r.complete("runs/latest", 4)
}
