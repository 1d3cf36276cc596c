package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownFiles are the files in rooms that work with nodes which use files of the machine they run on, with the reason.
var ownFiles = map[string]string{
	"database/access.go":            "reads the secrets of clients, which are in this process",
	"database/mongodb/try.go":       "tries programs that a person gave, before there is a node",
	"database/ndb/build.go":         "builds the programs for the cache of installations",
	"database/custom/definition.go": "reads the file that a person gave",
	"database/custom/custom.go":     "finds the program that is installed",
	"database/custom/program.go":    "a client's program is a child of the driver",
	"database/external/scratch.go":  "keeps the name of a table on the machine that runs skerry",
	"database/hbase/bridge.go":      "a client's bridge is a child of the driver",
	"database/hbase/compile.go":     "compiles a client's bridge where the driver is",
	"lab/config.go":                 "finds its own program",
	"event/stress/stress.go":        "runs on the node, as a program",
}

// local are the functions that use files of the calling machine. The other functions of these packages use no files:
// errors, the environment.
var local = map[string][]string{
	"os": {
		"Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Executable", "Geteuid", "Getuid", "Getwd", "Hostname", "Lchown",
		"Link", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp", "Open", "OpenFile", "OpenRoot", "Pipe", "ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll",
		"Rename", "Stat", "StartProcess", "Symlink", "Truncate", "WriteFile",
	},
	"os/exec":                         {"Command", "CommandContext", "LookPath"},
	"path/filepath":                   {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"golang.org/x/sys/unix":           {"Kill", "Mount", "Open", "Stat", "Statfs", "Unmount"},
	"syscall":                         {"Kill", "Mount", "Open", "Stat", "Statfs", "Unmount"},
	"skerry/internal/base/atomicfile": {"Write", "SyncDir"},
	"skerry/internal/kernel/procfs":   {"Children", "IO", "Of", "ReadStat"},
	"skerry/internal/kernel/netns":    {"Do", "Enter", "ID", "Make", "Throwaway"},
	"skerry/internal/machine/host":    {"NamespaceHost", "Node", "NewNode"},
}

// Databases, labs with their overlays, and events do not know the location of nodes: they use the nodes' files and
// connections through host.Host. A call of a local function works as long as all nodes are on this machine, so that
// other tests do not detect it.
func TestNodesAreUsedThroughHost(t *testing.T) {
	unused := map[string]bool{}
	for name := range ownFiles {
		unused[name] = true
	}
	for _, room := range []string{"database", "lab", "event"} {
		err := filepath.WalkDir(filepath.Join(checkout, "internal", room), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(filepath.Join(checkout, "internal"), path)
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir // a program that runs on the node
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			calls := localCalls(t, path)
			if _, may := ownFiles[name]; may && len(calls) > 0 {
				delete(unused, name)
				return nil
			}
			for _, call := range calls {
				t.Errorf("internal/%s calls %s: access a node's files, processes and network through its host.Host", name, call)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range unused {
		t.Errorf("internal/%s calls nothing of this machine's and need not be excepted", name)
	}
}

func TestLocalCallsAreDetected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.go")
	const source = `package x
import (
	"os"
	fp "path/filepath"
	"skerry/internal/machine/host"
)
func f(h host.Host) { _, _ = os.ReadFile("a"); _, _ = fp.Glob("b"); _ = h.(host.NamespaceHost); _ = os.ErrNotExist; os.Getenv("c") }
`
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(localCalls(t, path), " "); got != "os.ReadFile path/filepath.Glob skerry/internal/machine/host.NamespaceHost" {
		t.Errorf("got %s", got)
	}
}

// localCalls returns the functions of local that a file uses.
func localCalls(t *testing.T, path string) (calls []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{}
	for _, i := range file.Imports {
		from := strings.Trim(i.Path.Value, `"`)
		name := filepath.Base(from)
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = from
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local[imported[x.Name]], s.Sel.Name) {
				calls = append(calls, imported[x.Name]+"."+s.Sel.Name)
			}
		}
		return true
	})
	return calls
}
