package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"skerry/internal/host"
)

// nobody is the user and group that servers run as: their programs, and the ones that
// they call to copy their state, refuse root or drop its rights.
const nobody = 65534

// Grant is the statements that a new data directory begins with: the user and the schema.
const Grant = "CREATE USER '" + User + "'@'%' IDENTIFIED BY '';\n" +
	"GRANT ALL PRIVILEGES ON *.* TO '" + User + "'@'%' WITH GRANT OPTION;\n" +
	"CREATE DATABASE " + Schema + ";\n"

// Own gives a file or folder, and all below it, to the servers' user.
func Own(path string) error {
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, nobody, nobody)
	})
	// Inside a user namespace that has no such user, processes that run as it are
	// given a namespace of their own, in which what is ours is theirs.
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("giving %s to the server's user: %w", path, err)
	}
	return nil
}

// AsServer has a command run as the servers' user.
func AsServer(c host.Command) host.Command {
	if os.Geteuid() == 0 {
		c.UID, c.GID = nobody, nobody
	}
	return c
}

// Run runs a program on a node to its end and returns what it printed. The error holds the
// last lines of that.
func Run(ctx context.Context, h host.Host, c host.Command) (string, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	p, err := h.Start(ctx, c)
	if err != nil {
		return "", fmt.Errorf("starting %s on %s: %w", c.Name, h.Name(), err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("%s on %s: %w", c.Name, h.Name(), context.Cause(ctx)), p.Kill())
	}
	if p.Err() != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return out.String(), fmt.Errorf("%s on %s: %w: %s", c.Name, h.Name(), p.Err(), strings.Join(lines[max(0, len(lines)-8):], "\n"))
	}
	return out.String(), nil
}

// CopyTree makes the folder to a copy of from: folders and plain files.
func CopyTree(to, from string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type().IsRegular():
			return copyFile(target, path)
		}
		return nil // sockets of a server that ran there
	})
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
