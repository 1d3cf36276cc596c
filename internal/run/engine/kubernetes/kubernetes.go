// Package kubernetes has tasks done by a Kubernetes cluster, through kubectl: a batch is an Indexed
// Job, a task one index of it in a pod that has a node for itself. The plan goes in as a ConfigMap, and
// results come out of the pods' logs, so that no storage is shared.
package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/run/engine"
)

// Engine is the cluster of kubectl's current context.
type Engine struct {
	// Namespace is where Jobs are made, "" for the context's own.
	Namespace string
	// Image has skerry in its PATH, and the databases.
	Image string

	home   engine.Home
	client engine.Client

	ctx     context.Context // of the logs that are read; Close ends it
	stop    context.CancelFunc
	reading sync.WaitGroup

	mu   sync.Mutex
	logs map[string]*log // by pod
}

// log is what is read of a pod's log.
type log struct {
	over bool // it was read to its end
	said string
	err  error
}

// New returns the cluster that this machine's kubectl speaks to.
func New(namespace, image string, home engine.Home) *Engine {
	e := &Engine{Namespace: namespace, Image: image, home: home, logs: map[string]*log{},
		client: engine.Client{Mend: "install kubectl, and give it a context that reaches the cluster"}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// Limits of a Job: its ConfigMap has a key for each task and may not be larger than 1 MiB.
const (
	mostTasks = 500
	mostPlan  = 1 << 20
	mostTotal = 5000
)

// Check asks whether Jobs may be made.
func (e *Engine) Check(ctx context.Context) (engine.Limits, error) {
	if e.Image == "" {
		return engine.Limits{}, advice.With(errors.New("pods need an image with skerry and the databases"), "name it with --image; docs/engines.md tells how it is made")
	}
	for _, what := range []string{"jobs.batch", "configmaps"} {
		out, err := e.kubectl(ctx, nil, "auth", "can-i", "create", what)
		if answer := strings.TrimSpace(string(out)); answer == "no" {
			return engine.Limits{}, advice.With(fmt.Errorf("the cluster does not let this user create %s", what), "ask for the right, or give another namespace: --on kubernetes:NAMESPACE")
		}
		if err != nil {
			return engine.Limits{}, fmt.Errorf("asking the cluster: %w", err)
		}
	}
	return engine.Limits{Batch: mostTasks, Total: mostTotal}, nil
}

func (e *Engine) kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return e.client.Run(ctx, stdin, "kubectl", e.flags(args...)...)
}

func (e *Engine) flags(args ...string) []string {
	if e.Namespace != "" {
		return append([]string{"--namespace", e.Namespace}, args...)
	}
	return args
}

// Submit makes a Job, and then the ConfigMap that its pods wait for: it belongs to the Job, and goes with it.
func (e *Engine) Submit(ctx context.Context, b engine.Batch) (engine.Submission, error) {
	plan, err := e.plan(b)
	if err != nil {
		return engine.Submission{}, err
	}
	var job bytes.Buffer
	if err := writeJob(&job, e, b); err != nil {
		return engine.Submission{}, err
	}
	uid, err := e.kubectl(ctx, &job, "create", "-f", "-", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return engine.Submission{}, fmt.Errorf("making the Job: %w", err)
	}
	var config bytes.Buffer
	if err := writeConfig(&config, b, strings.TrimSpace(string(uid)), plan); err != nil {
		return engine.Submission{}, err
	}
	if _, err := e.kubectl(ctx, &config, "create", "-f", "-"); err != nil {
		_, undone := e.kubectl(ctx, nil, "delete", "job", jobName(b), "--wait=false")
		return engine.Submission{}, errors.Join(fmt.Errorf("making the Job's ConfigMap: %w", err), undone)
	}
	return b.As(jobName(b), len(b.Tasks)), nil
}

// plan packs the plan of a batch.
func (e *Engine) plan(b engine.Batch) ([]byte, error) {
	plan, err := e.home.Plan(b.Trials())
	if err == nil && len(plan)*4/3 > mostPlan*9/10 {
		err = advice.With(fmt.Errorf("the plan and the files of the experiment are %d KiB, and a ConfigMap holds 1 MiB", len(plan)>>10), "split the experiment")
	}
	return plan, err
}

// Cancel removes the Jobs with their pods.
func (e *Engine) Cancel(ctx context.Context, of []engine.Submission) error {
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

// Print writes both manifests.
func (e *Engine) Print(w io.Writer, b engine.Batch) error {
	plan, err := e.plan(b)
	if err == nil {
		err = writeJob(w, e, b)
	}
	if err == nil {
		_, err = io.WriteString(w, "---\n")
	}
	if err == nil {
		err = writeConfig(w, b, "", plan)
	}
	return err
}

// Said is the end of a task's log.
func (e *Engine) Said(_ string, of engine.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := ""
	for pod, l := range e.logs {
		if index, is := podIndex(pod, of.Ref); is && index < len(of.Tasks) && of.Tasks[index] == task {
			lines := strings.Split(l.said, "\n")
			last = lines[len(lines)-1]
			if l.err != nil {
				last = l.err.Error()
			}
		}
	}
	return last
}

// Close ends the reading of logs, and waits for it. The cluster goes on by itself.
func (e *Engine) Close() error {
	e.stop()
	e.reading.Wait()
	return nil
}

// read takes results out of a pod's log as they come, until it ends; it is begun once a pod, and again where
// the connection broke.
func (e *Engine) read(pod string) {
	if e.logs[pod] != nil {
		return
	}
	l := &log{}
	e.logs[pod] = l
	e.reading.Go(func() {
		cmd := exec.CommandContext(e.ctx, "kubectl", e.flags("logs", "--follow", pod)...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		var said string
		if err == nil {
			said, err = e.home.Receive(out)
			err = errors.Join(err, cmd.Wait())
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		l.over, l.said, l.err = true, said, err
	})
}
