package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Files that every resolver reads.
const (
	hostsFile    = "/etc/hosts"
	resolverFile = "/etc/resolv.conf"
)

// enter moves the calling thread, which must be a throwaway, to the node: its network namespace, its host name, and a mount
// namespace whose /etc/hosts names the lab's nodes.
func (n *Node) enter(netns string) error {
	space, err := os.Open(netns) // the view may not show it
	if err != nil {
		return fmt.Errorf("enter network namespace of %s: %w", n.spec.Name, err)
	}
	defer space.Close()
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("make namespaces for %s: %w", n.spec.Name, err)
	}
	if err := n.mountView(); err != nil {
		return fmt.Errorf("give %s its view of the file system: %w", n.spec.Name, err)
	}
	if err := unix.Sethostname([]byte(n.spec.Name)); err != nil {
		return fmt.Errorf("name the host %s: %w", n.spec.Name, err)
	}
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace of %s: %w", n.spec.Name, err)
	}
	return nil
}

func (n *Node) mountView() error {
	// Mounts propagate from the machine, but not to it.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("detach from the machine's mounts: %w", err)
	}
	if n.spec.Hide != "" {
		if err := unix.Unmount(n.spec.Hide, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", n.spec.Hide, err)
		}
	}
	if n.spec.Resolver != "" {
		if _, err := os.Stat(n.spec.Resolver); err == nil {
			if err := bindOver(resolverFile, n.spec.Resolver); err != nil {
				return err
			}
		}
	}
	if n.spec.Hosts == "" {
		return nil
	}
	return bindOver(hostsFile, n.spec.Hosts)
}

// bindOver mounts a file over another. It does nothing if the other is missing: such a machine resolves no names.
func bindOver(file, with string) error {
	err := unix.Mount(with, file, "", unix.MS_BIND, "")
	if _, missing := os.Stat(file); errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mount %s over %s: %w", with, file, err)
	}
	return nil
}

// Exec replaces the calling process by a program on the node. The program keeps the process's ID, terminal, descriptors and
// working directory (unless c.Dir is set). Its environment is c.Env plus the variables that name lab and node. Exec returns
// only on failure; the calling process is then unusable.
func (n *Node) Exec(c Command) error { return n.execIn(c, n.spec.Netns) }

func (n *Node) execIn(c Command, space string) error {
	runtime.LockOSThread()
	group, err := n.controlGroup()
	if err != nil {
		return err
	}
	if group != nil {
		if err := group.Join(os.Getpid()); err != nil {
			return err
		}
	}
	if err := n.enter(space); err != nil {
		return err
	}
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return err
	}
	if c.Dir != "" {
		if err := unix.Chdir(c.Dir); err != nil {
			return &os.PathError{Op: "chdir", Path: c.Dir, Err: err}
		}
	}
	own := []string{LabVariable + "=" + n.spec.Tag, "SKERRY_NODE=" + n.spec.Name}
	env := slices.DeleteFunc(slices.Clone(c.Env), func(v string) bool {
		return strings.HasPrefix(v, LabVariable+"=") || strings.HasPrefix(v, "SKERRY_NODE=")
	})
	argv := append([]string{c.Path}, c.Args...)
	return &os.PathError{Op: "exec", Path: path, Err: unix.Exec(path, argv, append(env, own...))}
}
