package slurm

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
	"skerry/internal/run/executor"
)

// Poll queries squeue for all tasks, including those that ended in the last minutes. Without accounting
// Slurm forgets older ones.
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
	// All waiting elements of an array share one line with ranges.
	out, err := e.client.Run(ctx, nil, "squeue", "--noheader", "--states=all", "--format=%F|%K|%T|%N|%r|%A|%k",
		"--jobs="+strings.Join(refs, ","))
	if err != nil && !strings.Contains(err.Error(), "Invalid job id") {
		return nil, fmt.Errorf("query jobs: %w", err)
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
		status := executor.Status{State: parseState(f[2]), Machine: nodeName(f[3]), Reason: formatReason(f[2], f[4])}
		for _, i := range executor.ParseIndexes(f[1]) {
			if i < 1 || i > len(s.Tasks) {
				continue
			}
			if e.output {
				status = e.collectOutput(s.Ref+"_"+strconv.Itoa(i), f[5], f[6], status)
			}
			found[s.Tasks[i-1]] = status
			if status.State == executor.Failed && !e.output {
				if err := e.checkShared(ctx, s.Ref, i, status.Machine); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

func parseState(slurm string) executor.State {
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
	return executor.Failed // FAILED, OUT_OF_MEMORY and states of later versions
}

func formatReason(slurm, why string) string {
	if why == "None" || why == "" {
		return strings.ToLower(strings.ReplaceAll(slurm, "_", " "))
	}
	return why
}

func nodeName(list string) string {
	if strings.HasPrefix(list, "(") {
		return ""
	}
	return list
}

// checkShared returns ErrFatal if a failed task did not see the run directory.
func (e *Executor) checkShared(ctx context.Context, ref string, index int, where string) error {
	job := ref + "_" + strconv.Itoa(index)
	if e.checked[job] {
		return nil
	}
	e.checked[job] = true
	out, err := e.client.Run(ctx, nil, "scontrol", "--oneliner", "show", "job", job)
	if err != nil || !bytes.Contains(out, fmt.Appendf(nil, " ExitCode=%d:0", executor.ExitNotShared)) {
		return nil // another failure, or Slurm has forgotten the job
	}
	return advice.With(fmt.Errorf("%w: node %s does not see the run directory", executor.ErrFatal, where),
		"create the run on a file system that all nodes share (--out DIR)")
}

// Without a shared file system, the job's script contains the plan, and this process fetches the output of
// a task, including its results, from the node while the job holds it:
//
//	the job                                  this process
//	measures, prints into a local file
//	comment = ready + the file's name ─────► squeue shows it
//	waits                              ◄──── srun --overlap cat FILE; rm FILE after the results are stored
//	sees that the file is gone, and ends
//
// A finished job holds its node for a few seconds, at most for holdTimeout.
const (
	ready       = "skerry ready "
	measuring   = "skerry measures"
	trouble     = "skerry: " // problems that a node without space cannot write into its output
	holdTimeout = 30 * time.Minute
	// maxScript is Slurm's default of max_script_size, in bytes.
	maxScript = 4 << 20
)

func (e *Executor) encodePlan(b executor.Batch) (string, error) {
	packed, err := e.home.PackPlan(b.Trials())
	if err != nil {
		return "", err
	}
	plan := base64.StdEncoding.EncodeToString(packed)
	if len(plan) > maxScript*9/10 {
		return "", advice.With(fmt.Errorf("the plan and the files of the experiment have %d KiB; a job script holds %d KiB",
			len(plan)>>10, maxScript>>10), "split the experiment")
	}
	return plan, nil
}

type fetchedTask struct {
	running bool
	output  string
	err     error
}

// collectOutput starts fetching the output of an array element that is ready. It retries after failures.
func (e *Executor) collectOutput(element, job, comment string, status executor.Status) executor.Status {
	file, is := strings.CutPrefix(comment, ready)
	e.mu.Lock()
	defer e.mu.Unlock()
	if output, is := strings.CutPrefix(comment, trouble); is {
		e.fetched[element] = &fetchedTask{output: output}
	}
	f := e.fetched[element]
	if comment == measuring && f != nil && !f.running { // requeued
		delete(e.fetched, element)
	}
	if !is || status.State != executor.Running {
		return status
	}
	switch {
	case f == nil:
		f = &fetchedTask{}
		e.fetched[element] = f
	case f.running || f.err == nil:
		return status
	}
	if f.err != nil {
		status.Reason = f.err.Error()
	}
	f.running = true
	e.fetching.Go(func() {
		output, err := e.fetchResults(job, file)
		e.mu.Lock()
		defer e.mu.Unlock()
		f.running, f.output, f.err = false, output, err
	})
	return status
}

// fetchResults stores the results in a job's output file, then removes the file to end the job.
func (e *Executor) fetchResults(job, file string) (string, error) {
	cmd := e.srun(job, "cat", file)
	complaint := tail.New(500)
	cmd.Stderr = complaint
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", fmt.Errorf("fetch results of job %s: %w", job, err)
	}
	output, err := e.home.ReceiveResults(out)
	if waited := cmd.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("srun: %w: %s", waited, strings.TrimSpace(complaint.String())))
	}
	if err == nil {
		var text []byte
		if text, err = e.srun(job, "rm", "-f", file).CombinedOutput(); err != nil {
			err = fmt.Errorf("srun: %w: %s", err, strings.TrimSpace(string(text)))
		}
	}
	if err != nil {
		return output, fmt.Errorf("fetch results of job %s: %w", job, err)
	}
	return output, nil
}

func (e *Executor) srun(job string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.ctx, "srun", append([]string{
		"--jobid=" + job, "--overlap", "--nodes=1", "--ntasks=1", "--input=none", "--quiet", "--chdir=/",
	}, args...)...)
	cmd.Env = e.client.Environ()
	return cmd
}
