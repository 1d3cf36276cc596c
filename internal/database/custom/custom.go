// Package custom runs databases that a user defines in a YAML file. The file lists shell commands that start
// servers, check them, form the cluster and change membership.
//
//	definition ──► Database ── Start ──► cluster ──► sh -c COMMAND on a node
//	                             └─ servers through package daemon
//
//	client:  protocol: redis ──► the built-in client
//	         program: [./c]  ──► a process per worker, one JSON object per line
package custom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/load"
)

// Prefix starts the name of every custom database.
const Prefix = "exec:"

// ErrOption marks an invalid option.
var ErrOption = errors.New("invalid custom-database option")

// Builtin looks up built-in databases by client protocol or by name.
type Builtin interface {
	Protocol(name string) (database.Database, bool)
	Protocols() []string
	Named(name string) (database.Database, bool)
}

// Database is one that a user described.
type Database struct {
	def     Definition
	builtin Builtin
}

var (
	_ database.Database = (*Database)(nil)
	_ database.Anchored = (*Database)(nil)
	_ database.Scripted = (*Database)(nil)
)

// New returns the database of a definition.
func New(d Definition, builtin Builtin) *Database { return &Database{def: d, builtin: builtin} }

func (d *Database) Name() string { return Prefix + d.def.Name }

func (d *Database) Commands() []string { return d.def.commands() }

func (d *Database) Capabilities() database.Capabilities {
	can := d.def.Can
	c := database.Capabilities{
		Scan: can.Scan, Resize: len(d.def.Join) > 0, LeaveAbrupt: len(d.def.LeaveAbrupt) > 0, Replication: can.Replication, Restart: can.Restart,
		MinNodes: can.MinNodes, MaxNodes: can.MaxNodes, Memory: int64(can.Memory),
	}
	p, builtin := d.client(d.def.Client.Protocol)
	if !builtin {
		c.LazyTables, c.NoLogin, c.UserClient = true, true, true
		return c
	}
	own := p.Capabilities()
	c.LazyTables, c.NoLogin, c.NeedsUser = own.LazyTables, own.NoLogin, own.NeedsUser
	return c
}

func (d *Database) Fixed(nodes []string, _ database.Options) map[string]string {
	fixed := make(map[string]string)
	for _, i := range d.def.Fixed {
		if i >= 0 && i < len(nodes) {
			fixed[nodes[i]] = "the definition lists it under fixed"
		}
	}
	return fixed
}

func (d *Database) Check(nodes int, options database.Options) error {
	if d.def.noLab != nil {
		return d.def.noLab
	}
	if nodes < d.def.Can.MinNodes {
		return fmt.Errorf("%w: %d nodes, want at least %d", ErrOption, nodes, d.def.Can.MinNodes)
	}
	if err := d.checkProtocol(); err != nil {
		return err
	}
	_, err := d.mergeOptions(options)
	return err
}

func (d *Database) checkProtocol() error {
	if p := d.def.Client.Protocol; p != "" && !isProtocol(d.builtin, p) {
		return fmt.Errorf("%w: client.protocol %s: unknown%s", ErrDefinition, p, database.SpellingHint(p, protocolNames(d.builtin)))
	}
	return nil
}

// mergeOptions returns the defaults, overridden by the given options, which must have the same types.
func (d *Database) mergeOptions(given database.Options) (map[string]any, error) {
	merged := maps.Clone(d.def.Options)
	if merged == nil {
		merged = make(map[string]any)
	}
	known := slices.Sorted(maps.Keys(d.def.Options))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		was, ok := merged[name]
		if !ok {
			return nil, fmt.Errorf("%w: unknown %s%s", ErrOption, name, database.SpellingHint(name, known))
		}
		if scalarKind(was) != "text" && scalarKind(was) != scalarKind(given[name]) {
			return nil, fmt.Errorf("%w: %s: %v is no %s, as its default %v is", ErrOption, name, given[name], scalarKind(was), was)
		}
		merged[name] = given[name]
	}
	return merged, nil
}

// scalarKind returns the type of a scalar, as error messages name it.
func scalarKind(v any) string {
	switch v.(type) {
	case bool:
		return "true or false"
	case int, int64, uint64, float64:
		return "number"
	}
	return "text"
}

