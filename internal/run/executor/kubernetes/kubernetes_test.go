package kubernetes

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"skerry/internal/run/executor"
)

type home struct{}

func (home) PackPlan([]int) ([]byte, error)           { return []byte("plan"), nil }
func (home) ReceiveResults(io.Reader) (string, error) { return "", nil }

// The manifests are YAML and contain the requirements of a trial.
func TestManifests(t *testing.T) {
	var w strings.Builder
	b := executor.Batch{
		Run: "quick_start", Number: 3, Token: "ABCDEFGHIJKLMNOP",
		Tasks:        []executor.Task{{ID: 5, Trials: []int{5}}, {ID: 6, Trials: []int{7, 8}}},
		ExpectedTime: time.Minute, MemoryBytes: 3 << 20, Rerun: true, Exclude: []string{"n1", "n2"},
	}
	e, err := New("", "skerry:1", "", home{})
	if err == nil {
		_, err = e.Print(&w, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(w.String(), "---\n")[1:]
	var all [2]map[string]any
	for i, part := range parts {
		if err := yaml.Unmarshal([]byte(part), &all[i]); err != nil {
			t.Fatalf("%v\n%s", err, part)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"name":"skerry-abcdefghij-3"`, `"completions":2`, `"activeDeadlineSeconds":780`, `"task-1":"7,8"`,
		`"--suspect"`, `"memory":"3Mi"`, `"plan":"cGxhbg=="`, `"run":"quick-start"`,
		`"@/skerry/task-$(JOB_COMPLETION_INDEX)"`, `"topologyKey":"kubernetes.io/hostname"`, `"name":"SKERRY_MACHINE"`,
		`"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]},{"key":"metadata.name","operator":"NotIn","values":["n2"]}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestStatesOfPods(t *testing.T) {
	for text, want := range map[string]executor.State{
		`{"status": {"phase": "Pending"}}`:                              executor.Waiting,
		`{"status": {"phase": "Running"}}`:                              executor.Running,
		`{"status": {"phase": "Succeeded"}}`:                            executor.Ended,
		`{"status": {"phase": "Failed"}}`:                               executor.Failed,
		`{"status": {"phase": "Failed", "reason": "DeadlineExceeded"}}`: executor.TimedOut,
		`{"status": {"phase": "Failed", "reason": "Evicted"}}`:          executor.Lost,
		`{"status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}}`:                                           executor.Preempted,
		`{"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]}}`: executor.Lost,
		`{"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}`:                                                                                                     executor.Cancelled,
	} {
		var p pod
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if got := podStatus(p).State; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestUnavailableImagesAreReported(t *testing.T) {
	var p pod
	if err := json.Unmarshal(
		[]byte(`{"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}}}]}}`),
		&p,
	); err != nil {
		t.Fatal(err)
	}
	if got := imageError(p); got != "ImagePullBackOff: no such host" {
		t.Errorf("%q", got)
	}
}

func TestPodIndex(t *testing.T) {
	if i, ok := podIndex("skerry-x-1-12-abcde", "skerry-x-1"); i != 12 || !ok {
		t.Errorf("%d, %v", i, ok)
	}
	if _, ok := podIndex("skerry-x-11-2-abcde", "skerry-x-1"); ok {
		t.Error("a pod of another Job")
	}
}
