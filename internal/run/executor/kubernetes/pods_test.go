package kubernetes

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/run/executor"
)

// cluster puts a replacement of kubectl into PATH, which answers from its files: jobs, pods. Logs are empty.
type cluster struct{ dir string }

func newCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{t.TempDir()}
	c.write(t, "kubectl", `#!/bin/sh
case "$1 $2" in
"get jobs") cat "${0%/*}/jobs";;
"get pods") cat "${0%/*}/pods";;
esac
`)
	t.Setenv("PATH", c.dir+":"+os.Getenv("PATH"))
	return c
}

func (c cluster) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const onePod = `{"items": [{"metadata": {"name": "j-0-x", "labels": {"batch.kubernetes.io/job-name": "j"}, "annotations": {"batch.kubernetes.io/job-completion-index": "0"}%s},
 "spec": {"nodeName": "n1"}, "status": {"phase": %q%s}}]}`

// A pod removed by a user or a drain is not awaited: the Job counts its index as failed, and creates no other.
func TestRemovedPods(t *testing.T) {
	const none = `{"items": []}`
	for name, tt := range map[string]struct {
		job, pods string
		want      executor.State
	}{
		"not yet created":       {"{}", none, executor.Waiting},
		"running":               {"{}", fmt.Sprintf(onePod, "", "Running", ""), executor.Running},
		"being removed":         {"{}", fmt.Sprintf(onePod, `, "deletionTimestamp": "2026-11-24T08:00:00Z"`, "Running", ""), executor.Cancelled},
		"removed":               {`{"failedIndexes": "0"}`, none, executor.Lost},
		"removed when it ended": {`{"completedIndexes": "0"}`, none, executor.Lost},
		"another pod removed":   {`{"failedIndexes": "1,3-4"}`, none, executor.Waiting},
		"drained": {"{}", fmt.Sprintf(onePod, `, "deletionTimestamp": "2026-11-24T08:00:00Z"`, "Running",
			`, "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}]`), executor.Lost},
		"preempted": {
			"{}",
			fmt.Sprintf(onePod, "", "Failed", `, "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]`),
			executor.Preempted,
		},
		"evicted":  {"{}", fmt.Sprintf(onePod, "", "Failed", `, "reason": "Evicted"`), executor.Lost},
		"too long": {"{}", fmt.Sprintf(onePod, "", "Failed", `, "reason": "DeadlineExceeded"`), executor.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.write(t, "jobs", `{"items": [{"metadata": {"name": "j"}, "status": `+tt.job+`}]}`)
			c.write(t, "pods", tt.pods)
			e, err := New("", "skerry:1", "", reads{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			poll := func() executor.Status {
				found, err := e.Poll(t.Context(), []executor.Submission{{Ref: "j", Tasks: []int{7}}})
				if err != nil {
					t.Fatal(err)
				}
				return found[7]
			}
			poll() // starts to read the pod's log, if any
			e.collecting.Wait()
			if got := poll(); got.State != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

// A Job that a user removes is reported as such, and not as a pod that was removed.
func TestRemovedJobs(t *testing.T) {
	c := newCluster(t)
	c.write(t, "jobs", `{"items": []}`)
	c.write(t, "pods", `{"items": []}`)
	e, err := New("", "skerry:1", "", reads{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	found, err := e.Poll(t.Context(), []executor.Submission{{Ref: "j", Tasks: []int{7}}})
	if err != nil || found[7] != (executor.Status{State: executor.Lost, Reason: "the Job j was removed with all its pods"}) {
		t.Errorf("%+v (%v)", found, err)
	}
}

// Missing permissions are reported before submission.
func TestNoPermission(t *testing.T) {
	c := newCluster(t)
	for _, tt := range []struct{ denied, results, says string }{
		{"jobs.batch", "", "no permission to create jobs.batch"},
		{"configmaps", "", "no permission to create configmaps"},
		{"pods/exec", "claim:results", "no permission to create pods/exec"},
	} {
		// Like kubectl: the answer on its output, and a non-zero exit code.
		c.write(t, "kubectl", "#!/bin/sh\nif [ \"$4\" = "+tt.denied+" ]; then echo no; exit 1; fi\necho yes\n")
		e, err := New("", "skerry:1", tt.results, reads{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.denied, err, tt.says)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// reads parses the output of workers, and stores nothing.
type reads struct{ home }

func (reads) ReceiveResults(printed io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, printed)
	return "", err
}
