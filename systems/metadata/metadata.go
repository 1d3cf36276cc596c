// Package metadata defines the commands, results and errors of the metadata service: one tree of directories and small
// files, served over HTTP.
//
//	client ─► server (HTTP) ─► store ─┬─► changelog  durable, in order
//	                                  └─► tree       in memory, read without locks
//
// A command that changes the tree carries its time and limits. Replaying it, or applying it on another replica, therefore
// has the same outcome.
package metadata

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Op is the operation of a command.
type Op uint8

// Operations. Those that change the tree are logged. Their numbers are in logs on disk and must not be reused.
const (
	Invalid  Op = 0
	List     Op = 1 // ls: entries of a directory, sorted by the bytes of their names
	Stat     Op = 2 // stat: one entry
	Find     Op = 3 // find: entries below a directory, parents first
	Read     Op = 4 // read: content of a file
	Mkdir    Op = 5 // mkdir
	Rmdir    Op = 6 // rmdir: an empty directory
	Create   Op = 7 // create: an empty file
	Remove   Op = 8 // rm: a file, or with Recursive a whole directory
	Move     Op = 9
	Chmod    Op = 10 // chmod
	Write    Op = 11 // write: whole content of a file, created if missing
	Touch    Op = 12 // touch: modification time
	Delegate Op = 13 // delegate: a directory becomes virtual; its content leaves this server
	Adopt    Op = 14 // adopt: a virtual directory becomes an empty physical one
	Transact Op = 15 // transact: a Step of a transaction between servers, in Data
	last        = Transact
)

var opNames = [...]string{"", "ls", "stat", "find", "read", "mkdir", "rmdir", "create", "rm", "mv", "chmod", "write",
	"touch", "delegate", "adopt", "transact"}

func Ops() []Op {
	ops := make([]Op, 0, last)
	for o := List; o <= last; o++ {
		ops = append(ops, o)
	}
	return ops
}

// String returns the operation's name in the protocol, such as "ls".
func (o Op) String() string {
	if o > last {
		return "unknown"
	}
	return opNames[o]
}

// Internal reports whether servers alone use the operation, on each other's own trees. It is not in the text protocol.
func (o Op) Internal() bool { return o == Transact }

// Changes reports whether the operation changes the tree.
func (o Op) Changes() bool { return o >= Mkdir && o <= last }

// Command is one request. Fields that an operation does not use are zero.
type Command struct {
	Op   Op
	Path string // absolute and clean: "/a/b"
	To   string // Move: new path; Mkdir with Parents: an ancestor that must exist, if any; Transact: second path to lock

	Parents   bool // Mkdir: create missing parents, accept an existing directory
	Recursive bool // Remove: directories too, with their content
	Replace   bool // Move: replace a file or an empty directory at To
	Exclusive bool // Write: fail if the file exists; Delegate: fail if the directory is not empty
	Across    bool // Find: stop after a virtual directory; Move, Remove: include subtrees on other servers; List: return a stamp
	Long      bool // List: print all attributes

	Mode uint16 // Mkdir, Create, Write (of a new file), Chmod: permission bits
	Data []byte // Write: the content; Transact: a Step
	// Owner is the server of the directory or its parts (Delegate), or the required owner of a virtual directory (Rmdir).
	Owner string

	Limit int    // List, Find: maximum number of entries; 0: DefaultLimit
	After string // List: names after this one; Find: paths after this one

	Pattern  string // Find: pattern of names (path.Match); "": all
	Kind     Kind   // Find: kind of entries; 0: all
	MaxDepth int    // Find: levels below Path, which is level 0; < 0: no limit

	Time int64 // time of the change, ns since 1970; Touch: the time to set

	// Identity identifies a change whose outcome servers remember, so that repeating the request does not repeat the
	// change. "" means none. Seen is Request.Seen of the server that logs the change.
	Identity string
	Seen     uint64
}

// Kind is the kind of an entry.
type Kind uint8

// Kinds of entries. Their numbers are in logs and snapshots on disk.
const (
	Directory Kind = 1 // on this server
	Virtual   Kind = 2 // on another server
	File      Kind = 3
)

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

