package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/files"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// exitUnreachable is the exit code of ssh if the connection fails.
const exitUnreachable = 255

// programPath returns the path of this build's program, as a shell word.
func programPath(sum string) string {
	return `"${XDG_CACHE_HOME:-$HOME/.cache}/skerry/bin/skerry-` + sum[:16] + `"`
}

// installProgram copies this program to a machine atomically, unless it is there.
func installProgram(ctx context.Context, m inventory.Entry, exe string) error {
	sum, err := files.SHA256(exe)
	if err != nil {
		return err
	}
	p := programPath(sum)
	if err := runShell(ctx, m, nil, "test -x "+p); err == nil {
		return nil
	} else if exitCode(err) == exitUnreachable || exitCode(err) < 0 {
		return fmt.Errorf("connect to %s: %w", m.Name, err)
	}
	f, err := os.Open(exe)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	if err := runShell(
		ctx, m, f,
		fmt.Sprintf(`p=%s; mkdir -p "${p%%/*}" && cat >"$p.$$" && chmod 755 "$p.$$" && mv "$p.$$" "$p"`, p),
	); err != nil {
		return fmt.Errorf("copy the program to %s: %w", m.Name, err)
	}
	return nil
}

func runShell(ctx context.Context, m inventory.Entry, stdin io.Reader, line string) error {
	args, err := m.Shell(line)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	output := tail.New(500)
	cmd.Stdin, cmd.Stderr = stdin, output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// exitCode returns -1 if the program did not run.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// taskLine returns the command of a task. The plan arrives on standard input, which stays open until the
// task is cancelled; results leave on standard output.
func taskLine(program string, sudo bool, t executor.Task, b executor.Batch) string {
	line := program + " agent task --only " + executor.FormatTrials(t.Trials)
	if b.Rerun {
		line += " --suspect"
	}
	if b.NoLab {
		line += " --no-lab"
	}
	if sudo {
		line = "sudo -n " + line
	}
	return "exec " + line
}

// taskEndTimeout bounds how long a cancelled task may take to remove its lab.
const taskEndTimeout = 90 * time.Second

// execTask runs one task on a machine and returns its final state and the end of its output.
func (e *Executor) execTask(p *worker, t executor.Task, b executor.Batch) (executor.State, string, error) {
	plan, err := e.home.PackPlan(t.Trials)
	if err != nil {
		return executor.Failed, "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return executor.Failed, "", fmt.Errorf("locate this program: %w", err)
	}
	sum, err := files.SHA256(exe)
	if err != nil {
		return executor.Failed, "", err
	}
	args, err := p.Shell(taskLine(programPath(sum), p.Sudo, t, b))
	if err != nil {
		return executor.Failed, "", err
	}
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	output := tail.New(2000)
	cmd.Stderr = output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return executor.Failed, "", fmt.Errorf("start task %d: %w", t.ID, err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return executor.Failed, "", fmt.Errorf("start task %d: %w", t.ID, err)
	}
	// A cancelled task sees the end of its input. It is killed if it does not exit in time.
	stopWatch := context.AfterFunc(e.ctx, func() {
		_ = stdin.Close()
		time.AfterFunc(taskEndTimeout, kill)
	})
	defer stopWatch()
	_, writeErr := io.Copy(stdin, io.MultiReader(strings.NewReader(fmt.Sprintf("%d\n", len(plan))), bytes.NewReader(plan)))
	_, err = e.home.ReceiveResults(out)
	waited := cmd.Wait()
	switch {
	case e.ctx.Err() != nil:
		return executor.Cancelled, output.String(), errors.Join(context.Canceled, err)
	case exitCode(waited) == exitUnreachable || waited != nil && exitCode(waited) < 0:
		return executor.Lost, output.String(), fmt.Errorf("lost the connection to %s: %w", p.Name, waited)
	case waited != nil:
		return executor.Failed, output.String(), errors.Join(waited, err)
	case err != nil:
		return executor.Failed, output.String(), err
	}
	return executor.Ended, output.String(), writeErr
}
