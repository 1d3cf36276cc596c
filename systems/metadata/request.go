package metadata

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

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
