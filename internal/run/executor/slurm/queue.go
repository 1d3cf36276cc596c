package slurm

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

// Poll asks squeue for all tasks of the submissions, those that have ended in the last minutes
// among them; of older ones Slurm without accounting knows nothing.
func (e *Engine) Poll(ctx context.Context, of []executor.Submission) (map[int]executor.Status, error) {
	found := map[int]executor.Status{}
	if len(of) == 0 {
		return found, nil
	}
	byRef, refs := map[string]executor.Submission{}, make([]string, 0, len(of))
	for _, s := range of {
		byRef[s.Ref] = s
		refs = append(refs, s.Ref)
	}
	// Waiting elements of an array are one line, which names them by ranges.
	out, err := e.client.Run(ctx, nil, "squeue", "--noheader", "--states=all", "--format=%F|%K|%T|%N|%r|%A|%k", "--jobs="+strings.Join(refs, ","))
	if err != nil && !strings.Contains(err.Error(), "Invalid job id") {
		return nil, fmt.Errorf("asking for jobs: %w", err)
	}
	for line := range bytes.Lines(out) {
		f := strings.SplitN(strings.TrimRight(string(line), "\n"), "|", 7)
		if len(f) != 7 {
			continue
		}
		s, ours := byRef[f[0]]
		if !ours {
			continue
		}
		status := executor.Status{State: state(f[2]), Where: node(f[3]), Why: reason(f[2], f[4])}
		for _, i := range executor.Indexes(f[1]) {
			if i < 1 || i > len(s.Tasks) {
				continue
			}
			if e.output {
				status = e.heard(s.Ref+"_"+strconv.Itoa(i), f[5], f[6], status)
			}
			found[s.Tasks[i-1]] = status
			if status.State == executor.Failed && !e.output {
				if err := e.notShared(ctx, s.Ref, i, status.Where); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

// state is Slurm's word for a job's state, %T of squeue.
func state(slurm string) executor.State {
	switch slurm {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "SUSPENDED", "RESV_DEL_HOLD":
		return executor.Waiting
	case "RUNNING", "CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING":
		return executor.Running
	case "COMPLETED":
		return executor.Ended
	case "CANCELLED", "REVOKED":
		return executor.Cancelled
	case "PREEMPTED":
		return executor.Preempted
	case "TIMEOUT", "DEADLINE":
		return executor.TimedOut
	case "NODE_FAIL", "BOOT_FAIL":
		return executor.Lost
	}
	return executor.Failed // FAILED, OUT_OF_MEMORY and what later versions say
}

func reason(slurm, why string) string {
	if why == "None" || why == "" {
		return strings.ToLower(strings.ReplaceAll(slurm, "_", " "))
	}
	return why
}

func node(list string) string {
	if strings.HasPrefix(list, "(") {
		return ""
	}
	return list
}

// notShared asks why a task's program failed: one that did not see the run directory ends as none else does.
func (e *Engine) notShared(ctx context.Context, ref string, index int, where string) error {
	job := ref + "_" + strconv.Itoa(index)
	if e.checked[job] {
		return nil
	}
	e.checked[job] = true
	out, err := e.client.Run(ctx, nil, "scontrol", "--oneliner", "show", "job", job)
	if err != nil || !bytes.Contains(out, fmt.Appendf(nil, " ExitCode=%d:0", executor.NotShared)) {
		return nil // it failed in its own way, or Slurm has forgotten
	}
	return advice.With(fmt.Errorf("%w: the run directory is not shared with node %s", executor.ErrHopeless, where),
		"make it on a file system that all nodes see (--out DIR), then: skerry run --resume there")
}
