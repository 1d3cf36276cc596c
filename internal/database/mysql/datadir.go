package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/machine/host"
)

// nobody is the user and group that servers run as: their programs, and the ones that
// they call to copy their state, refuse root or drop its rights.
const nobody = 65534

// Grant is the statements that a new data directory begins with: the user and the schema.
const Grant = "CREATE USER '" + User + "'@'%' IDENTIFIED BY '';\n" +
	"GRANT ALL PRIVILEGES ON *.* TO '" + User + "'@'%' WITH GRANT OPTION;\n" +
	"CREATE DATABASE " + Schema + ";\n"

// GiveToServerUser gives a file or folder of a node, and all below it, to the servers' user.
func GiveToServerUser(ctx context.Context, h host.Host, path string) error {
	if err := h.Files().Own(ctx, path, nobody, nobody); err != nil {
		return fmt.Errorf("giving %s to the server's user: %w", path, err)
	}
	return nil
}

// AsServerUser has a command run as the servers' user.
func AsServerUser(c host.Command) host.Command {
	c.UID, c.GID = nobody, nobody
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
