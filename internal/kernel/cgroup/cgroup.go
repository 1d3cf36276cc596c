// Package cgroup limits, measures and lists the processes of a node with control groups of version 1, version 2, or
// both.
//
// A Tree is skerry's directory in every usable hierarchy. A Group is a directory below it:
//
//	version 1                          version 2
//	/sys/fs/cgroup/cpu/skerry/LAB/NODE    /sys/fs/cgroup/skerry/LAB/NODE
//	/sys/fs/cgroup/memory/skerry/LAB/NODE
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrNone means that no hierarchy is writable.
	ErrNone = errors.New("no control groups")
	// ErrNoController means that the controller of a limit is missing.
	ErrNoController = errors.New("no such controller")
)

// Controllers of nodes.
const (
	cpu     = "cpu"
	cpuacct = "cpuacct" // version 1 only
	memory  = "memory"
	blkio   = "blkio" // version 1 only
	ioV2    = "io"    // version 2 only
	pids    = "pids"
)

// root is the name of skerry's directory in every hierarchy.
const root = "skerry"

// Tree is the set of hierarchies of this machine.
type Tree struct {
	v1 map[string]string // controller -> mount point
	v2 string            // mount point, or ""
}

// Open finds the mounted hierarchies.
func Open() (*Tree, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	defer f.Close()
	t, err := parseMounts(f)
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	if len(t.v1) == 0 && t.v2 == "" {
		return nil, fmt.Errorf("%w are mounted", ErrNone)
	}
	return t, nil
}

// parseMounts reads lines of mountinfo, see proc(5):
//
//	36 35 98:0 /root /mount/point rw,noatime master:1 - cgroup cgroup rw,cpu
func parseMounts(mounts io.Reader) (*Tree, error) {
	t := &Tree{v1: map[string]string{}}
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup2":
			t.v2 = mount[4]
		case "cgroup":
			for _, option := range strings.Split(kind[2], ",") {
				if slices.Contains([]string{cpu, cpuacct, memory, blkio, pids}, option) {
					t.v1[option] = mount[4]
				}
			}
		}
	}
	return t, lines.Err()
}

// Group returns the group at path below skerry's directory, for example "LAB/NODE". Create creates it.
func (t *Tree) Group(path string) *Group { return &Group{tree: t, path: path} }

// Group is a control group in every hierarchy of its Tree.
type Group struct {
	tree *Tree
	path string
}

// dirs returns the group's directories, one per mount; controllers may share a mount.
func (g *Group) dirs() []string {
	var dirs []string
	for _, mount := range g.tree.v1 {
		dirs = append(dirs, filepath.Join(mount, root, g.path))
	}
	if g.tree.v2 != "" {
		dirs = append(dirs, filepath.Join(g.tree.v2, root, g.path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func (g *Group) existingDirs() []string {
	return slices.DeleteFunc(g.dirs(), func(dir string) bool {
		_, err := os.Stat(dir)
		return err != nil
	})
}

// Create creates the group and its parents in every writable hierarchy. It returns ErrNone if there is none.
func (g *Group) Create() error {
	var errs []error
	made := 0
	for _, dir := range g.dirs() {
		if err := mkdirAll(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		made++
	}
	if made == 0 {
		return fmt.Errorf("%w can be made: %w", ErrNone, errs[0])
	}
	if g.tree.v2 != "" {
		g.enable()
	}
	return nil
}

// mkdirTries bounds the attempts to create a group while another command removes its empty parents.
const mkdirTries = 100

func mkdirAll(dir string) (err error) {
	for range mkdirTries {
		// A concurrent removal causes either error.
		err = os.MkdirAll(dir, 0o755)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// enable passes the controllers of version 2 down to the group, level by level. A later limit reports
// missing controllers.
func (g *Group) enable() {
	dir := g.tree.v2
	for _, level := range strings.Split(filepath.Join(root, g.path), "/") {
		for _, controller := range []string{cpu, memory, ioV2, pids} {
			_ = writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		}
		dir = filepath.Join(dir, level)
	}
}

// Remove removes the group and its children, which must not contain processes. It also removes empty parents,
// up to skerry's directory.
func (g *Group) Remove() error {
	var errs []error
	for _, dir := range g.existingDirs() {
		if err := removeTree(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
			continue
		}
		// Other groups may use a parent, or may have removed it.
		for parent := filepath.Dir(dir); g.tree.contains(parent) && os.Remove(parent) == nil; {
			parent = filepath.Dir(parent)
		}
	}
	return errors.Join(errs...)
}

// contains reports whether dir is skerry's directory in a hierarchy, or below it.
func (t *Tree) contains(dir string) bool {
	for _, mount := range t.v1 {
		if isBelow(dir, filepath.Join(mount, root)) {
			return true
		}
	}
	return t.v2 != "" && isBelow(dir, filepath.Join(t.v2, root))
}

func isBelow(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

const (
	// removeTimeout bounds the wait for an ending process. The kernel removes it from the group's list
	// before it removes it from the group.
	removeTimeout = 5 * time.Second
	removePoll    = 2 * time.Millisecond
)

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	late := time.Now().Add(removeTimeout)
	for {
		err := os.Remove(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || populated(dir) || time.Now().After(late):
			return err
		}
		time.Sleep(removePoll)
	}
}

// populated reports whether a group lists processes.
func populated(dir string) bool {
	list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && len(list) > 0
}

// controllerFile returns the file of a controller in the group and its version, version 1 first.
func (g *Group) controllerFile(v1, name1, name2 string) (path string, version int) {
	if mount, ok := g.tree.v1[v1]; ok {
		return filepath.Join(mount, root, g.path, name1), 1
	}
	if g.tree.v2 != "" {
		return filepath.Join(g.tree.v2, root, g.path, name2), 2
	}
	return "", 0
}

func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
