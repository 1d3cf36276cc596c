package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"skerry/internal/base/advice"
)

// Expand is the file's machines one by one: those under kubernetes are asked for by kubectl. Names
// are unique.
func (f File) Expand(ctx context.Context) ([]Machine, error) {
	var all []Machine
	for _, m := range f.Machines {
		if m.Kubernetes == nil {
			all = append(all, m)
			continue
		}
		pods, err := m.Kubernetes.pods(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			one := m
			one.pod, one.Addr = p.Metadata.Name, p.Status.PodIP
			one.Name = strings.TrimSuffix(m.Name+"-"+p.Spec.NodeName, "-")
			if m.Name == "" {
				one.Name = p.Spec.NodeName
			}
			all = append(all, one)
		}
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.Name] {
			return nil, advice.With(fmt.Errorf("two machines are called %s", m.Name), "give the entries under kubernetes names, and let a selector match one pod a machine")
		}
		seen[m.Name] = true
	}
	return all, nil
}

// pod is as much of a pod as is asked for.
type pod struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

// pods are those that run.
func (k Kubernetes) pods(ctx context.Context) ([]pod, error) {
	args := append(k.flags(), "get", "pods", "--selector", k.Selector, "--output", "json")
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, advice.With(fmt.Errorf("asking kubectl for the pods of %s: %w: %s", k.Selector, err, strings.TrimSpace(said.String())), "try: kubectl %s", strings.Join(args, " "))
	}
	var list struct {
		Items []pod `json:"items"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("reading kubectl's list of pods: %w", err)
	}
	var running []pod
	for _, p := range list.Items {
		if p.Status.Phase == "Running" {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("no pod of %s runs: %d are there", k.Selector, len(list.Items))
	}
	return running, nil
}

func (k Kubernetes) flags() (flags []string) {
	for _, given := range [][2]string{{"--context", k.Context}, {"--namespace", k.Namespace}} {
		if given[1] != "" {
			flags = append(flags, given[0], given[1])
		}
	}
	return flags
}

func (k Kubernetes) exec(pod string) []string {
	args := append([]string{"kubectl"}, k.flags()...)
	args = append(args, "exec", "-i", pod)
	if k.Container != "" {
		args = append(args, "--container", k.Container)
	}
	return append(args, "--")
}
