package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/machine/statedir"
)

// shownDir is where `ip netns` looks for namespaces.
const shownDir = "/run/netns"

// show makes the nodes' namespaces known to `ip netns`; none where that is not permitted.
func (p *part) show() error {
	nodes := p.record.Nodes
	for i, n := range nodes {
		if n.whole() {
			continue
		}
		name := "skerry-" + p.record.Name + "-" + n.Name
		err := showAs(name, n.Netns)
		if errors.Is(err, fs.ErrExist) { // a lab of this name in another state directory
			name = "skerry-" + p.record.ID + "-" + n.Name
			err = showAs(name, n.Netns)
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			for k := range nodes {
				nodes[k].Shown = ""
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("show namespace: %w", err)
		}
		nodes[i].Shown = name
	}
	return nil
}

func showAs(name, path string) (err error) {
	for range statedir.Tries {
		if err = os.Symlink(path, filepath.Join(shownDir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// It is not there, or the last lab of another command just took it away.
		if err = os.Mkdir(shownDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// hide removes the names that lead below dir, and shownDir itself when made says that
// a lab made it and it is empty.
func hide(dir string, made bool) error {
	entries, err := os.ReadDir(shownDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list shown namespaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			continue
		}
		name := filepath.Join(shownDir, e.Name())
		target, err := os.Readlink(name)
		if err != nil || !strings.HasPrefix(target, dir+"/") {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("hide namespace: %w", err))
		}
	}
	if made {
		_ = os.Remove(shownDir) // others may use it
	}
	return errors.Join(errs...)
}

// ownsShownDir tells whether shownDir is, or is going to be, there for labs alone.
func ownsShownDir() bool {
	entries, err := os.ReadDir(shownDir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			return false
		}
	}
	return len(entries) > 0
}
