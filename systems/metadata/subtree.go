package metadata

import (
	"hash/fnv"
	"io"
	"strconv"
	"strings"
)

// Directories of a server's own tree that are not part of the shared tree.
const (
	// Subtrees contains the subtrees that the server holds.
	Subtrees = "/.subtrees"
	// Incoming contains the subtrees that are being copied to the server.
	Incoming = "/.incoming"
)

// Subtree is the location of a subtree: the directory Base of a server's own tree. Its text form is the owner of a
// virtual directory: "SERVER:/.subtrees/ID.EPOCH".
//
// A subtree's directory may be split over several servers. Server then has their names in order, separated by commas.
// Each server has a directory Base with the entries that PartIndex assigns to it, and everything below them.
type Subtree struct {
	Server string
	ID     string // random, constant over the subtree's life
	// Epoch increases when the subtree moves to another server or to another place in the shared tree, so that outdated
	// owners lead nowhere. 0 is not written.
	Epoch uint64
}

// ParseSubtree parses an owner. ok is false if the text has another form.
func ParseSubtree(owner string) (s Subtree, ok bool) {
	server, base, _ := strings.Cut(owner, ":")
	s, ok = ParseBase(base)
	s.Server = server
	return s, ok && server != ""
}

// ParseBase parses the path of a subtree, complete or incoming, on its server.
func ParseBase(path string) (s Subtree, ok bool) {
	name, ok := strings.CutPrefix(path, Subtrees+"/")
	if !ok {
		if name, ok = strings.CutPrefix(path, Incoming+"/"); !ok {
			return s, false
		}
	}
	id, epoch, numbered := strings.Cut(name, ".")
	if numbered {
		n, err := strconv.ParseUint(epoch, 10, 63)
		if err != nil || n == 0 {
			return s, false
		}
		s.Epoch = n
	}
	s.ID = id
	return s, id != "" && !strings.Contains(id, "/")
}

// Servers returns the servers of the subtree: one, or one for each part.
func (s Subtree) Servers() []string { return strings.Split(s.Server, ",") }

// Parts returns each part as a subtree of one server.
func (s Subtree) Parts() []Subtree {
	parts := make([]Subtree, 0, 1)
	for _, server := range s.Servers() {
		s.Server = server
		parts = append(parts, s)
	}
	return parts
}

// PartIndex returns which of parts holds a name. Data on disk depends on this function: it must not change.
func PartIndex(name string, parts int) int {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	return int(h.Sum64() % uint64(parts))
}

func (s Subtree) name() string {
	if s.Epoch == 0 {
		return s.ID
	}
	return s.ID + "." + strconv.FormatUint(s.Epoch, 10)
}

// Base returns the subtree's directory on its server.
func (s Subtree) Base() string { return Subtrees + "/" + s.name() }

// Owner returns the owner of the virtual directory of the subtree.
func (s Subtree) Owner() string { return s.Server + ":" + s.Base() }

func (s Subtree) NextEpoch() Subtree {
	s.Epoch++
	return s
}
