package metadata

import (
	"hash/fnv"
	"io"
	"strconv"
	"strings"
)

// Directories of each server's own tree that are not part of the whole.
const (
	// Subtrees has the subtrees that are on the server.
	Subtrees = "/.subtrees"
	// Incoming has those that are on their way to it.
	Incoming = "/.incoming"
)

// Subtree is where a subtree is: the directory Base of a server's own tree. Its text is
// the owner of a virtual directory, "SERVER:/.subtrees/ID.EPOCH".
//
// The directory of a subtree may be parted: Server is several names then, in order and with
// commas between them. Each of these servers has a directory Base with the entries whose names'
// hash is its (PartOf), and all that is below those.
type Subtree struct {
	Server string
	ID     string // random, of the subtree as long as it is
	// Epoch grows whenever the subtree gets another server or another place in the whole
	// tree, so that what was known of it before leads nowhere. 0 is not written.
	Epoch uint64
}

// ParseSubtree reads an owner; ok is false where it is another text.
func ParseSubtree(owner string) (s Subtree, ok bool) {
	server, base, _ := strings.Cut(owner, ":")
	s, ok = ParseBase(base)
	s.Server = server
	return s, ok && server != ""
}

// ParseBase reads the path that a subtree has on its server, or the path of one that comes
// in.
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

// Servers are those that have it: one, or those of its parts.
func (s Subtree) Servers() []string { return strings.Split(s.Server, ",") }

// Parts are the parts as subtrees of one server.
func (s Subtree) Parts() []Subtree {
	parts := make([]Subtree, 0, 1)
	for _, server := range s.Servers() {
		s.Server = server
		parts = append(parts, s)
	}
	return parts
}

// PartIndex is which of so many parts of a directory has the entry of a name. What is in the parts
// depends on it: it stays as it is.
func PartIndex(name string, parts int) int {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // it never fails
	return int(h.Sum64() % uint64(parts))
}

func (s Subtree) name() string {
	if s.Epoch == 0 {
		return s.ID
	}
	return s.ID + "." + strconv.FormatUint(s.Epoch, 10)
}

// Base is the subtree's directory on its server.
func (s Subtree) Base() string { return Subtrees + "/" + s.name() }

// IncomingBase is the directory in which it is made before it is the server's.
func (s Subtree) IncomingBase() string { return Incoming + "/" + s.name() }

// Owner is the text of its virtual directory.
func (s Subtree) Owner() string { return s.Server + ":" + s.Base() }

// NextEpoch is the subtree in its next epoch.
func (s Subtree) NextEpoch() Subtree {
	s.Epoch++
	return s
}
