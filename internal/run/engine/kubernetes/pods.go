package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/run/engine"
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

// Poll asks for the pods of the Jobs, and reads the logs of those that run or have ended. A task is over when its
// log was read.
func (e *Engine) Poll(ctx context.Context, of []engine.Submission) (map[int]engine.Status, error) {
	found := map[int]engine.Status{}
	if len(of) == 0 {
		return found, nil
	}
	byRef, refs := map[string]engine.Submission{}, make([]string, 0, len(of))
	for _, s := range of {
		byRef[s.Ref] = s
		refs = append(refs, s.Ref)
	}
	slices.Sort(refs)
	there, err := e.jobs(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, s := range of {
		if there[s.Ref] {
			for _, id := range s.Tasks {
				found[id] = engine.Status{State: engine.Waiting}
			}
		}
	}
	var list struct {
		Items []pod `json:"items"`
	}
	out, err := e.kubectl(ctx, nil, "get", "pods", "--selector", "batch.kubernetes.io/job-name in ("+strings.Join(refs, ",")+")", "--output", "json")
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for pods: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range list.Items {
		s := byRef[p.Metadata.Labels["batch.kubernetes.io/job-name"]]
		i, err := strconv.Atoi(p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"])
		if err != nil || i < 0 || i >= len(s.Tasks) {
			continue
		}
		status := stateOf(p)
		if why := image(p); why != "" {
			return nil, advice.With(fmt.Errorf("%w: the image %s cannot be had on %s: %s", engine.ErrHopeless, e.Image, p.Spec.Node, why), "give one that the nodes can pull: --image")
		}
		found[s.Tasks[i]] = e.heard(p, status)
	}
	return found, nil
}

// jobs are which of the Jobs there are: one that was removed is done by nobody.
func (e *Engine) jobs(ctx context.Context, refs []string) (map[string]bool, error) {
	out, err := e.kubectl(ctx, nil, append([]string{"get", "job", "--ignore-not-found", "--output", "name"}, refs...)...)
	if err != nil {
		return nil, fmt.Errorf("asking for Jobs: %w", err)
	}
	there := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		there[name[strings.LastIndex(name, "/")+1:]] = true
	}
	return there, nil
}

// heard is how a task stands that has a pod: what has ended still runs until its log was read.
func (e *Engine) heard(p pod, status engine.Status) engine.Status {
	if status.State == engine.Waiting || status.State == engine.Lost {
		return status
	}
	e.read(p.Metadata.Name)
	l := e.logs[p.Metadata.Name]
	switch {
	case !status.State.Over() && l.over: // the connection broke
		delete(e.logs, p.Metadata.Name)
	case status.State.Over() && !l.over:
		status.State = engine.Running
	}
	return status
}

// stateOf is how a task stands by its pod.
func stateOf(p pod) engine.Status {
	s := engine.Status{Where: p.Spec.Node, Why: strings.ToLower(p.Status.Phase)}
	disrupted := ""
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" {
			disrupted, s.Why = c.Reason, strings.TrimSpace(c.Reason+" "+c.Message)
		}
	}
	if p.Status.Reason != "" && disrupted == "" {
		s.Why = strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	}
	switch {
	case p.Status.Phase == "Succeeded":
		s.State = engine.Ended
	case disrupted == "PreemptionByScheduler":
		s.State = engine.Preempted
	case disrupted != "" || p.Status.Reason == "Evicted" || p.Status.Reason == "NodeLost":
		s.State = engine.Lost
	case p.Status.Reason == "DeadlineExceeded":
		s.State = engine.TimedOut
	case p.Status.Phase == "Failed":
		s.State = engine.Failed
	case p.Metadata.Deleted != "":
		s.State = engine.Cancelled
	case p.Status.Phase == "Running":
		s.State = engine.Running
	default:
		s.State = engine.Waiting
	}
	return s
}

// image is why a pod's image cannot be had, "" where it can.
func image(p pod) string {
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
