package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

type pod struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Deleted     string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Node string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		Containers []struct {
			State struct {
				Waiting *struct {
					Reason  string `json:"reason"`
					Message string `json:"message"`
				} `json:"waiting"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// Poll reads the pods of the Jobs, and collects the output of running and ended ones. A task is final when
// its output has been collected.
func (e *Executor) Poll(ctx context.Context, of []executor.Submission) (map[int]executor.Status, error) {
	found := map[int]executor.Status{}
	if len(of) == 0 {
		return found, nil
	}
	byRef, refs := map[string]executor.Submission{}, make([]string, 0, len(of))
	for _, s := range of {
		byRef[s.Ref] = s
		refs = append(refs, s.Ref)
	}
	slices.Sort(refs)
	ended, err := e.listJobs(ctx, refs)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []pod `json:"items"`
	}
	out, err := e.kubectl(ctx, nil, "get", "pods", "--selector", "batch.kubernetes.io/job-name in ("+strings.Join(refs, ",")+")",
		"--output", "json")
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[int]bool{}
	for _, p := range list.Items {
		s := byRef[p.Metadata.Labels["batch.kubernetes.io/job-name"]]
		i, err := strconv.Atoi(p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"])
		if err != nil || i < 0 || i >= len(s.Tasks) {
			continue
		}
		status := podStatus(p)
		if why := imageError(p); why != "" {
			return nil, advice.With(fmt.Errorf("%w: cannot pull image %s on %s: %s", executor.ErrFatal, e.Image, p.Spec.Node, why),
				"pass an image that the nodes can pull: --image")
		}
		found[s.Tasks[i]] = e.trackOutput(p.Metadata.Name, s.Ref, i, status)
		seen[s.Tasks[i]] = true
	}
	for _, s := range of {
		over, there := ended[s.Ref]
		for i, id := range s.Tasks {
			switch {
			case seen[id]:
			case there && !over[i]:
				found[id] = executor.Status{State: executor.Waiting}
			default: // its results may be in the store
				found[id] = e.trackOutput(s.Ref+"-"+strconv.Itoa(i)+"-gone", s.Ref, i, lostStatus(s.Ref, there))
			}
		}
	}
	return found, nil
}

// lostStatus is the status of a task whose pod, or whole Job, a user has deleted.
func lostStatus(job string, there bool) executor.Status {
	if there {
		return executor.Status{State: executor.Lost, Reason: "its pod was removed"}
	}
	return executor.Status{State: executor.Lost, Reason: "the Job " + job + " was removed with all its pods"}
}

// listJobs returns the existing Jobs among refs, each with the indexes that have ended.
func (e *Executor) listJobs(ctx context.Context, refs []string) (map[string]map[int]bool, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Status struct {
				Completed string `json:"completedIndexes"`
				Failed    string `json:"failedIndexes"`
			} `json:"status"`
		} `json:"items"`
	}
	out, err := e.kubectl(ctx, nil, "get", "jobs", "--selector", "app=skerry", "--output", "json")
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	ended := map[string]map[int]bool{}
	for _, job := range list.Items {
		if !slices.Contains(refs, job.Metadata.Name) {
			continue
		}
		over := map[int]bool{}
		for _, i := range executor.ParseIndexes(job.Status.Completed + "," + job.Status.Failed) {
			over[i] = true
		}
		ended[job.Metadata.Name] = over
	}
	return ended, nil
}

func podStatus(p pod) executor.Status {
	s := executor.Status{Machine: p.Spec.Node, Reason: strings.ToLower(p.Status.Phase)}
	disrupted := ""
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" {
			disrupted, s.Reason = c.Reason, strings.TrimSpace(c.Reason+" "+c.Message)
		}
	}
	if p.Status.Reason != "" && disrupted == "" {
		s.Reason = strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	}
	switch {
	case p.Status.Phase == "Succeeded":
		s.State = executor.Ended
	case disrupted == "PreemptionByScheduler":
		s.State = executor.Preempted
	case disrupted != "" || p.Status.Reason == "Evicted" || p.Status.Reason == "NodeLost":
		s.State = executor.Lost
	case p.Status.Reason == "DeadlineExceeded":
		s.State = executor.TimedOut
	case p.Status.Phase == "Failed":
		s.State = executor.Failed
	case p.Metadata.Deleted != "":
		s.State = executor.Cancelled
	case p.Status.Phase == "Running":
		s.State = executor.Running
	default:
		s.State = executor.Waiting
	}
	return s
}

func imageError(p pod) string {
	for _, c := range p.Status.Containers {
		w := c.State.Waiting
		if w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}, w.Reason) {
			return w.Reason + ": " + w.Message
		}
	}
	return ""
}

// podIndex parses the name of a Job's pod: JOB-INDEX-RANDOM.
func podIndex(pod, job string) (int, bool) {
	rest, is := strings.CutPrefix(pod, job+"-")
	index, _, cut := strings.Cut(rest, "-")
	i, err := strconv.Atoi(index)
	return i, is && cut && err == nil
}

type podOutput struct {
	done   bool
	tries  int
	output string
	err    error
}

// maxFetches is how often results are fetched from a store before their task counts as ended without them.
const maxFetches = 20

// trackOutput collects a pod's output. It reports an ended task as running until that is done.
func (e *Executor) trackOutput(pod, job string, index int, status executor.Status) executor.Status {
	over := status.State.Final()
	switch {
	case status.State == executor.Waiting, e.store != nil && !over:
		return status
	case e.store == nil && status.State == executor.Lost: // its log is lost too
		return status
	}
	t := e.pods[pod]
	if t == nil {
		t = &podOutput{}
		e.pods[pod] = t
		e.collect(t, pod, job, index, status.State)
	}
	switch {
	case !t.done && over:
		status.State = executor.Running
	case t.done && !over: // the connection broke
		delete(e.pods, pod)
	case t.done && t.err != nil && e.store != nil && t.tries < maxFetches:
		status.State, status.Reason = executor.Running, t.err.Error()
		t.done = false
		e.collect(t, pod, job, index, executor.Lost) // skips the log, which was read
	}
	return status
}

func (e *Executor) collect(t *podOutput, pod, job string, index int, state executor.State) {
	t.tries++
	e.collecting.Go(func() {
		var output string
		var err error
		if state != executor.Lost {
			output, err = e.readLog(pod)
		}
		if e.store != nil {
			err = e.fetchResult(e.ctx, resultKey(job, index))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if output != "" {
			t.output = output
		}
		t.done, t.err = true, err
	})
}

// readLog stores results from a pod's log as they arrive, and returns the end of the other output.
func (e *Executor) readLog(pod string) (string, error) {
	cmd := exec.CommandContext(e.ctx, "kubectl", e.flags("logs", "--follow", pod)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	output, err := e.home.ReceiveResults(out)
	return output, errors.Join(err, cmd.Wait())
}

// fetchResult stores a task's results from the store, and removes them there. A missing result is not an
// error.
func (e *Executor) fetchResult(ctx context.Context, key string) error {
	from, into := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := e.store.get(ctx, key, into)
		got <- errors.Join(err, into.CloseWithError(err))
	}()
	_, err := e.home.ReceiveResults(from)
	_ = from.CloseWithError(err) // ends a get without a reader
	getErr := <-got
	if errors.Is(getErr, errNoResult) {
		return nil
	}
	if err = errors.Join(getErr, err); err != nil {
		return err
	}
	return e.store.remove(ctx, key)
}
