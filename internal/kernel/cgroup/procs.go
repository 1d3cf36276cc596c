package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Join moves a process into the group in every hierarchy.
func (g *Group) Join(pid int) error {
	for _, dir := range g.existingDirs() {
		if err := writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move process %d into control group: %w", pid, err)
		}
	}
	return nil
}

// Processes returns the process IDs in the group and its children.
func (g *Group) Processes() ([]int, error) {
	var all []int
	seen := map[int]bool{}
	for _, dir := range g.existingDirs() {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil || e.Name() != "cgroup.procs" {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
				return err
			}
			for _, f := range strings.Fields(string(data)) {
				// A process of another PID namespace appears as 0.
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 && !seen[pid] {
					seen[pid] = true
					all = append(all, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of control group: %w", err)
		}
	}
	return all, nil
}
