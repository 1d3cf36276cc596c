package slurm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
	"skerry/internal/run/executor"
)

// Without a file system that nodes share with this machine the plan goes out in the job's script, and what a task
// prints, its results among it, is fetched from its node while the job holds that:
//
//	the job                                  this process
//	measures, prints into a file of its own
//	comment = ready + the file's name ─────► squeue tells of it
//	waits                              ◄──── srun --overlap cat FILE, and once it was taken in rm FILE
//	sees that the file is gone, and ends
//
// So a job that is ready costs its node a few seconds, and at most holdTime where nobody comes.
const (
	ready     = "skerry ready "
	measuring = "skerry measures"
	trouble   = "skerry: " // which a node has no room to say in its output
	holdTime  = 30 * time.Minute
	// mostScript is how long a script may be, Slurm's default of max_script_size.
	mostScript = 4 << 20
)

// plan packs the plan of a batch for its script.
func (e *Engine) plan(b executor.Batch) (string, error) {
	packed, err := e.home.Plan(b.Trials())
	if err != nil {
		return "", err
	}
	plan := base64.StdEncoding.EncodeToString(packed)
	if len(plan) > mostScript*9/10 {
		return "", advice.With(fmt.Errorf("the plan and the files of the experiment are %d KiB, and a job's script holds %d", len(plan)>>10, mostScript>>10), "split the experiment")
	}
	return plan, nil
}

// fetched is what was fetched of a task.
type fetched struct {
	under bool // it goes on
	said  string
	err   error
}

// heard fetches what a job of an array has printed, once it is ready; again where that has failed.
func (e *Engine) heard(element, job, comment string, status executor.Status) executor.Status {
	file, is := strings.CutPrefix(comment, ready)
	e.mu.Lock()
	defer e.mu.Unlock()
	if said, is := strings.CutPrefix(comment, trouble); is {
		e.fetched[element] = &fetched{said: said}
	}
	f := e.fetched[element]
	if comment == measuring && f != nil && !f.under { // it was requeued
		delete(e.fetched, element)
	}
	if !is || status.State != executor.Running {
		return status
	}
	switch {
	case f == nil:
		f = &fetched{}
		e.fetched[element] = f
	case f.under || f.err == nil:
		return status
	}
	if f.err != nil {
		status.Why = f.err.Error()
	}
	f.under = true
	e.fetching.Go(func() {
		said, err := e.fetch(job, file)
		e.mu.Lock()
		defer e.mu.Unlock()
		f.under, f.said, f.err = false, said, err
	})
	return status
}

// fetch takes in what a job has printed into a file of its node, and removes that: then the job ends.
func (e *Engine) fetch(job, file string) (string, error) {
	cmd := e.srun(job, "cat", file)
	complaint := tail.New(500)
	cmd.Stderr = complaint
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", fmt.Errorf("fetching the results of job %s: %w", job, err)
	}
	said, err := e.home.Receive(out)
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
		return said, fmt.Errorf("fetching the results of job %s: %w", job, err)
	}
	return said, nil
}

// srun runs a program beside the script of a job.
func (e *Engine) srun(job string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.ctx, "srun", append([]string{"--jobid=" + job, "--overlap", "--nodes=1", "--ntasks=1", "--input=none", "--quiet", "--chdir=/"}, args...)...)
	cmd.Env = e.client.Environ()
	return cmd
}
