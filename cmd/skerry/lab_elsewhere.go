package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/term"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/lab"
	"skerry/internal/machine"
	"skerry/internal/machine/fleet"
	"skerry/internal/machine/host"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/local"
	"skerry/internal/machine/transport"
	"skerry/internal/run/multihost"
)

// found is a running lab with its machine: this machine, or the fleet of a remote lab.
type found struct {
	lab.Info
	on       machine.Machine
	standing *multihost.RemoteLab // nil for a lab of this machine
	close    func() error
}

// findLab returns the lab with that name on this or other machines. For "" it returns the only lab.
func (a *app) findLab(ctx context.Context, name string) (found, error) {
	infos, err := lab.List(ctx, a.stateDir)
	if err != nil {
		return found{}, err
	}
	standing, err := multihost.OpenLabStore(a.stateDir).List()
	if err != nil {
		return found{}, err
	}
	for _, s := range standing {
		infos = append(without(infos, s.Name), lab.Info{Name: s.Name})
	}
	chosen, err := lab.SelectLab(infos, name)
	if errors.Is(err, lab.ErrNotFound) {
		_, err = lab.Find(ctx, a.stateDir, name) // its error has advice
	}
	if err != nil {
		return found{}, err
	}
	if i := slices.IndexFunc(standing, func(s multihost.RemoteLab) bool { return s.Name == chosen.Name }); i >= 0 {
		return a.reachLab(ctx, standing[i])
	}
	m, err := local.New(local.Config{State: a.stateDir})
	return found{Info: chosen, on: m, close: func() error { return nil }}, err
}

// without removes this machine's part of a lab on several machines.
func without(infos []lab.Info, name string) []lab.Info {
	return slices.DeleteFunc(infos, func(i lab.Info) bool { return i.Name == name })
}

// reachLab connects to the machines of a lab.
func (a *app) reachLab(ctx context.Context, s multihost.RemoteLab) (found, error) {
	exe, err := executable()
	if err != nil {
		return found{}, err
	}
	on, done, err := s.Connect(ctx, transport.Options{Exe: exe, Log: a.Log})
	if err != nil {
		return found{}, fmt.Errorf("lab %s: %w", s.Name, err)
	}
	f := found{Info: lab.Info{Name: s.Name, State: lab.StateDead, Problem: "not found on its machines"}, on: on, standing: &s, close: done}
	infos, err := lab.ListOn(ctx, on)
	if err != nil {
		return found{}, errors.Join(err, done())
	}
	for _, i := range infos {
		if i.Name == s.Name {
			i.Holder = nil // the holder is a process of another machine
			f.Info = i
		}
	}
	return f, nil
}

// standingLabs returns the labs on other machines. A lab whose machines are unreachable is damaged.
func (a *app) standingLabs(ctx context.Context) ([]lab.Info, error) {
	standing, err := multihost.OpenLabStore(a.stateDir).List()
	if err != nil {
		return nil, err
	}
	infos := make([]lab.Info, len(standing))
	for i, s := range standing {
		f, err := a.reachLab(ctx, s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			infos[i] = lab.Info{Name: s.Name, State: lab.StateDamaged, Problem: err.Error()}
			continue
		}
		if infos[i] = f.Info; f.close() != nil {
			infos[i].Problem = "disconnecting from its machines failed"
		}
	}
	return infos, nil
}

// upElsewhere creates a lab on the machines of --machines.
func (a *app) upElsewhere(ctx context.Context, c lab.Config, up labUp) (l *lab.Lab, done func() error, err error) {
	up.options.Place = map[string]string{}
	for _, p := range up.places {
		key, on, ok := strings.Cut(p, "=")
		if !ok {
			return nil, nil, fmt.Errorf("%w: --place %s is not NODE=MACHINE, SITE=MACHINE or *=MACHINE", cli.ErrUsage, p)
		}
		up.options.Place[key] = on
	}
	f, err := inventory.Load(up.machines)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	m, err := multihost.Open(ctx, f, transport.Options{Exe: c.Exe, Log: a.Log})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if _, err := m.ConfigureLab(ctx, &c, up.options, func(stage string) { a.Progress().Livef("%s", stage) }); err != nil {
		return nil, nil, err
	}
	memory := multihost.OpenLabStore(a.stateDir)
	known, err := memory.List()
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(known, func(s multihost.RemoteLab) bool { return s.Name == c.Name }) {
		return nil, nil, advice.With(fmt.Errorf("%w: %s", lab.ErrExists, c.Name),
			"remove it with `skerry lab down %s`, or use another --name", c.Name)
	}
	if err := memory.Save(multihost.RemoteLab{Name: c.Name, Machines: f, At: c.Machine.(*fleet.Fleet).Placement()}); err != nil {
		return nil, nil, err
	}
	if l, err = lab.Up(ctx, c); err != nil {
		return nil, nil, errors.Join(err, memory.Remove(c.Name))
	}
	return l, m.Close, nil
}

// execElsewhere runs a command on a node of another machine until it exits. If this process has a terminal and the
// machine has a shell, the command gets a terminal.
func (a *app) execElsewhere(ctx context.Context, f found, node string, container bool, command []string) error {
	l, err := lab.AttachOn(ctx, f.on, f.Name)
	if err != nil {
		return err
	}
	defer l.Close()
	h, err := l.Host(node)
	if container && err == nil {
		h, err = l.Member(node)
	}
	if err != nil {
		return err
	}
	if in, is := a.In.(*os.File); is && term.IsTerminal(int(in.Fd())) {
		if argv, err := a.terminalOn(ctx, f, l, node, container, command); !errors.Is(err, inventory.ErrNoShell) {
			return errors.Join(err, a.runTerminal(argv))
		}
	}
	p, err := h.Start(ctx, host.Command{Name: command[0], Path: command[0], Args: command[1:], Stdin: a.In, Stdout: a.Out, Stderr: a.Err})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Kill())
	}
	var code host.ExitCode
	if errors.As(p.Err(), &code) {
		return cli.ExitStatus(code)
	}
	return p.Err()
}

// terminalOn returns the command line that runs a command on a node's machine in a terminal.
func (a *app) terminalOn(ctx context.Context, f found, l *lab.Lab, node string, container bool, command []string) ([]string, error) {
	list, err := f.standing.Machines.Expand(ctx)
	if err != nil {
		return nil, err
	}
	exe, err := l.Exe(node)
	if err != nil {
		return nil, err
	}
	words := []string{exe, "lab", "exec", "--lab", f.Name}
	if container {
		words = append(words, "--container")
	}
	words = append(append(words, node, "--"), command...)
	for i, w := range words {
		words[i] = inventory.Quote(w)
	}
	i := slices.IndexFunc(list, func(m inventory.Entry) bool { return m.Name == l.NodeMachines()[node] })
	if i < 0 {
		return nil, fmt.Errorf("machine of node %s: %w", node, inventory.ErrNoShell)
	}
	line := strings.Join(words, " ")
	if list[i].Sudo {
		line = "sudo -n " + line
	}
	return list[i].Terminal("exec " + line)
}

func (a *app) runTerminal(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	err := a.runInherited(exec.Command(argv[0], argv[1:]...))
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return cli.ExitStatus(exit.ExitCode())
	}
	return err
}
