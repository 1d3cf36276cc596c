// Package cgroup limits, counts and lists the processes of a node by control groups,
// of version 1, version 2 or both beside each other, whichever the machine has.
//
// A Tree is skerry's own directory in every hierarchy that it can use; a Group is a
// directory below it:
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

// Errors that callers tell apart.
var (
	// ErrNone is returned where no hierarchy can be written to.
	ErrNone = errors.New("no control groups")
	// ErrNoController is returned for a limit whose controller is missing.
	ErrNoController = errors.New("no such controller")
)

// The controllers that nodes use.
const (
	cpu     = "cpu"
	cpuacct = "cpuacct" // of version 1 alone
	memory  = "memory"
	blkio   = "blkio" // of version 1 alone
	ioV2    = "io"    // of version 2 alone
	pids    = "pids"
)

// root is the name of skerry's directory in every hierarchy.
const root = "skerry"

// Tree is the set of hierarchies of this machine.
type Tree struct {
	v1 map[string]string // controller -> mount point
	v2 string            // mount point, "" when there is none
}

// Open finds the hierarchies that are mounted.
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

// Group names the group at path below skerry's directory, such as "LAB/NODE". It
// exists once Create was called.
func (t *Tree) Group(path string) *Group { return &Group{tree: t, path: path} }

// Group is a control group in every hierarchy of its Tree.
type Group struct {
	tree *Tree
	path string
}

// dirs are the group's directories: one for each mount, though controllers may share it.
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

// existingDirs are those directories that are there.
func (g *Group) existingDirs() []string {
	return slices.DeleteFunc(g.dirs(), func(dir string) bool {
		_, err := os.Stat(dir)
		return err != nil
	})
}

// Create makes the group, with its parents, in every hierarchy that lets it; ErrNone when
// none does.
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

// mkdirTries is how often a group is made whose parents the last lab of another command may just
// be taking away.
const mkdirTries = 100

func mkdirAll(dir string) (err error) {
	for range mkdirTries {
		// It fails with either when a directory goes between two looks at it.
		err = os.MkdirAll(dir, 0o755)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// enable hands the controllers of version 2 down to the group, level by level. What is
// refused is found missing by Limit.
func (g *Group) enable() {
	dir := g.tree.v2
	for _, level := range strings.Split(filepath.Join(root, g.path), "/") {
		for _, controller := range []string{cpu, memory, ioV2, pids} {
			_ = writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		}
		dir = filepath.Join(dir, level)
	}
}

// Remove removes the group and those below it; they must hold no process. Parents that
// are empty go as well, up to skerry's own directory.
func (g *Group) Remove() error {
	var errs []error
	for _, dir := range g.existingDirs() {
		if err := removeTree(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
			continue
		}
		// Others may be using a parent, or have removed it.
		for parent := filepath.Dir(dir); g.tree.contains(parent) && os.Remove(parent) == nil; {
			parent = filepath.Dir(parent)
		}
	}
	return errors.Join(errs...)
}

// contains tells whether dir is skerry's directory in a hierarchy or below it.
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
	// leaving is how long a process that is ending may stay in its group after it has left
	// the group's list: the kernel removes it from the two at different times.
	removeTimeout = 5 * time.Second
	// poll is how often the removal of such a group is tried.
	removePoll = 2 * time.Millisecond
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

// populated tells whether a group lists processes.
func populated(dir string) bool {
	list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && len(list) > 0
}

// controllerFile is the file of a controller in the group, version 1 first.
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
