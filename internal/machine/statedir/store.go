// Package statedir is the directory in which a machine keeps what it knows of its parts of
// labs: a directory for each, and the locks that tell whose it is.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Store is a state directory. It has one directory for each lab. Both are locked by flock on
// the directory itself, which needs no room on the disk and which the kernel undoes however
// the holder ends:
//
//	STATE/.skerry              we made STATE, and remove it when it is empty
//	STATE/labs/                locked while labs are taken in or looked for
//	STATE/labs/NAME/           locked by the lab's owner
//	           id -> NAME-hex  the lab's ID, of which all other names are made
//	           journal         what is about to be made; see package undo
//	           lab.json        what the lab is, once it is up
//	           links.json      the links as they are
//	           hosts           /etc/hosts of the nodes
//	           ns/             a mount; below it one more for each network namespace
//	           link.sock       the emulator's
//	           link.log
type Store struct{ dir string }

// Place is where one lab's files are.
type Place struct {
	Store Store
	Name  string // the lab's
}

// Names of a lab's files.
const (
	ID        = "id"
	Journal   = "journal"
	Record    = "lab.json"
	Note      = "links.json"
	Hosts     = "hosts"
	Resolver  = "resolv.conf"
	Socket    = "link.sock"
	EngineLog = "link.log"
	TunnelLog = "wireguard.log"
	// Mark marks directories that belong to skerry though a user chose their path.
	Mark = ".skerry"
)

// Open returns the state directory at a path, which need not be there yet.
func Open(dir string) (Store, error) {
	dir, err := filepath.Abs(dir)
	return Store{dir}, err
}

// Dir is the path of the state directory.
func (s Store) Dir() string { return s.dir }

func (s Store) labs() string { return filepath.Join(s.dir, "labs") }

// Lab is the place of the lab of that name.
func (s Store) Lab(name string) Place { return Place{s, name} }

// Dir is the lab's directory.
func (p Place) Dir() string { return filepath.Join(p.Store.labs(), p.Name) }

// File is the path of one of the lab's files.
func (p Place) File(name string) string { return filepath.Join(p.Dir(), name) }

// Namespaces is the directory below which the lab's network namespaces are mounted.
func (p Place) Namespaces() string { return p.File("ns") }

// Namespace is the path of a node's network namespace.
func (p Place) Namespace(node string) string { return filepath.Join(p.Namespaces(), node) }

// Container is the path of the network namespace of a node's container. No node's name has
// a +.
func (p Place) Container(node string) string { return p.Namespace(node + "+container") }

// Names are those of the labs in the store, sorted.
func (s Store) Names() ([]string, error) {
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
