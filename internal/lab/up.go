package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/advice"
	"skerry/internal/cgroup"
	"skerry/internal/host"
	"skerry/internal/procfs"
	"skerry/internal/rootless"
)

// Up makes a lab. When it fails or ctx ends, everything made is undone.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c.setDefaults()
	l, err := up(ctx, c)
	// The emulator's errors come as text.
	if err != nil && (errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())) {
		err = advice.With(err, "the disk is full: free some space, or give other directories by SKERRY_STATE and SKERRY_DATA")
	}
	return l, err
}

func up(ctx context.Context, c Config) (*Lab, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	links, err := c.links()
	if err != nil {
		return nil, err
	}
	b, why, err := choose(c.Engine, c.backends)
	if err != nil {
		return nil, err
	}
	l := &Lab{log: c.Log, links: links}
	l.state = state{
		Version: stateVersion, Name: c.Name, Created: time.Now().UTC(), Ephemeral: c.Ephemeral,
		Engine: b.name(), Why: why, Topology: c.Topology, Seed: c.Seed,
	}
	if err := l.claim(ctx, c); err != nil {
		return nil, err
	}
	if err := l.build(ctx, c, b); err != nil {
		l.log.Debug("undo", "lab", c.Name, "because", err)
		return nil, errors.Join(err, l.Down(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// claim takes the lab's name and writes its journal. When it fails nothing is left.
func (l *Lab) claim(ctx context.Context, c Config) error {
	s, err := openStore(c.StateDir)
	if err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer s.release(lock)
	l.place = s.lab(c.Name)
	if err := vacate(ctx, l.place); err != nil {
		return err
	}
	if err := os.Mkdir(l.place.dir(), 0o700); err != nil {
		return fmt.Errorf("make directory of lab: %w", err)
	}
	err = l.found(ctx, c)
	if err != nil {
		err = errors.Join(err, l.place.removeFiles())
		if l.owner != nil {
			l.owner.Close()
		}
	}
	return err
}

// vacate clears what is left of a lab of that name; ErrExists when it is up.
func vacate(ctx context.Context, p place) error {
	lock, err := p.seize(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errLocked):
		return advice.With(fmt.Errorf("%w: %s", ErrExists, p.name), "it belongs to a running command; choose another name")
	case err != nil:
		return err
	}
	defer lock.Close()
	r := inspect(p)
	if r.alive() {
		return advice.With(fmt.Errorf("%w: %s", ErrExists, p.name), "take it down with `skerry lab down %s`, or choose another name", p.name)
	}
	return r.clear(ctx)
}

// found locks the lab's directory, gives the lab its ID and plans it.
func (l *Lab) found(ctx context.Context, c Config) (err error) {
	if l.owner, err = lockDir(ctx, l.place.dir(), true); err != nil {
		return err
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("make ID of lab: %w", err)
	}
	l.state.ID = c.Name + "-" + hex.EncodeToString(random)
	if err := os.Symlink(l.state.ID, l.place.file(idFile)); err != nil {
		return fmt.Errorf("keep ID of lab: %w", err)
	}
	if l.state.Boot, err = procfs.BootID(); err != nil {
		return err
	}
	if l.state.Owner, err = procfs.Self(); err != nil {
		return err
	}
	data, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	l.state.Data = filepath.Join(data, l.state.ID)
	l.journal, err = createJournal(l.place, plan{
		ID: l.state.ID, Boot: l.state.Boot, Owner: l.state.Owner, Data: l.state.Data, MadeNames: ownsShownDir(),
	})
	return err
}

// build makes what claim planned.
func (l *Lab) build(ctx context.Context, c Config, b backend) error {
	for i, n := range c.Topology.Nodes {
		l.state.Nodes = append(l.state.Nodes, nodeState{
			Name: n.Name, Addr: address(i).String(),
			Dir: filepath.Join(l.state.Data, n.Name), Netns: l.place.namespace(n.Name),
		})
	}
	group, err := l.controlGroup()
	if err != nil {
		return err
	}
	if err := l.directories(); err != nil {
		return err
	}
	if err := l.space(ctx, c, b); err != nil {
		return err
	}
	if err := l.describe(); err != nil {
		return err
	}
	l.attachNodes(group)
	if rootless.Inside() && !c.Ephemeral {
		if err := l.hold(c.Exe); err != nil {
			return err
		}
	}
	err = errors.Join(writeJSON(l.place.file(linksFile), l.links), writeJSON(l.place.file(stateFile), l.state))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || c.Ephemeral {
		return err
	}
	err = l.owner.Close()
	l.owner = nil
	return err
}

// controlGroup makes the control group of the whole lab, nil with a warning where there
// is none to be had. Those of the nodes follow when they start something.
func (l *Lab) controlGroup() (*cgroup.Tree, error) {
	tree, err := cgroup.Open()
	if err == nil {
		err = tree.Group(l.state.ID).Create()
	}
	if errors.Is(err, cgroup.ErrNone) {
		l.warn("CPU and memory of nodes are not limited: %v", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.state.Groups = true
	cpu, memory := tree.Group(l.state.ID).Limits()
	for _, n := range l.state.Topology.Nodes {
		if n.CPU > 0 && !cpu {
			l.warn("CPU of nodes is not limited: this machine gives no such control group")
			cpu = true
		}
		if n.Memory > 0 && !memory {
			l.warn("memory of nodes is not limited: this machine gives no such control group")
			memory = true
		}
	}
	return tree, nil
}

func (l *Lab) warn(format string, args ...any) {
	l.state.Warnings = append(l.state.Warnings, fmt.Sprintf(format, args...))
}

// directories makes those of the nodes, and the file of their names.
func (l *Lab) directories() error {
	var err error
	for range tries {
		if err = own(filepath.Dir(l.state.Data)); err == nil {
			err = os.Mkdir(l.state.Data, 0o755)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Symlink(l.place.dir(), filepath.Join(l.state.Data, madeFile)); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	for _, n := range l.state.Nodes {
		if err := os.Mkdir(n.Dir, 0o755); err != nil {
			return fmt.Errorf("make directory of node: %w", err)
		}
	}
	if err := os.WriteFile(l.place.file(hostsFile), hosts(l.state.Nodes), 0o644); err != nil {
		return fmt.Errorf("write names of nodes: %w", err)
	}
	return nil
}

// space makes the namespaces, the links and the routes.
func (l *Lab) space(ctx context.Context, c Config, b backend) error {
	if err := mountNamespaces(l.place.namespaces()); err != nil {
		return err
	}
	total := len(l.state.Nodes)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		l.engine, err = b.start(gctx, engineEnv{
			place: l.place, id: l.state.ID, exe: c.Exe, ephemeral: c.Ephemeral, log: c.Log,
		})
		if err != nil {
			return fmt.Errorf("start the %s link engine: %w", b.name(), err)
		}
		return l.noteEmulator()
	})
	group.Go(func() error {
		return onNodes(gctx, l.state.Nodes, count(c.Progress, "namespaces", total), makeNamespace)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	c.Progress("links", 0, len(l.links.Links))
	if err := l.engine.Create(ctx, l.state.specs(l.links.Links)); err != nil {
		return fmt.Errorf("make links: %w", err)
	}
	c.Progress("links", len(l.links.Links), len(l.links.Links))
	ways := routes(l.state.Nodes, l.links.Links)
	return onNodes(ctx, l.state.Nodes, count(c.Progress, "routes", total), func(n nodeState) error {
		return addRoutes(n, ways[n.Name])
	})
}

// count returns a function that counts calls and reports them.
func count(progress func(string, int, int), stage string, total int) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(stage, done, total)
	}
}

// mountNamespaces makes the mount that the namespaces are mounted below. One call then
// unmounts them all, wherever copies of it went: it is shared, as `ip netns` does.
func mountNamespaces(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = unix.Mount(dir, dir, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED, "")
	}
	if err != nil {
		return fmt.Errorf("mount place of namespaces: %w", err)
	}
	return nil
}

// noteEmulator writes the engine's process to the journal.
func (l *Lab) noteEmulator() error {
	l.state.Warnings = append(l.state.Warnings, l.engine.warnings...)
	if l.engine.pid == 0 {
		return nil
	}
	p, err := procfs.Of(l.engine.pid)
	if err != nil {
		return err
	}
	l.state.Emulator = &p
	return l.journal.began(p, emulator)
}

// describe completes what is said about the lab.
func (l *Lab) describe() error {
	shown, err := show(l.state.Name, l.state.ID, l.state.Nodes)
	if err != nil {
		return err
	}
	for i, n := range l.state.Nodes {
		l.state.Nodes[i].Shown = shown[n.Name]
	}
	got, warnings, err := readSettings(l.state.Nodes[0].Netns)
	l.state.Settings = got
	l.state.Warnings = append(l.state.Warnings, warnings...)
	return err
}

// attachNodes makes the hosts of the lab's nodes.
func (l *Lab) attachNodes(tree *cgroup.Tree) {
	l.byName = make(map[string]*host.Node, len(l.state.Nodes))
	for i, n := range l.state.Nodes {
		s := host.Spec{
			Name: n.Name, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns,
			Hosts: l.place.file(hostsFile), Hide: l.place.namespaces(), Tag: l.state.ID,
			CPU: l.state.Topology.Nodes[i].CPU, Memory: l.state.Topology.Nodes[i].Memory,
			Nested: rootless.Inside(), Began: l.journal.began,
		}
		if tree != nil {
			s.Group = tree.Group(l.state.ID + "/" + n.Name)
		}
		node := host.NewNode(s)
		l.nodes = append(l.nodes, node)
		l.byName[n.Name] = node
	}
}

// hold starts a process that keeps a user namespace, with all that is in it, after this
// one has ended.
func (l *Lab) hold(exe string) error {
	process, err := rootless.Hold(exe, []string{"agent", "hold"}, host.LabVariable+"="+l.state.ID)
	if err != nil {
		return err
	}
	l.state.Holder = &namedProcess{process, holder}
	return l.journal.began(process, holder)
}

// holder names the process that keeps a rootless lab's user namespace.
const holder = "@holder"
