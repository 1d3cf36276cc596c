// Package kubernetes has tasks done by a Kubernetes cluster, through kubectl: a batch is an Indexed
// Job, a task one index of it in a pod that has a node for itself. The plan goes in as a ConfigMap, and
// results come out of the pods' logs, so that no storage is shared; or by a claim or a bucket, where logs are not kept well.
package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

// Executor is the cluster of kubectl's current context.
type Executor struct {
	// Namespace is where Jobs are made, "" for the context's own.
	Namespace string
	// Image has skerry in its PATH, and the databases.
	Image string

	home   executor.RunDirectory
	store  store // of results, nil where they come in the pods' logs
	client executor.Client

	ctx        context.Context // of what is read of pods; Close ends it
	stop       context.CancelFunc
	collecting sync.WaitGroup

	mu   sync.Mutex
	pods map[string]*podOutput
}

// New returns the cluster that this machine's kubectl speaks to. Results are the way that results take: "" or "logs",
// "claim:NAME", or "s3://BUCKET/PREFIX".
func New(namespace, image, results string, home executor.RunDirectory) (*Executor, error) {
	e := &Executor{Namespace: namespace, Image: image, home: home, pods: map[string]*podOutput{},
		client: executor.Client{Advice: "install kubectl, and give it a context that reaches the cluster"}}
	var err error
	if e.store, err = e.openStore(results); err != nil {
		return nil, err
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Limits of a Job: its ConfigMap has two keys for each task.
const (
	maxBatch = 500
	maxTotal = 5000
)

// Check asks whether Jobs may be made.
func (e *Executor) Check(ctx context.Context) (executor.Limits, error) {
	if e.Image == "" {
		return executor.Limits{}, advice.With(
			errors.New("pods need an image with skerry and the databases"),
			"name it with --image; docs/engines.md tells how it is made",
		)
	}
	for _, what := range []string{"jobs.batch", "configmaps"} {
		out, err := e.kubectl(ctx, nil, "auth", "can-i", "create", what)
		if answer := strings.TrimSpace(string(out)); answer == "no" {
			return executor.Limits{}, advice.With(
				fmt.Errorf("the cluster does not let this user create %s", what),
				"ask for the right, or give another namespace: --on kubernetes:NAMESPACE",
			)
		}
		if err != nil {
			return executor.Limits{}, fmt.Errorf("asking the cluster: %w", err)
		}
	}
	limits := executor.Limits{Batch: maxBatch, Total: maxTotal}
	if e.store != nil {
		var err error
		if limits.Warning, err = e.store.check(ctx); err != nil {
			return executor.Limits{}, err
		}
	}
	return limits, nil
}

func (e *Executor) kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return e.client.Run(ctx, stdin, "kubectl", e.flags(args...)...)
}

func (e *Executor) flags(args ...string) []string {
	if e.Namespace != "" {
		return append([]string{"--namespace", e.Namespace}, args...)
	}
	return args
}

// Submit makes a Job, and then the ConfigMap that its pods wait for: it belongs to the Job, and goes with it.
func (e *Executor) Submit(ctx context.Context, b executor.Batch) (executor.Submission, error) {
	plan, err := e.home.PackPlan(b.Trials())
	if err != nil {
		return executor.Submission{}, err
	}
	var job bytes.Buffer
	if err := writeJob(&job, e, b); err != nil {
		return executor.Submission{}, err
	}
	uid, err := e.kubectl(ctx, &job, "create", "-f", "-", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return executor.Submission{}, fmt.Errorf("making the Job: %w", err)
	}
	var config bytes.Buffer
	err = e.writeConfig(ctx, &config, b, strings.TrimSpace(string(uid)), plan)
	if err == nil {
		_, err = e.kubectl(ctx, &config, "create", "-f", "-")
	}
	if err != nil {
		_, undone := e.kubectl(ctx, nil, "delete", "job", b.Name(), "--wait=false")
		return executor.Submission{}, errors.Join(fmt.Errorf("making the Job's ConfigMap: %w", err), undone)
	}
	return b.Submission(b.Name(), len(b.Tasks)), nil
}

// Cancel removes the Jobs with their pods.
func (e *Executor) Cancel(ctx context.Context, of []executor.Submission) error {
	args := []string{"delete", "job", "--ignore-not-found", "--wait=false"}
	for _, s := range of {
		args = append(args, s.Ref)
	}
	if len(of) == 0 {
		return nil
	}
	if _, err := e.kubectl(ctx, nil, args...); err != nil {
		return fmt.Errorf("removing Jobs: %w", err)
	}
	return nil
}

// Print writes both manifests: the Job's name is known before.
func (e *Executor) Print(w io.Writer, b executor.Batch) (string, error) {
	plan, err := e.home.PackPlan(b.Trials())
	var text bytes.Buffer
	if err == nil {
		text.WriteString("---\n")
		err = writeJob(&text, e, b)
	}
	if err == nil {
		text.WriteString("---\n")
		err = e.writeConfig(context.Background(), &text, b, "", plan)
	}
	if err == nil {
		_, err = text.WriteTo(w)
	}
	return b.Name(), err
}

// Find looks for the Job, and gives it its ConfigMap, so that this goes with it: who has printed it could not know the Job's UID. A
// user who may not change ConfigMaps removes it by hand.
func (e *Executor) Find(ctx context.Context, name string) (string, error) {
	uid, err := e.kubectl(ctx, nil, "get", "job", name, "--ignore-not-found", "--output", "jsonpath={.metadata.uid}")
	if err != nil {
		return "", fmt.Errorf("asking for the Job %s: %w", name, err)
	}
	if len(uid) == 0 {
		return "", nil
	}
	owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": ownerReferences(name, string(uid))}})
	if err != nil {
		return "", fmt.Errorf("naming the owner of a ConfigMap: %w", err)
	}
	_, _ = e.kubectl(ctx, nil, "patch", "configmap", name, "--type", "merge", "--patch", string(owner))
	return name, nil
}

// LastOutput is the end of a task's log.
func (e *Executor) LastOutput(_ string, of executor.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := ""
	for pod, t := range e.pods {
		if index, is := podIndex(pod, of.Ref); is && index < len(of.Tasks) && of.Tasks[index] == task {
			lines := strings.Split(strings.TrimSpace(t.output), "\n")
			last = lines[len(lines)-1]
			if t.err != nil {
				last = t.err.Error()
			}
		}
	}
	return last
}

// Close ends the reading of logs, and waits for it. The cluster goes on by itself.
func (e *Executor) Close() error {
	e.stop()
	e.collecting.Wait()
	if e.store == nil {
		return nil
	}
	return e.store.close()
}
