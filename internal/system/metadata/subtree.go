package metadata

import (
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

func (s Subtree) name() string {
	if s.Epoch == 0 {
		return s.ID
	}
	return s.ID + "." + strconv.FormatUint(s.Epoch, 10)
}

// Base is the subtree's directory on its server.
func (s Subtree) Base() string { return Subtrees + "/" + s.name() }

// Coming is the directory in which it is made before it is the server's.
func (s Subtree) Coming() string { return Incoming + "/" + s.name() }

// Owner is the text of its virtual directory.
func (s Subtree) Owner() string { return s.Server + ":" + s.Base() }

// Next is the subtree in its next epoch.
func (s Subtree) Next() Subtree {
	s.Epoch++
	return s
}
