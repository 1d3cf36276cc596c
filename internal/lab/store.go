package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A state directory has one directory for each lab. Both are locked by flock on the
// directory itself, which needs no room on the disk and which the kernel undoes however
// the holder ends:
//
//	STATE/.skerry              we made STATE, and remove it when it is empty
//	STATE/labs/                locked while labs are taken in or looked for
//	STATE/labs/NAME/           locked by the lab's owner
//	           id -> NAME-hex  the lab's ID, of which all other names are made
//	           journal         what is about to be made; see journal.go
//	           lab.json        what the lab is, once it is up
//	           links.json      the links as they are
//	           hosts           /etc/hosts of the nodes
//	           ns/             a mount; below it one more for each network namespace
//	           link.sock       the emulator's
//	           link.log
type store struct{ dir string }

// place is where one lab's files are.
type place struct {
	store store
	name  string
}

func (s store) labs() string { return filepath.Join(s.dir, "labs") }

func (s store) lab(name string) place { return place{s, name} }

func (p place) dir() string { return filepath.Join(p.store.labs(), p.name) }

func (p place) file(name string) string { return filepath.Join(p.dir(), name) }

func (p place) namespaces() string { return p.file("ns") }

func (p place) namespace(node string) string {
	return filepath.Join(p.namespaces(), node)
}

// Names of a lab's files.
const (
	idFile        = "id"
	journalFile   = "journal"
	stateFile     = "lab.json"
	linksFile     = "links.json"
	hostsFile     = "hosts"
	resolverFile  = "resolv.conf"
	socketFile    = "link.sock"
	logFile       = "link.log"
	tunnelLogFile = "wireguard.log"
	// madeFile marks directories that belong to skerry though a user chose their path.
	madeFile = ".skerry"
)

func openStore(dir string) (store, error) {
	if dir == "" {
		dir = DefaultStateDir()
	}
	dir, err := filepath.Abs(dir)
	return store{dir}, err
}

// names are those of the labs in the store, sorted.
func (s store) names() ([]string, error) {
	entries, err := os.ReadDir(s.labs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
