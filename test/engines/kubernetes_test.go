package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/test/testkit"
)

// newKubernetes starts a real cluster of three nodes: the Kubernetes programs, and Debian's etcd and containerd. Its
// control plane and its users are on h1.
func newKubernetes(t *testing.T) *room {
	t.Helper()
	dir := testkit.OptIn(t, "SKERRY_KUBERNETES", "a folder with hyperkube, tree and versitygw, which test/engines/kubernetes-setup.sh makes in ten minutes")
	r := newRoom(t)
	tree, err := filepath.Abs(filepath.Join(dir, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	r.must(exec.Command("cp", filepath.Join(dir, "hyperkube"), r.path("hyperkube")))
	r.must(exec.Command("ln", "-s", "hyperkube", r.path("kubectl")))
	r.must(exec.Command("./image.sh", r.path("pause.tar"), "docker.io/test/pause:1"))
	r.must(exec.Command("./image.sh", r.path("skerry.tar"), "docker.io/test/skerry:1", r.path("skerry")+":/usr/bin/skerry",
		"/usr/bin/env", "/bin/cat", "/bin/rm", redisFolder(t)))
	r.must(exec.Command("cp", "kubernetes.sh", "kubelet.sh", r.share))
	r.write("grid.yaml", grid)
	r.setting = "export KUBECONFIG=$0/k8s/kubeconfig PATH=$0:$PATH"
	for n := 1; n <= 3; n++ {
		m := r.machine(n, tree)
		r.must(m.command("bash", "-c", `"$0/kubernetes.sh" "$0" >"$0/$(hostname).log" 2>&1 </dev/null`, r.share))
	}
	r.await("three ready nodes", func() bool { return strings.Count(r.kubectl("get", "nodes", "--no-headers"), " Ready ") == 3 })
	return r
}

// kubectl returns the output of kubectl, "" after an error.
func (r *room) kubectl(args ...string) string {
	out, err := r.machines["h1"].command(append([]string{r.path("kubectl"), "--kubeconfig", r.path("k8s/kubeconfig")}, args...)...).CombinedOutput()
	if err != nil {
		return ""
	}
	return string(out)
}

const onKubernetes = "--on kubernetes --image docker.io/test/skerry:1 "

func TestKubernetes(t *testing.T) {
	r := newKubernetes(t)
	measures := func(name, flags string, trials int) {
		r.run(name, func(t *testing.T) {
			out, err := r.skerry("run " + flags + onKubernetes)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, r.kubectl("get", "pods", "-o", "wide"))
			}
			for node := range r.complete("runs/latest", trials) {
				if r.machines[node] == nil {
					t.Errorf("a trial reports the unknown node %s", node)
				}
			}
		})
	}
	measures("logs", "grid.yaml ", 4)
	r.byHand("printed")
	r.byHand("capabilities", "{privileged: true}",
		"{capabilities: {add: [SYS_ADMIN, NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_NICE, SETUID, SETGID, KILL]}, seccompProfile: {type: Unconfined}}")

	r.must(exec.Command("mkdir", r.path("claim"))) // seen by all nodes, as a network file system is
	r.write("claim.yaml", `apiVersion: v1
kind: PersistentVolume
metadata: {name: shared}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], hostPath: {path: `+r.path("claim")+`}, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: results}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: shared, resources: {requests: {storage: 1Gi}}}
`)
	r.kubectl("create", "-f", r.path("claim.yaml"))
	measures("claim", half+"--results claim:results ", 2)
	r.none("the claim", "claim")

	r.must(exec.Command("mkdir", "-p", r.path("s3/lab")))
	r.must(exec.Command("cp", filepath.Join(os.Getenv("SKERRY_KUBERNETES"), "versitygw"), r.path("versitygw")))
	r.must(r.machines["h1"].command("bash", "-c", `ROOT_ACCESS_KEY=me ROOT_SECRET_KEY=secret "$0/versitygw" --port 10.99.0.1:7070 posix "$0/s3" >"$0/s3.log" 2>&1 </dev/null &`, r.share))
	r.await("the bucket's server", func() bool {
		return r.sh(r.machines["h1"].command("bash", "-c", "exec 3<>/dev/tcp/10.99.0.1/7070")) == nil
	})
	r.setting += " AWS_ENDPOINT_URL_S3=http://10.99.0.1:7070 AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=secret"
	measures("bucket", half+"--results s3://lab/runs ", 2)
	r.none("the bucket", "s3/lab/runs")

	for name, tt := range map[string]struct{ flags, says string }{
		"another key":     {onKubernetes + "--results s3://lab/runs", "403"},
		"no claim":        {onKubernetes + "--results claim:nothing", `"nothing" not found`},
		"a missing image": {"--on kubernetes --image docker.io/test/none:1", "the image docker.io/test/none:1 cannot be had"},
	} {
		r.run(name, func(t *testing.T) {
			was := r.setting
			defer func() { r.setting = was }()
			r.setting += " AWS_SECRET_ACCESS_KEY=another"
			if out, err := r.skerry("run grid.yaml " + tt.flags); err == nil || !strings.Contains(out, tt.says) {
				t.Errorf("the run returned %v, want %q", err, tt.says)
			}
		})
	}
	r.await("the end of the claim's readers", func() bool {
		return r.kubectl("get", "pods", "--selector", "app=skerry-results", "--output", "name") == "" && r.kubectl("get", "pods", "--output", "name") != ""
	})
}

// byHand prints the manifests, replaces words in them, creates them like a user, and resumes the run, which finds its
// Job.
func (r *room) byHand(name string, replace ...string) {
	r.run(name, func(t *testing.T) {
		if _, err := r.skerry("run " + half + onKubernetes + "--dry-run"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(r.path("runs/latest/engine/1.printed"))
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.NewReplacer(replace...).Replace(string(text))
		if (edited == string(text)) != (len(replace) == 0) {
			t.Fatalf("%q is missing in\n%s", replace, text)
		}
		r.write("job.yaml", edited)
		if made := r.kubectl("create", "-f", r.path("job.yaml")); strings.Count(made, "created") != 2 {
			t.Fatalf("the Job was not created: %s", made)
		}
		out, err := r.skerry("run --resume runs/latest")
		if err != nil || !strings.Contains(out, "following skerry-") || strings.Contains(out, "resubmitting") {
			t.Errorf("%v\n%s", err, r.kubectl("get", "pods", "-o", "wide"))
		}
		r.complete("runs/latest", 2)
	})
}

// none fails the test if a folder has a file.
func (r *room) none(what, dir string) {
	r.t.Helper()
	out, err := exec.Command("find", r.path(dir), "-type", "f").Output()
	if err != nil && dir != "s3/lab/runs" || len(out) > 0 {
		r.t.Errorf("leftovers in %s (%v):\n%s", what, err, out)
	}
}