// Find implements database.Database: at from, in the installation of a built-in database, or in PATH.
func (d *Database) Find(_, from string) (database.Installation, error) {
	in := database.Installation{Database: d.Name(), Programs: make(map[string]string)}
	var dirs []string
	switch {
	case from != "":
		root, err := filepath.Abs(from)
		if err != nil {
			return in, fmt.Errorf("finding %s: %w", d.Name(), err)
		}
		in.Dir, dirs = root, []string{root, filepath.Join(root, "bin"), filepath.Join(root, "sbin"), filepath.Join(root, "usr/bin"), filepath.Join(root, "usr/sbin")}
	case d.def.Install.Database != "":
		other, ok := d.builtin.Named(d.def.Install.Database)
		if !ok {
			return in, fmt.Errorf("%w: install.database: there is no %s", ErrDefinition, d.def.Install.Database)
		}
		found, err := other.Find("", "")
		if err != nil {
			return in, fmt.Errorf("finding %s: %w", d.Name(), err)
		}
		in.Dir, in.Env, in.Version, in.Programs = found.Dir, found.Env, found.Version, maps.Clone(found.Programs)
	}
	for _, p := range d.def.Install.Programs {
		if in.Programs[p] != "" {
			continue
		}
		path, err := findProgram(p, dirs)
		if err != nil {
			err = fmt.Errorf("finding %s: %w", d.Name(), err)
			if d.def.Install.Advice != "" {
				err = advice.With(err, "%s", d.def.Install.Advice)
			}
			return in, err
		}
		in.Programs[p] = path
	}
	if err := d.checkClientProgram(); err != nil {
		return in, err
	}
	if d.def.Install.Version != "" {
		var err error
		if in.Version, err = d.runVersion(in); err != nil {
			return in, fmt.Errorf("finding %s: %w", d.Name(), err)
		}
	}
	if in.Version == "" {
		in.Version = "unknown"
	}
	return in, nil
}

func (d *Database) checkClientProgram() error {
	if len(d.def.Client.Program) == 0 || strings.Contains(d.def.Client.Program[0], "{{") {
		return nil
	}
	program := d.def.Client.Program[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(d.def.dir, program)
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("finding the client's program of %s: %w", d.Name(), err)
	}
	return nil
}

func findProgram(program string, dirs []string) (string, error) {
	if dirs == nil {
		path, err := exec.LookPath(program)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %s in %s or its bin and sbin folders: %w", program, dirs[0], os.ErrNotExist)
}

// runVersion runs install.version and returns the part of the output that matches the pattern.
func (d *Database) runVersion(in database.Installation) (string, error) {
	cmd := exec.Command("/bin/sh", "-c", d.def.Install.Version)
	cmd.Env = append(os.Environ(), environment(in)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("install.version: %w: %s", err, strings.TrimSpace(string(out)))
	}
	m := regexp.MustCompile(d.def.Install.Pattern).FindSubmatch(out) // it was checked
	if m == nil {
		return "", fmt.Errorf("install.version printed nothing that matches %s: %q", d.def.Install.Pattern, out)
	}
	return string(m[1]), nil
}

func environment(in database.Installation) []string {
	dirs := make(map[string]bool)
	for _, path := range in.Programs {
		dirs[filepath.Dir(path)] = true
	}
	path := append(slices.Sorted(maps.Keys(dirs)), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	return append([]string{"PATH=" + strings.Join(path, ":")}, in.Env...)
}

// Properties implements database.Configurable: a program may read any.
func (d *Database) Properties() []string {
	if db, ok := d.builtin.Protocol(d.def.Client.Protocol); ok {
		return database.ClientProperties(db)
	}
	if d.def.Client.Protocol == HTTPKV {
		return []string{PropServers, PropSpread}
	}
	return []string{"*"}
}

func (d *Database) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	return Open(ctx, d.builtin, properties)
}

// Kind is the registry entry for all custom databases. It opens their clients from properties alone.
type Kind struct {
	*Database // without a definition
	builtin   Builtin
}

var _ database.Describer = (*Kind)(nil)

// ErrNotDescribed is returned for operations that need a definition file.
var ErrNotDescribed = errors.New("a custom database needs a definition file")

// NewKind returns the registry entry.
func NewKind(builtin Builtin) *Kind {
	return &Kind{builtin: builtin, Database: New(Definition{}, builtin)}
}

func (*Kind) Name() string { return database.Exec }

func (*Kind) Check(int, database.Options) error { return missingDescription() }

func (*Kind) Find(string, string) (database.Installation, error) {
	return database.Installation{}, missingDescription()
}

func (*Kind) Start(context.Context, database.Env) (database.Cluster, error) {
	return nil, missingDescription()
}

func missingDescription() error {
	return advice.With(ErrNotDescribed, "write database: {exec: FILE}")
}

func (k *Kind) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	return Open(ctx, k.builtin, properties)
}

func (k *Kind) Describe(path string, text []byte) (database.Database, error) {
	d, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	db := New(d, k.builtin)
	return db, db.checkProtocol()
}
