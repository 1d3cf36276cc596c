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

// pod is as much of a pod as is asked for.
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

// Poll asks for the pods of the Jobs, and takes in what those leave that run or have ended. A task is over when
// that was taken in.
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
	out, err := e.kubectl(
		ctx, nil, "get", "pods", "--selector", "batch.kubernetes.io/job-name in ("+strings.Join(refs, ",")+")",
		"--output", "json",
	)
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for pods: %w", err)
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
			return nil, advice.With(
				fmt.Errorf("%w: the image %s cannot be had on %s: %s", executor.ErrFatal, e.Image, p.Spec.Node, why),
				"give one that the nodes can pull: --image",
			)
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
			default: // what it left may be in the store
				found[id] = e.trackOutput(s.Ref+"-"+strconv.Itoa(i)+"-gone", s.Ref, i, lostStatus(s.Ref, there))
			}
		}
	}
	return found, nil
}

// lostStatus is how a task stands that has no pod and gets none: somebody has removed the pod, or the whole Job.
func lostStatus(job string, there bool) executor.Status {
	if there {
		return executor.Status{State: executor.Lost, Reason: "its pod was removed"}
	}
	return executor.Status{State: executor.Lost, Reason: "the Job " + job + " was removed with all its pods"}
}

// listJobs are those of the Jobs that there are, each with the indexes that have ended: one that was removed is done by nobody.
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
		return nil, fmt.Errorf("asking for Jobs: %w", err)
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

// podStatus is how a task stands by its pod.
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

// imageError is why a pod's image cannot be had, "" where it can.
func imageError(p pod) string {
	for _, c := range p.Status.Containers {
		w := c.State.Waiting
		if w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}, w.Reason) {
			return w.Reason + ": " + w.Message
		}
	}
	return ""
}

// podIndex is the index of a pod of a Job: pods are called JOB-INDEX-RANDOM.
func podIndex(pod, job string) (int, bool) {
	rest, is := strings.CutPrefix(pod, job+"-")
	index, _, cut := strings.Cut(rest, "-")
	i, err := strconv.Atoi(index)
	return i, is && cut && err == nil
}

// podOutput is what was taken in of a pod: its log, and where results come by a store what is there.
type podOutput struct {
	done   bool // there is no more
	tries  int
	output string
	err    error
}

// maxFetches are how often results are fetched from a store before their task counts as ended without them.
const maxFetches = 20

// trackOutput is how a task stands that has a pod: what has ended still runs until what it left was taken in.
func (e *Executor) trackOutput(pod, job string, index int, status executor.Status) executor.Status {
	over := status.State.Final()
	switch {
	case status.State == executor.Waiting, e.store != nil && !over:
		return status
	case e.store == nil && status.State == executor.Lost: // its log went with its node
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
		e.collect(t, pod, job, index, executor.Lost) // its log was read
	}
	return status
}

// collect begins to take in what a pod has left or, where that is its log, leaves.
func (e *Executor) collect(t *podOutput, pod, job string, index int, state executor.State) {
	t.tries++
	e.collecting.Go(func() {
		var said string
		var err error
		if state != executor.Lost {
			said, err = e.readLog(pod)
		}
		if e.store != nil {
			err = e.fetchResult(e.ctx, resultKey(job, index))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if said != "" {
			t.output = said
		}
		t.done, t.err = true, err
	})
}

// readLog takes results out of a pod's log as they come, until it ends, and returns the end of the rest.
func (e *Executor) readLog(pod string) (string, error) {
	cmd := exec.CommandContext(e.ctx, "kubectl", e.flags("logs", "--follow", pod)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	said, err := e.home.ReceiveResults(out)
	return said, errors.Join(err, cmd.Wait())
}

// fetchResult takes in what a task has left in the store, and removes it there. A task that left nothing has none.
func (e *Executor) fetchResult(ctx context.Context, key string) error {
	from, into := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := e.store.get(ctx, key, into)
		got <- errors.Join(err, into.CloseWithError(err))
	}()
	_, err := e.home.ReceiveResults(from)
	_ = from.CloseWithError(err) // ends a get that nobody reads
	gets := <-got
	if errors.Is(gets, errNoResult) {
		return nil
	}
	if err = errors.Join(gets, err); err != nil {
		return err
	}
	return e.store.remove(ctx, key)
}
