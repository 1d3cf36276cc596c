package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
)

// Shell returns the command that runs a line of POSIX shell on the machine, or ErrNoShell.
func (m Entry) Shell(line string) ([]string, error) {
	switch {
	case m.SSH != nil:
		// The login shell may be any shell.
		return append(m.SSH.command(), "exec /bin/sh -c "+Quote(line)), nil
	case m.Kubernetes != nil:
		return append(m.Kubernetes.exec(m.pod), "/bin/sh", "-c", line), nil
	}
	return nil, fmt.Errorf("running a command on %s: %w", m.Name, ErrNoShell)
}

// Terminal is Shell with a terminal on the machine.
func (m Entry) Terminal(line string) ([]string, error) {
	argv, err := m.Shell(line)
	switch {
	case err != nil:
		return nil, err
	case m.SSH != nil: // the last of -T and -t holds
		return slices.Insert(argv, slices.Index(argv, "-T")+1, "-t"), nil
	}
	return slices.Insert(argv, slices.Index(argv, "exec")+1, "-t"), nil
}

// Quote quotes a text for POSIX shells.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// connectSeconds is the connection timeout, so that unreachable machines are reported soon.
const connectSeconds = 15

func (s SSH) command() []string {
	args := []string{"ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=" + strconv.Itoa(connectSeconds)}
	for _, o := range s.Options {
		args = append(args, "-o", o)
	}
	for _, given := range [][2]string{{"-F", s.Config}, {"-i", s.Identity}, {"-l", s.User}} {
		if given[1] != "" {
			args = append(args, given[0], given[1])
		}
	}
	if s.Port != 0 {
		args = append(args, "-p", strconv.Itoa(s.Port))
	}
	return append(args, s.Host)
}

// Expand returns the machines, with each Kubernetes entry replaced by its pods. Names are unique.
func (f File) Expand(ctx context.Context) ([]Entry, error) {
	var all []Entry
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

// pods returns the running pods.
func (k Kubernetes) pods(ctx context.Context) ([]pod, error) {
	args := append(k.flags(), "get", "pods", "--selector", k.Selector, "--output", "json")
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, advice.With(fmt.Errorf("querying kubectl for the pods of %s: %w: %s", k.Selector, err, strings.TrimSpace(said.String())), "try: kubectl %s", strings.Join(args, " "))
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
