package house

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	checkout = "../.."
	page     = "../../docs/architecture.md"
)

const beginsWith = "A room imports only rooms that follow it in this list"

func TestEveryPackageIsInArchitecture(t *testing.T) {
	rows := planned(t)
	named := map[string]bool{}
	for _, p := range packages(t) {
		row, ok := rowOf(p.Path, rows)
		if !ok {
			t.Errorf("docs/architecture.md has no row for %s", p.Path)
		}
		named[row] = true
	}
	for _, row := range rows {
		if !named[row] {
			t.Errorf("docs/architecture.md has a row for %s, which no package needs", row)
		}
	}
}

// A room must not import an earlier one, and no room imports the support of tests.
func TestRoomsImportOnlyLaterRooms(t *testing.T) {
	order := order(t)
	for _, p := range packages(t) {
		at := slices.Index(order, p.Room())
		if at < 0 {
			t.Errorf("docs/architecture.md does not list %s", p.Room())
			continue
		}
		for _, imported := range p.Imports {
			room, _, _ := strings.Cut(imported, "/")
			switch {
			case room == "test":
				t.Errorf("%s imports %s, which is for tests", p.Path, imported)
			case room != p.Room() && slices.Index(order, room) <= at:
				t.Errorf("%s imports %s: an arrow back", p.Path, imported)
			}
		}
	}
}

// Two packages must not have the same name. The adapters of Skerry's own systems have the names of the systems, like
// those of every database.
func TestPackageNamesAreUnique(t *testing.T) {
	owner := map[string]string{}
	for _, p := range packages(t) {
		name := path.Base(p.Path)
		if other, taken := owner[name]; taken && p.Path != "systems/"+name {
			t.Errorf("%s and %s have one name", other, p.Path)
		}
		owner[name] = p.Path
	}
}

// systemsImports lists the packages outside systems and cmd that may import packages of systems, and which.
var systemsImports = map[string]struct {
	reason  string
	imports []string
}{
	"database/hydra": {"the adapter of Hydra: its client, its interface's types, and the plan of balancers, wallet and DNS server",
		[]string{"systems/hydra/api", "systems/hydra/hydraclient", "systems/hydra/deploy", "systems/hydra/wallet"}},
	"database/metadata": {"the adapter of the metadata service: its clients and the types of its protocol",
		[]string{"systems/metadata", "systems/metadata/client", "systems/metadata/cluster", "systems/metadata/protocol"}},
}

// linked are modules of the systems and of the documentation that the program skerry must not link.
var linked = []string{"modernc.org/sqlite", "github.com/hanwen/go-fuse/v2", "go.etcd.io/raft/v3", "github.com/miekg/dns",
	"github.com/invopop/jsonschema"}

// The laboratory uses Skerry's own systems like other databases, through clients.
func TestOnlyAdaptersImportSystems(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if p.Room() != "systems" && strings.HasPrefix(imported, "systems/") && !slices.Contains(systemsImports[p.Path].imports, imported) {
				t.Errorf("%s imports %s: only the adapters of these systems may, and only their clients", p.Path, imported)
			}
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "skerry/cmd/skerry").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range strings.Fields(string(out)) {
		if slices.Contains(linked, module) {
			t.Fatalf("cmd/skerry links %s", module)
		}
	}
}

func packages(t *testing.T) []Package {
	t.Helper()
	return Packages(files(t))
}

// files returns all Go files of the checkout outside test/.
func files(t *testing.T) []File {
	t.Helper()
	all, err := ReadFiles(checkout)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	firstColumn = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	quoted      = regexp.MustCompile("`([^`]+)`")
)

// planned returns the names in the first column of the tables of rooms.
func planned(t *testing.T) (names []string) {
	t.Helper()
	_, rooms, _ := strings.Cut(text(t), "\n## Rooms: ")
	rooms, _, _ = strings.Cut(rooms, "\nOutside `internal`")
	for _, row := range firstColumn.FindAllStringSubmatch(rooms, -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	if len(names) == 0 {
		t.Fatal("docs/architecture.md has no table of rooms")
	}
	return names
}

// order returns the rooms from the highest to the lowest.
func order(t *testing.T) (rooms []string) {
	t.Helper()
	_, list, ok := strings.Cut(text(t), beginsWith)
	list, _, _ = strings.Cut(list, "\n\n")
	_, list, _ = strings.Cut(list, "sizes of the rooms:")
	for _, name := range quoted.FindAllStringSubmatch(list, -1) {
		rooms = append(rooms, name[1])
	}
	if !ok || len(rooms) == 0 {
		t.Fatal("docs/architecture.md does not say in which order rooms stand")
	}
	return rooms
}

// rowOf returns the row of a package: its own, or that of its folder.
func rowOf(p string, rows []string) (string, bool) {
	for _, row := range []string{p, path.Dir(p) + "/*"} {
		if slices.Contains(rows, row) {
			return row, true
		}
	}
	return "", false
}

func text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
