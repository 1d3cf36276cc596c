// Package metadata is the vocabulary of the metadata service: one directory tree of
// directories and small files, served over HTTP.
//
//	client ─► server (HTTP) ─► store ─┬─► journal   durable, in order
//	                                  └─► tree      in memory, read without locks
//
// A Command asks for one operation, a Result answers it. A command that changes the tree
// is decided before it runs: it carries the time and the limits that it was taken with, so
// that replaying it, or applying it on another replica, has the same outcome.
package metadata

import "time"

// Op is what a command does.
type Op uint8

// The operations. Those that change the tree go through the journal. The numbers are in
// journals: they are never given to another operation.
const (
	Invalid  Op = 0
	List     Op = 1  // ls: the entries of a directory, in the order of their names' bytes
	Stat     Op = 2  // stat: what is known about one entry
	Find     Op = 3  // find: entries below a directory, parents first
	Read     Op = 4  // read: the content of a file
	Mkdir    Op = 5  // mkdir
	Rmdir    Op = 6  // rmdir: an empty directory
	Create   Op = 7  // create: an empty file
	Remove   Op = 8  // rm: a file; with Recursive a directory with all below it
	Move     Op = 9  // mv
	Chmod    Op = 10 // chmod
	Write    Op = 11 // write: a file's whole content, created where it is missing
	Touch    Op = 12 // touch: the time of the last change
	Delegate Op = 13 // delegate: a directory becomes virtual, and all below it leaves this server
	Adopt    Op = 14 // adopt: a virtual directory becomes an empty physical one
	Transact Op = 15 // transact: a Step of a transaction between servers, in Data
	last        = Transact
)

var opNames = [...]string{"", "ls", "stat", "find", "read", "mkdir", "rmdir", "create", "rm", "mv", "chmod", "write", "touch", "delegate", "adopt", "transact"}

// Ops are all operations, in the order of their numbers.
func Ops() []Op {
	ops := make([]Op, 0, last)
	for o := List; o <= last; o++ {
		ops = append(ops, o)
	}
	return ops
}

// String is the operation's name in the protocol: "ls", "mkdir".
func (o Op) String() string {
	if o > last {
		return "unknown"
	}
	return opNames[o]
}

// Internal tells whether the operation is one of servers among themselves: it is not in
// the protocol's text, and about a server's own tree alone.
func (o Op) Internal() bool { return o == Transact }

// Changes tells whether the operation changes the tree.
func (o Op) Changes() bool { return o >= Mkdir && o <= last }

// Command is one request. Fields that an operation does not use are zero.
type Command struct {
	Op   Op
	Path string // absolute and clean: "/a/b"
	To   string // Move: the new path; Mkdir with Parents: the one of them that must exist, if any; Transact: locked too

	Parents   bool // Mkdir: missing parents are made, and an existing directory is no error
	Recursive bool // Remove: directories too, with all below them
	Replace   bool // Move: a file, or an empty directory, at To is replaced
	Exclusive bool // Write: an error where the file exists; Delegate: where the directory is not empty
	Across    bool // Find: stop behind a virtual directory; Move, Remove: what is on other servers goes along; List: with a stamp
	Long      bool // List: print all that is known, not names alone

	Mode  uint16 // Mkdir, Create, Write (of a new file), Chmod: permission bits
	Data  []byte // Write: the content; Transact: a Step
	Owner string // Delegate: the server that the directory is on, or several, with commas between them, that have parts of it; Rmdir: of a virtual one that goes if it has this owner

	Limit int    // List, Find: at most so many entries; 0 for DefaultLimit
	After string // List: names behind this one; Find: paths behind this one

	Pattern  string // Find: names that match (path.Match); "" for all
	Kind     Kind   // Find: entries of this kind; 0 for all
	MaxDepth int    // Find: levels below Path, whose own is 0; < 0 for all

	Time int64 // of a change, ns since 1970; Touch: the time to set

	// Identity of a change is remembered with what came of it, so that to ask for it again does
	// nothing twice; "" for none. Seen is Request.Seen of the server that logs it.
	Identity string
	Seen     uint64
}

// Kind is what an entry is.
type Kind uint8

// The kinds of entries. The numbers are in journals and snapshots.
const (
	Directory Kind = 1 // a physical node: it lives on this server
	Virtual   Kind = 2 // a directory that lives on another server
	File      Kind = 3
)

// String is the kind's name in the protocol.
func (k Kind) String() string {
	switch k {
	case Directory:
		return "directory"
	case Virtual:
		return "virtual"
	case File:
		return "file"
	}
	return "unknown"
}

// Entry is what is known about a directory or file.
type Entry struct {
	Name     string // of Find: the path
	Kind     Kind
	ID       uint64 // stays the same while the entry moves
	Mode     uint16 // permission bits
	Size     int64  // bytes of a file, entries of a directory
	Modified int64  // ns since 1970
	Owner    string // the server of a virtual directory
}

// Time is when the entry was last changed.
func (e Entry) Time() time.Time { return time.Unix(0, e.Modified) }

// Result answers a command. Entries are those of List and Find, the one of Stat, and the
// one that Mkdir, Create or Write made or changed.
type Result struct {
	Err     error // nil, or an error of a Kind below (errors.Is)
	Entries []Entry
	Next    string // List, Find: After of the next page; "" where this one is the last
	// Data is what Read reads; of Find with Across the owner of the virtual directory that Next is; of List with
	// Across a stamp, which no other state of what was listed has. Where there is none, that cannot be told.
	Data []byte
}

// Defaults and limits.
const (
	DefaultLimit = 1000   // entries of a page
	MaxLimit     = 10_000 // entries of a page at most

	DefaultDirMode  = 0o755
	DefaultFileMode = 0o644
	MaxMode         = 0o7777

	MaxName  = 255     // bytes of a name
	MaxPath  = 4096    // bytes of a path
	MaxDepth = 1000    // levels of directories
	MaxFile  = 1 << 20 // bytes of a file
)
