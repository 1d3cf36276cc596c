package custom

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

// Definition is the file of a custom database. Strings are templates (see templateData). A lab needs server, count and
// clear. A cluster that Skerry did not start needs the client only.
type Definition struct {
	// Name of the database; records and reports call it exec:NAME.
	Name string `yaml:"name" jsonschema:"required,pattern=^[a-z][a-z0-9-]*$"`
	// Description is a line for people.
	Description string `yaml:"description"`
	// Install says where its programs are.
	Install Install `yaml:"install"`
	// Can says what it can do.
	Can Can `yaml:"can"`
	// Options are the settings under database.options, with their defaults.
	Options map[string]any `yaml:"options"`
	// Server is the process on each node.
	Server Server `yaml:"server"`
	// Form makes one cluster of the running servers. Steps run on the first node by default.
	Form []Step `yaml:"form"`
	// Ready is a command that succeeds on a member once the cluster serves, server.up by default.
	Ready string `yaml:"ready"`
	// State is a command that prints a member's state in a word, "up" by default.
	State string `yaml:"state"`
	// Join makes a node with a running server a member. Leave ends the membership of a serving one, LeaveAbrupt
	// that of a lost one. UndoJoin repairs a failed join. Steps run on the node, those of LeaveAbrupt and UndoJoin on
	// another member.
	Join        []Step `yaml:"join"`
	UndoJoin    []Step `yaml:"undo_join"`
	Leave       []Step `yaml:"leave"`
	LeaveAbrupt []Step `yaml:"leave_abrupt"`
	// Fixed lists nodes that cannot leave, by their place from 0 on.
	Fixed []int `yaml:"fixed"`
	// Count prints the number of rows as whole numbers, which are added up. Clear empties the table. Both run on the
	// first member.
	Count string `yaml:"count"`
	Clear string `yaml:"clear"`
	// Client is how the load driver talks to it.
	Client Client `yaml:"client" jsonschema:"required"`
	// Timeout bounds a start, a change of membership, and the repair after a join that failed.
	Timeout unit.Duration `yaml:"timeout" jsonschema:"default=2m"`

	dir   string // that paths are relative to
	noLab error  // why no lab can start it; nil if it has server, count and clear
}

// Install locates the programs: in --from, in the installation of a built-in database, or in PATH.
type Install struct {
	// Database is a built-in database whose installation holds the programs.
	Database string `yaml:"database"`
	// Programs must all be there. Their folders come first in the commands' PATH.
	Programs []string `yaml:"programs"`
	// Version is a command that prints the version; Pattern is a regular expression with one group that finds it.
	Version string `yaml:"version"`
	Pattern string `yaml:"pattern" jsonschema:"default=([0-9]+(?:\\.[0-9]+)+)"`
	// Advice is what to do where a program is missing.
	Advice string `yaml:"advice"`
}

// Can says what the database can do.
type Can struct {
	Scan        bool `yaml:"scan"`
	Replication bool `yaml:"replication"`
	// Restart is whether a member that was halted keeps its data.
	Restart  bool       `yaml:"restart"`
	MinNodes int        `yaml:"min_nodes" jsonschema:"default=1,minimum=1"`
	MaxNodes int        `yaml:"max_nodes" jsonschema:"minimum=0"`
	Memory   unit.Bytes `yaml:"memory"` // a member's
}

// Server is the process on each node.
type Server struct {
	// Files are written below the node's directory before the server starts.
	Files map[string]string `yaml:"files"`
	// Prepare is a command that runs before the first start, not before a revival.
	Prepare string `yaml:"prepare"`
	// Start is the server's command, which stays in the foreground. Begin it with exec, so that signals reach the server.
	Start string `yaml:"start" jsonschema:"required"`
	// Ports on the node's address that must be free.
	Ports []string `yaml:"ports"`
	// Up is a command that succeeds once the server answers.
	Up string `yaml:"up" jsonschema:"required"`
	// Grace is what it gets between SIGTERM and SIGKILL.
	Grace unit.Duration `yaml:"grace" jsonschema:"default=10s"`
	// User runs the server, for databases that refuse root.
	User string `yaml:"user"`
	// OneByOne starts each server when the one before it is up.
	OneByOne bool `yaml:"one_by_one"`
}

// Step is one step of a change: exactly one of run, until and stop.
type Step struct {
	// Run is a command that must succeed.
	Run string `yaml:"run"`
	// Until is a command that is repeated until it succeeds.
	Until string `yaml:"until"`
	// Stop ends the server of the node that leaves; without it that is the last step.
	Stop bool `yaml:"stop"`
	// On is where the command runs: the node, the first member, a member other than the node, or each member.
	On string `yaml:"on" jsonschema:"enum=node,enum=first,enum=other,enum=each"`
	// Accepted marks the step with which the change is accepted, by default the first one that runs.
	Accepted bool `yaml:"accepted"`
}

// Alternatives: a step does one thing.
func (Step) Alternatives() [][]string { return [][]string{{"run", "until", "stop"}} }

// Client is how the load driver talks to the database: a protocol, or a program.
type Client struct {
	// Protocol is a known one: a built-in client speaks it.
	Protocol string `yaml:"protocol"`
	// Program speaks the line protocol on its standard input and output, one process per worker. A path with a slash
	// is relative to the file.
	Program []string `yaml:"program"`
	// Properties tell the client how to reach the cluster.
	Properties map[string]string `yaml:"properties"`
}

