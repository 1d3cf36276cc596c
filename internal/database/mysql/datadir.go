package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// The servers' user: the programs, and those that copy their state, refuse root or drop its rights.
const nobody = 65534

// Grant is the SQL that creates the user and the schema in a new data directory.
const Grant = "CREATE USER '" + User + "'@'%' IDENTIFIED BY '';\n" +
	"GRANT ALL PRIVILEGES ON *.* TO '" + User + "'@'%' WITH GRANT OPTION;\n" +
	"CREATE DATABASE " + Schema + ";\n"

// GiveToServerUser gives a file or folder of a node, with all below it, to the servers' user.
func GiveToServerUser(ctx context.Context, h host.Host, path string) error {
	if err := h.Files().Own(ctx, path, nobody, nobody); err != nil {
		return fmt.Errorf("changing the owner of %s: %w", path, err)
	}
	return nil
}

// AsServerUser makes a command run as the servers' user.
func AsServerUser(c host.Command) host.Command {
	c.UID, c.GID = nobody, nobody
	return c
}

// Run runs a program on a node to its end and returns its output, whose last lines are in the error.
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

// Settings are a server's variables in file order.
type Settings []Setting

// Setting is the name of a variable, as in a configuration file, and its value.
type Setting struct{ Name, Value string }

// Add appends a variable.
func (s *Settings) Add(name string, value any) {
	*s = append(*s, Setting{name, fmt.Sprint(value)})
}

// AddServer appends the variables that all servers of the family share.
func (s *Settings) AddServer(h host.Host, data string, port, connections int) {
	s.Add("datadir", data)
	s.Add("bind-address", h.Addr())
	s.Add("port", port)
	s.Add("socket", "server.sock") // in the data directory: its path has a limit
	s.Add("pid-file", "server.pid")
	s.Add("skip-name-resolve", "ON")
	s.Add("max-connections", connections)
	s.Add("performance-schema", "OFF") // it takes a quarter of the memory
}

// InstallSettings returns the variables that depend on an installation of MySQL, and the buffer of InnoDB.
func InstallSettings(ctx context.Context, on files.System, in database.Installation, buffer int64) Settings {
	base := InstallBase(ctx, on, in, "mysqld")
	var s Settings
	s.Add("basedir", base)
	if d := FindBelow(ctx, on, base, "share/mysql/english", "share/english"); d != "" {
		s.Add("lc-messages-dir", filepath.Dir(d))
	}
	if d := FindBelow(ctx, on, base, "share/mysql/charsets", "share/charsets"); d != "" {
		s.Add("character-sets-dir", d)
	}
	s.Add("mysqlx", 0)
	s.Add("secure-file-priv", "NULL") // otherwise it wants a folder of the system's
	s.Add("innodb-buffer-pool-size", buffer)
	s.Add("innodb-redo-log-capacity", 32<<20)
	return s
}

// Text formats a configuration file with one section. Quotes keep # and ; from beginning a comment.
func (s Settings) Text(section string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", section)
	for _, v := range s {
		value := v.Value
		if strings.ContainsAny(value, "#;' ") {
			value = `"` + value + `"`
		}
		fmt.Fprintf(&b, "%s = %s\n", v.Name, value)
	}
	return b.String()
}

// Write writes the settings to a file that every user can read.
func (s Settings) Write(ctx context.Context, on files.System, path, section string) error {
	if err := files.WriteText(ctx, on, path, s.Text(section)); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Template is an empty data directory that the servers of all nodes start with a copy of.
type Template struct {
	Host host.Host // where it is
	Dir  string    // all of it
	Data string    // the copied files, in Dir
}

// InitializeTemplate has mysqld make a template in the folder <kind>-template of a node, with the settings and the
// user and schema that grant creates.
func InitializeTemplate(ctx context.Context, h host.Host, kind string, in database.Installation, s Settings, grant string) (*Template, error) {
	dir, on := filepath.Join(h.Dir(), kind+"-template"), h.Files()
	t := &Template{Host: h, Dir: dir, Data: filepath.Join(dir, "data")}
	script, config := filepath.Join(dir, "grant.sql"), filepath.Join(dir, "my.cnf")
	s = slices.Clone(s)
	s.Add("datadir", t.Data)
	s.Add("init-file", script)
	s.Add("skip-log-bin", "ON")
	for _, step := range []func() error{
		func() error { return files.Empty(ctx, on, dir) },
		func() error { return files.WriteText(ctx, on, script, grant) },
		func() error { return s.Write(ctx, on, config, "mysqld") },
		func() error { return GiveToServerUser(ctx, h, dir) },
		func() error {
			_, err := Run(ctx, h, AsServerUser(host.Command{
				Name: "mysqld --initialize", Path: in.Programs["mysqld"], Env: in.Env, Dir: dir,
				Args: []string{"--defaults-file=" + config, "--initialize-insecure"},
			}))
			return err
		},
		// auto.cnf is the server's identity. Each copy needs its own.
		func() error { return on.Remove(ctx, filepath.Join(t.Data, "auto.cnf")) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoTemplate, err)
		}
	}
	return t, nil
}

// Remove removes the template. A template that cannot be removed disappears with its node.
func (t *Template) Remove(ctx context.Context) {
	_ = t.Host.Files().Remove(context.WithoutCancel(ctx), t.Dir)
}
