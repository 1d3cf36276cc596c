package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// exitUnreachable is how ssh ends where the connection fails.
const exitUnreachable = 255

// programPath is where a machine keeps the program of this build, for the shell there.
func programPath(sum string) string {
	return `"${XDG_CACHE_HOME:-$HOME/.cache}/skerry/bin/skerry-` + sum + `"`
}

// installProgram gives a machine this program, where it has not got it: whole or not at all.
func installProgram(ctx context.Context, m inventory.Machine, exe string) error {
	sum, err := digestFile(exe)
	if err != nil {
		return err
	}
	p := programPath(sum)
	if err := runShell(ctx, m, nil, "test -x "+p); err == nil {
		return nil
	} else if exitCode(err) == exitUnreachable || exitCode(err) < 0 {
		return fmt.Errorf("reaching %s: %w", m.Name, err)
	}
	f, err := os.Open(exe)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	if err := runShell(
		ctx, m, f,
		fmt.Sprintf(`p=%s; mkdir -p "${p%%/*}" && cat >"$p.$$" && chmod 755 "$p.$$" && mv "$p.$$" "$p"`, p),
	); err != nil {
		return fmt.Errorf("giving %s the program: %w", m.Name, err)
	}
	return nil
}

func digestFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// runShell runs a line on a machine.
func runShell(ctx context.Context, m inventory.Machine, stdin io.Reader, line string) error {
	args, err := m.Shell(line)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	said := tail.New(500)
	cmd.Stdin, cmd.Stderr = stdin, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// exitCode is how a program ended, -1 where it did not run.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// taskLine runs a task: the plan comes by standard input, which stays open for as long as the task is wanted,
// and results leave by standard output.
func taskLine(program string, sudo bool, t executor.Task, again bool) string {
	words := make([]string, len(t.Trials))
	for i, id := range t.Trials {
		words[i] = strconv.Itoa(id)
	}
	line := program + " agent task --only " + strings.Join(words, ",")
	if again {
		line += " --suspect"
	}
	if sudo {
		line = "sudo -n " + line
	}
	return "exec " + line
}

// taskEndTimeout is how long a task may take to take its lab down once nobody wants it any more.
const taskEndTimeout = 90 * time.Second

// execTask has one task done on a machine, and tells how that ended and what it said.
func (e *Executor) execTask(p *worker, t executor.Task, again bool) (executor.State, string, error) {
	plan, err := e.home.PackPlan(t.Trials)
	if err != nil {
		return executor.Failed, "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return executor.Failed, "", fmt.Errorf("finding this program: %w", err)
	}
	sum, err := digestFile(exe)
	if err != nil {
		return executor.Failed, "", err
	}
	args, err := p.Shell(taskLine(programPath(sum), p.Sudo, t, again))
	if err != nil {
		return executor.Failed, "", err
	}
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	said := tail.New(2000)
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return executor.Failed, "", fmt.Errorf("beginning task %d: %w", t.ID, err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return executor.Failed, "", fmt.Errorf("beginning task %d: %w", t.ID, err)
	}
	// The end of its input tells a task that nobody wants it; who does not heed that is killed.
	unwanted := context.AfterFunc(e.ctx, func() {
		_ = stdin.Close()
		time.AfterFunc(taskEndTimeout, kill)
	})
	defer unwanted()
	_, writeErr := io.Copy(stdin, io.MultiReader(strings.NewReader(fmt.Sprintf("%d\n", len(plan))), bytes.NewReader(plan)))
	_, err = e.home.ReceiveResults(out)
	waited := cmd.Wait()
	switch {
	case e.ctx.Err() != nil:
		return executor.Cancelled, said.String(), errors.Join(context.Canceled, err)
	case exitCode(waited) == exitUnreachable || waited != nil && exitCode(waited) < 0:
		return executor.Lost, said.String(), fmt.Errorf("the connection to %s ended: %w", p.Name, waited)
	case waited != nil:
		return executor.Failed, said.String(), errors.Join(waited, err)
	case err != nil:
		return executor.Failed, said.String(), err
	}
	return executor.Ended, said.String(), writeErr
}