// Alternatives: the client is one or the other.
func (Client) Alternatives() [][]string { return [][]string{{"protocol", "program"}} }

// ErrDefinition marks a definition that cannot be used.
var ErrDefinition = errors.New("invalid database definition")

// Parse reads the text of a definition file. Paths are relative to the folder of path. Errors in the text are
// strict.Problems. Database.Check reports the keys that a lab needs.
func Parse(path string, text []byte) (Definition, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Definition{}, fmt.Errorf("placing the definition of a database: %w", err)
	}
	root, err := strict.Parse(path, text)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{dir: dir}
	problems := strict.Decode(root, &d, "")
	if len(problems) == 0 {
		problems, d.noLab = d.check(root), d.checkLab(root)
	}
	return d, problems.Sorted().AsError()
}

// checkLab returns an error if a key that a lab needs is missing.
func (d Definition) checkLab(root *strict.Node) error {
	var missing strict.Problems
	for _, key := range []string{"server", "count", "clear"} {
		if n := root.Get(key); n == nil || n.Kind == strict.Null {
			missing = append(missing, strict.Problem{Pos: root.Pos, Message: key + " is missing",
				Hint: "a lab needs it; a cluster that Skerry did not start (database.cluster) needs the client only", Err: ErrDefinition})
		}
	}
	return missing.Sorted().AsError()
}

// check finds errors that decoding cannot find.
func (d Definition) check(root *strict.Node) (ps strict.Problems) {
	fail := func(path, hint, format string, args ...any) {
		pos := root.Pos
		if n := root.At(path); n != nil {
			pos = n.Pos
		}
		ps = append(ps, strict.Problem{Pos: pos, Path: path, Message: path + ": " + fmt.Sprintf(format, args...), Hint: hint, Err: ErrDefinition})
	}
	for path, text := range d.templates() {
		if err := d.checkTemplate(text); err != nil {
			err = explainTemplateError(text, err)
			fail(path, "see docs/own-database.md for what a template may name", "%v", err)
			if n := root.At(path); n != nil {
				ps[len(ps)-1].Pos = templatePos(n, err)
			}
		}
	}
	for name, steps := range d.phases() {
		for i, s := range steps {
			path := fmt.Sprintf("%s[%d]", name, i)
			switch {
			case s.Run == "" && s.Until == "" && !s.Stop:
				fail(path, "", "a step needs run, until or stop")
			case s.Stop && name != "leave":
				fail(path, "", "stop is allowed in leave only")
			}
		}
	}
	if re, err := regexp.Compile(d.Install.Pattern); err != nil || re.NumSubexp() != 1 {
		fail("install.pattern", "", "want a regular expression with one group")
	}
	if d.Client.Protocol == "" && len(d.Client.Program) == 0 {
		fail("client", "", "want a protocol or a program")
	}
	if len(d.Join) > 0 != (len(d.Leave) > 0) {
		fail("join", "give both, or none", "join and leave need each other")
	}
	if d.Can.MaxNodes > 0 && d.Can.MaxNodes < d.Can.MinNodes {
		fail("can.max_nodes", "", "%d is below min_nodes %d", d.Can.MaxNodes, d.Can.MinNodes)
	}
	for path := range d.Server.Files {
		if !filepath.IsLocal(path) {
			fail("server.files", "", "%s is not below the node's directory", path)
		}
	}
	return ps
}

func (d Definition) phases() map[string][]Step {
	return map[string][]Step{"form": d.Form, "join": d.Join, "undo_join": d.UndoJoin, "leave": d.Leave, "leave_abrupt": d.LeaveAbrupt}
}

func (d Definition) templates() map[string]string {
	texts := map[string]string{
		"server.prepare": d.Server.Prepare, "server.start": d.Server.Start, "server.up": d.Server.Up,
		"ready": d.Ready, "state": d.State, "count": d.Count, "clear": d.Clear,
	}
	for name, text := range d.Server.Files {
		texts["server.files."+name] = text
	}
	for i, text := range d.Server.Ports {
		texts[fmt.Sprintf("server.ports[%d]", i)] = text
	}
	for name, text := range d.Client.Properties {
		texts["client.properties."+name] = text
	}
	for name, steps := range d.phases() {
		for i, s := range steps {
			texts[fmt.Sprintf("%s[%d].run", name, i)] = s.Run
			texts[fmt.Sprintf("%s[%d].until", name, i)] = s.Until
		}
	}
	return texts
}

// commands lists all commands that the definition runs, each after its key.
func (d Definition) commands() (all []string) {
	texts := d.templates()
	texts["install.version"] = d.Install.Version
	texts["client.program"] = strings.Join(d.Client.Program, " ")
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		isValue := strings.HasPrefix(key, "server.files.") || strings.HasPrefix(key, "server.ports[") ||
			strings.HasPrefix(key, "client.properties.")
		if text := strings.TrimSpace(texts[key]); text != "" && !isValue {
			all = append(all, key+": "+text)
		}
	}
	return all
}

func (d Definition) clientCommand() []string {
	p := slices.Clone(d.Client.Program)
	if len(p) > 0 && strings.ContainsRune(p[0], '/') && !filepath.IsAbs(p[0]) {
		p[0] = filepath.Join(d.dir, p[0])
	}
	return p
}
