package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/process"
)

// renderCount fills in the template of join or leave.
func renderCount(text string, count int) (string, error) {
	var b strings.Builder
	t, err := template.New("command").Parse(text)
	if err == nil {
		err = t.Execute(&b, struct{ Count int }{count})
	}
	if err != nil {
		return "", fmt.Errorf("a template may contain {{.Count}} only: %w", err)
	}
	return b.String(), nil
}

// Resize changes the number of servers by the command join or leave. The change is accepted when the command has
// succeeded. It is complete when ready succeeds, servers_from prints the new number of servers, and all of them accept
// connections. Callers make one change at a time.
func (c *Cluster) Resize(ctx context.Context, by int) (change database.Change, err error) {
	began := time.Now()
	count := len(c.Servers()) + by
	if count < 1 {
		return change, fmt.Errorf("leave: no server of %d would remain", count-by)
	}
	if !c.started {
		// Before the command runs, its opposite is on the disk. On the way back to the initial number, the record before
		// holds: the change may not happen.
		if count != c.initial {
			if err := c.recordReturn(count); err != nil {
				return change, err
			}
		}
		defer func() {
			if err == nil && count == c.initial {
				err = c.settleUndo()
			}
		}()
	}
	if err := c.scale(ctx, by > 0, count); err != nil {
		return change, err
	}
	change.Accepted = time.Since(began)
	servers, err := c.awaitCount(ctx, count)
	if err != nil {
		return change, err
	}
	change.Complete = time.Since(began)
	// Later clients and the drop of the table use these servers.
	c.mu.Lock()
	c.servers = servers
	table := c.properties[database.PropTable]
	c.mu.Unlock()
	return change, c.claimTable(c.database.clientProperties(servers, table))
}

// scale runs join or leave.
func (c *Cluster) scale(ctx context.Context, grow bool, count int) error {
	name, text := c.scaleCommand(grow)
	text, err := renderCount(text, count)
	if err != nil {
		return fmt.Errorf("command %s: %w", name, err)
	}
	_, err = process.RunShell(ctx, c.command(name, text))
	return err
}

func (c *Cluster) scaleCommand(grow bool) (name, text string) {
	if grow {
		return "join", c.database.spec.Join
	}
	return "leave", c.database.spec.Leave
}

// awaitCount waits until the cluster serves with a number of servers, and returns them.
func (c *Cluster) awaitCount(ctx context.Context, count int) (servers []string, err error) {
	s := c.database.spec
	err = await(ctx, s.Timeout.Duration(), func(ctx context.Context) (err error) {
		if s.Ready != "" {
			if _, err := process.RunShell(ctx, c.command("ready", s.Ready)); err != nil {
				return err
			}
		}
		if servers, err = c.findServers(ctx); err != nil {
			return err
		}
		if len(servers) != count {
			return fmt.Errorf("command servers_from prints %d servers, want %d", len(servers), count)
		}
		return checkServing(ctx, servers)
	})
	if err != nil {
		return nil, fmt.Errorf("not complete within %v: %w", s.Timeout, err)
	}
	return servers, nil
}

// undoFile is the record of the command that Stop runs, or Sweep.
const undoFile = "undo.json"

// recordUndo returns when the command is on the disk.
func (c *Cluster) recordUndo(name, text string) error {
	c.undo = c.command(name, text)
	if err := journal.WriteRecord(c.scratch, undoFile, c.undo); err != nil {
		return fmt.Errorf("record the command %s: %w", name, err)
	}
	return nil
}

// recordReturn records the command that leads from a number of servers to the initial one.
func (c *Cluster) recordReturn(from int) error {
	name, text := c.scaleCommand(from < c.initial)
	text, err := renderCount(text, c.initial)
	if err != nil {
		return fmt.Errorf("command %s: %w", name, err)
	}
	return c.recordUndo(name, text)
}

func (c *Cluster) settleUndo() error {
	c.undo = process.ShellCommand{}
	return settle(c.scratch, undoFile)
}

// runUndo runs the recorded command, and waits until the cluster has its servers back, for the next trial. A command that
// fails is not repeated.
func (c *Cluster) runUndo(ctx context.Context) error {
	if c.undo.Text == "" {
		return nil
	}
	_, err := process.RunShell(ctx, c.undo)
	if err == nil && !c.started {
		_, err = c.awaitCount(ctx, c.initial)
	}
	return errors.Join(err, c.settleUndo())
}

// runRecordedUndo runs the command that a killed process left, and returns it.
func runRecordedUndo(ctx context.Context, d *journal.LockedDir) (string, error) {
	var c process.ShellCommand
	if ok, err := d.ReadRecord(undoFile, &c); err != nil || !ok {
		return "", err
	}
	_, err := process.RunShell(ctx, c)
	if err == nil {
		return c.Name + ": " + c.Text, settle(d.Path, undoFile)
	}
	return "", advice.With(fmt.Errorf("cluster of a killed run: %w", err), "if the cluster is gone for good, remove %s", d.Path)
}
