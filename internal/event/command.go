package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database/custom"
	"skerry/internal/database/external"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/process"
	"skerry/internal/record"
)

var commandKind = Kind{
	Name: "command", Summary: "runs a command of yours on the machine that runs skerry.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionCommands, []Row{
		{Examples: []string{`{do: kubectl drain n2 --ignore-daemonsets, undo: kubectl uncordon n2}`},
			Text: `a command for ` + "`/bin/sh`" + ` on the machine that runs skerry. On revert, ` + "`undo`" + ` runs`},
		{Examples: []string{`{do: ./fail.sh, until: ./serves.sh, timeout: 30s}`},
			Text: "the event is complete when `until` succeeds, which is repeated until then"},
	}},
	newSpec: func() kindSpec { return new(UserCommand) },
}

// UserCommand runs commands of the user on the machine that runs skerry, not on a node. They are lines
// for /bin/sh and templates (see events.md).
type UserCommand struct {
	// Do is the command of the event. The event fails if the command does.
	Do string `yaml:"do" json:"do" jsonschema:"required"`
	// Undo reverts the event. It runs whatever happens: when the trial fails or is interrupted, and
	// at the next start after skerry was killed. It may run twice.
	Undo string `yaml:"undo" json:"undo,omitempty"`
	// Until is repeated until it succeeds. Then the event is complete.
	Until string `yaml:"until" json:"until,omitempty"`
	// Timeout bounds each of do, until and undo. Then the command's processes are killed, and the
	// event fails.
	Timeout unit.Duration `yaml:"timeout" json:"timeout" jsonschema:"default=2m"`
}

// Shorthand lets "command: ./fail.sh" stand for "command: {do: ./fail.sh}".
func (UserCommand) Shorthand() string { return "do" }

// commandData is what the templates of commands may name.
type commandData struct {
	// Lab is the name of the lab.
	Lab string
	// Nodes run the database at the start of the trial. On a cluster that Skerry did not start, they are its servers, named
	// HOST:PORT. Client is the first load driver's node.
	Nodes  []custom.Peer
	Client custom.Peer
}

func (c *UserCommand) texts() map[string]string {
	return map[string]string{"do": c.Do, "undo": c.Undo, "until": c.Until}
}

func (c *UserCommand) check(s Layout, fail failure) {
	if strings.TrimSpace(c.Do) == "" {
		fail("do", "write the command, such as do: ./fail.sh", "command: do is empty")
	}
	if c.Timeout == 0 {
		fail("timeout", "write 2m", "timeout must be positive")
	}
	sample := func(string) (string, error) { return "192.0.2.1", nil }
	servers := slices.Repeat([]string{"192.0.2.1:1"}, maxSampleServers)
	if s.Cluster != nil && len(s.Cluster.Servers) > 0 {
		servers = s.Cluster.Servers
	}
	data, _ := newCommandData("lab", s, servers, sample, sample) // sample returns no error
	for key, text := range c.texts() {
		if _, err := custom.Render(text, data); err != nil {
			fail(key, "see docs/events.md for what a template may name", "%v", err)
		}
	}
}

// maxSampleServers is how many servers a template is checked with if servers_from prints them later.
const maxSampleServers = 100

func (c *UserCommand) undoable() (bool, string) {
	return c.Undo != "", "add undo to the command, or remove it"
}

func (c *UserCommand) draw(s Layout, _ int, _ map[string]bool, _ *rand.Rand) action {
	return &commandAction{command: *c, layout: s}
}