// Entry describes a directory or file.
type Entry struct {
	Name     string // Find: the path
	Kind     Kind
	ID       uint64 // does not change when the entry moves
	Mode     uint16 // permission bits
	Size     int64  // bytes of a file, entries of a directory
	Modified int64  // ns since 1970
	Owner    string // server of a virtual directory
}

func (e Entry) Time() time.Time { return time.Unix(0, e.Modified) }

// Result is the answer to a command. Entries are those listed, found or described, or changed by Mkdir, Create and Write.
type Result struct {
	Err     error // nil, or an error of one of the classes in errors.go
	Entries []Entry
	Next    string // List, Find: After of the next page; "" on the last page
	// Data is the content of Read. For Find with Across it is the owner of the virtual directory Next. For List with
	// Across it is a stamp that no other state of the listed range has; empty if no stamp is available.
	Data []byte
}

// Defaults and limits.
const (
	DefaultLimit = 1000   // entries per page
	MaxLimit     = 10_000 // entries per page

	DefaultDirMode  = 0o755
	DefaultFileMode = 0o644
	MaxMode         = 0o7777

	MaxName  = 255     // bytes
	MaxPath  = 4096    // bytes
	MaxDepth = 1000    // levels of directories
	MaxFile  = 1 << 20 // bytes
)

// Service runs commands: a store, a client of a server, or a router that forwards commands to servers.
type Service interface {
	// Do runs commands that passed Check one after another, and returns as many results.
	Do(ctx context.Context, commands []Command) []Result
}

// Request is what a client sends with a request that it may have to repeat on another replica. Each change also has an
// Identity, which servers remember.
//
// Servers remember a limited number of identities. They must not mistake a forgotten change for a new one:
//
//  1. A replica hangs with a change that it has not read yet.
//  2. The client repeats the change on another replica. The change is made, and later forgotten.
//  3. The first replica resumes and logs the change. No server remembers it.
//
// A change therefore carries the log positions at the time of its first request. It is refused if a change logged after
// that position may have been forgotten.
type Request struct {
	// Identity is the prefix of the identities of changes that have none; "" if the client sends none.
	Identity string
	// Seen has the log positions that servers reported before the first request.
	Seen Seen
	// Again is true if the request was sent before, possibly to another server.
	Again bool
}

type requestKey struct{}

func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

func RequestFrom(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}

// MaxIdentified bounds the changes of a request that get identities, since servers remember a limited number.
const MaxIdentified = 1024

// AddIdentities gives each change without an identity its own.
func AddIdentities(identity string, commands []Command) []Command {
	if identity == "" || len(commands) > MaxIdentified {
		return commands
	}
	commands = slices.Clone(commands)
	for i := range commands {
		if commands[i].Identity == "" && commands[i].Op.Changes() {
			commands[i].Identity = identity + "." + strconv.Itoa(i)
		}
	}
	return commands
}

// Seen has log positions by server name. "" is a server that does not share its tree.
type Seen map[string]uint64

// String formats positions as "NAME=INDEX,NAME=INDEX".
func (s Seen) String() string {
	all := make([]string, 0, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, name+"="+strconv.FormatUint(s[name], 10))
	}
	return strings.Join(all, ",")
}

// ParseSeen parses String's output and ignores malformed parts.
func ParseSeen(text string) Seen {
	s := make(Seen)
	for one := range strings.SplitSeq(text, ",") {
		name, index, ok := strings.Cut(one, "=")
		if n, err := strconv.ParseUint(index, 10, 64); ok && err == nil {
			s[name] = n
		}
	}
	return s
}

// Add advances positions to those of more.
func (s Seen) Add(more Seen) {
	for name, index := range more {
		s[name] = max(s[name], index)
	}
}

// RetryIdentity returns a change's identity for the n-th retry by a router, whose result differs from earlier tries.
func RetryIdentity(identity string, n int) string {
	if identity == "" {
		return ""
	}
	return OriginalIdentity(identity) + "~" + strconv.Itoa(n)
}

// OriginalIdentity returns the identity from which RetryIdentity derived this one.
func OriginalIdentity(identity string) string {
	first, _, _ := strings.Cut(identity, "~")
	return first
}
