// Package kubernetes runs tasks on a Kubernetes cluster through kubectl. A batch is an Indexed Job, a task
// one index of it in a pod with its own node. A ConfigMap contains the plan. Results come from the
// pods' logs, which needs no shared storage, or from a claim or a bucket if the cluster does not keep logs.
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
	// Namespace of the Jobs, "" for the context's.
	Namespace string
	// Image has skerry in its PATH, and the databases.
	Image string

	home   executor.RunDirectory
	store  store // of results, nil if they come from the pods' logs
	client executor.Client

	ctx        context.Context // of running collections; Close cancels it
	stop       context.CancelFunc
	collecting sync.WaitGroup

	mu   sync.Mutex
	pods map[string]*podOutput
}

// New returns the cluster of this machine's kubectl. results is "" or "logs", "claim:NAME", or
// "s3://BUCKET/PREFIX".
func New(namespace, image, results string, home executor.RunDirectory) (*Executor, error) {
	e := &Executor{Namespace: namespace, Image: image, home: home, pods: map[string]*podOutput{},
		client: executor.Client{Advice: "install kubectl, and set a context for the cluster"}}
	var err error
	if e.store, err = e.openStore(results); err != nil {
		return nil, err
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Limits of a Job: its ConfigMap has two keys per task.
const (
	maxBatch = 500
	maxTotal = 5000
)

// Check verifies the permission to create Jobs.
func (e *Executor) Check(ctx context.Context) (executor.Capacity, error) {
	if e.Image == "" {
		return executor.Capacity{}, advice.With(errors.New("no image with skerry and the databases given"),
			"pass --image; see docs/engines.md for how to build it")
	}
	for _, what := range []string{"jobs.batch", "configmaps"} {
		out, err := e.kubectl(ctx, nil, "auth", "can-i", "create", what)
		if answer := strings.TrimSpace(string(out)); answer == "no" {
			return executor.Capacity{}, advice.With(fmt.Errorf("no permission to create %s", what),
				"request the permission, or use another namespace: --on kubernetes:NAMESPACE")
		}
		if err != nil {
			return executor.Capacity{}, fmt.Errorf("check permissions: %w", err)
		}
	}
	limits := executor.Capacity{Batch: maxBatch, Total: maxTotal}
	if e.store != nil {
		var err error
		if limits.Warning, err = e.store.check(ctx); err != nil {
			return executor.Capacity{}, err
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

// Submit creates a Job and then its ConfigMap, which the Job owns. Pods wait for the ConfigMap.
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
		return executor.Submission{}, fmt.Errorf("create Job: %w", err)
	}
	var config bytes.Buffer
	err = e.writeConfig(ctx, &config, b, strings.TrimSpace(string(uid)), plan)
	if err == nil {
		_, err = e.kubectl(ctx, &config, "create", "-f", "-")
	}
	if err != nil {
		_, undone := e.kubectl(ctx, nil, "delete", "job", b.Name(), "--wait=false")
		return executor.Submission{}, errors.Join(fmt.Errorf("create ConfigMap: %w", err), undone)
	}
	return b.Submission(b.Name(), len(b.Tasks)), nil
}

func (e *Executor) Cancel(ctx context.Context, of []executor.Submission) error {
	args := []string{"delete", "job", "--ignore-not-found", "--wait=false"}
	for _, s := range of {
		args = append(args, s.Ref)
	}
	if len(of) == 0 {
		return nil
	}
	if _, err := e.kubectl(ctx, nil, args...); err != nil {
		return fmt.Errorf("delete Jobs: %w", err)
	}
	return nil
}

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

// Find finds the Job and makes it the owner of its printed ConfigMap, which could not know the Job's UID.
// Users without the permission to patch ConfigMaps must delete it themselves.
func (e *Executor) Find(ctx context.Context, name string) (string, error) {
	uid, err := e.kubectl(ctx, nil, "get", "job", name, "--ignore-not-found", "--output", "jsonpath={.metadata.uid}")
	if err != nil {
		return "", fmt.Errorf("look up Job %s: %w", name, err)
	}
	if len(uid) == 0 {
		return "", nil
	}
	owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": ownerReferences(name, string(uid))}})
	if err != nil {
		return "", fmt.Errorf("encode the owner of a ConfigMap: %w", err)
	}
	_, _ = e.kubectl(ctx, nil, "patch", "configmap", name, "--type", "merge", "--patch", string(owner))
	return name, nil
}

// LastOutput returns the last line of a task's log, or the error of its collection.
func (e *Executor) LastOutput(_ string, of executor.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := ""
	for pod, t := range e.pods {
		if index, is := podIndex(pod, of.Ref); is && index < len(of.Tasks) && of.Tasks[index] == task {
			last = executor.LastLine(t.output)
			if t.err != nil {
				last = t.err.Error()
			}
		}
	}
	return last
}

// Close stops reading logs; the cluster's Jobs continue.
func (e *Executor) Close() error {
	e.stop()
	e.collecting.Wait()
	if e.store == nil {
		return nil
	}
	return e.store.close()
}