// newCommandData returns the data of templates. The functions return the addresses of nodes. servers are those of a cluster
// that Skerry did not start.
func newCommandData(lab string, s Layout, servers []string, node, client func(name string) (string, error)) (commandData, error) {
	d := commandData{Lab: lab}
	if s.Cluster != nil {
		for i, server := range servers {
			addr, _, _ := net.SplitHostPort(server) // checked before
			d.Nodes = append(d.Nodes, custom.Peer{Node: server, Addr: addr, Index: i})
		}
	}
	peer := func(name string, index int, addr func(string) (string, error)) (custom.Peer, error) {
		a, err := addr(name)
		if err != nil {
			return custom.Peer{}, fmt.Errorf("address of node %s: %w", name, err)
		}
		p := custom.Peer{Node: name, Addr: a, Index: index}
		for _, n := range s.Topology.Nodes {
			if n.Name == name {
				p.Site = n.Site
			}
		}
		return p, nil
	}
	for i, name := range s.Data {
		p, err := peer(name, i, node)
		if err != nil {
			return d, err
		}
		d.Nodes = append(d.Nodes, p)
	}
	if len(s.Clients) == 0 {
		return d, nil
	}
	var err error
	d.Client, err = peer(s.Clients[0], 0, client)
	return d, err
}

// commandAction runs the commands. Invariant: before do begins, undo is on the disk, and it is
// removed from there only after undo succeeded.
type commandAction struct {
	command UserCommand
	layout  Layout
	undo    *journal.PendingUndo // nil before do begins
}

func (c *commandAction) targets() []string { return nil }

func (c *commandAction) what() string {
	first, _, more := strings.Cut(strings.TrimSpace(c.command.Do), "\n")
	if more {
		first += " ..."
	}
	return "command: " + first
}

// revertLimit is a second more than the undo's own timeout, which gives the better message.
func (c *commandAction) revertLimit() time.Duration {
	return c.command.Timeout.Duration() + time.Second
}

func (c *commandAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	texts, err := c.render(w)
	if err != nil {
		return err
	}
	c.undo, err = journal.RecordUndo(ctx, w.UndoDir, journal.Undo{
		Of: texts["do"], Text: texts["undo"], Dir: w.CommandDir, Timeout: c.command.Timeout.Duration(),
	})
	if err != nil {
		return err
	}
	run := func(name string, execute func(context.Context, process.ShellCommand) (process.ShellResult, error)) error {
		command := process.ShellCommand{Name: name, Text: texts[name], Dir: w.CommandDir, Env: c.undo.Env(),
			Timeout: c.command.Timeout.Duration()}
		r, err := execute(ctx, command)
		p.addCommand(record.RanCommand{Name: name, Text: texts[name], Exit: r.Exit, Output: r.Output})
		return err
	}
	if err := run("do", process.ExecuteShell); err != nil {
		return err
	}
	p.acceptNow()
	if texts["until"] == "" {
		return nil
	}
	return run("until", process.RunShellUntil)
}

// render fills in the templates of all commands, before any of them runs.
func (c *commandAction) render(w *Testbed) (map[string]string, error) {
	var servers []string
	if own, ok := w.Cluster.(*external.Cluster); ok {
		servers = own.Servers()
	}
	data, err := newCommandData(w.Lab, c.layout, servers, func(name string) (string, error) {
		h, err := w.databaseHost(name)
		if err != nil {
			return "", err
		}
		return h.Addr(), nil
	}, func(name string) (string, error) {
		h, err := w.Host(name)
		if err != nil {
			return "", err
		}
		return h.Addr(), nil
	})
	if err != nil {
		return nil, err
	}
	texts := c.command.texts()
	for name, text := range texts {
		if texts[name], err = custom.Render(text, data); err != nil {
			return nil, fmt.Errorf("command %s: %w", name, err)
		}
	}
	return texts, nil
}

// revert also follows a do that failed half-way.
func (c *commandAction) revert(ctx context.Context, _ *Testbed, p *progress) error {
	if c.undo == nil {
		return nil
	}
	r, err := c.undo.Run(ctx)
	if c.undo.Text != "" {
		p.addCommand(record.RanCommand{Name: "undo", Text: c.undo.Text, Exit: r.Exit, Output: r.Output})
	}
	if err != nil {
		return errors.Join(err, c.undo.Leave())
	}
	return c.undo.Settle(ctx)
}

// Commands returns the commands of the user that an event runs, in order, as written in the file.
func (e Event) Commands() (all []string) {
	c, ok := e.Spec.spec.(*UserCommand)
	if !ok {
		return nil
	}
	for _, name := range []string{"do", "until", "undo"} {
		if text := c.texts()[name]; text != "" {
			all = append(all, name+": "+text)
		}
	}
	return all
}
