package metadata

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Request is what a client says of a request that it may have to make again, of another replica,
// since the first does not answer. Each change has an Identity besides, which servers remember.
//
// They remember so many, and must not take one that they have forgotten for a new one:
//
//  1. a replica hangs with a change that it has not read yet;
//  2. another one, asked again, makes it, and it is forgotten after many others;
//  3. the first one wakes up and logs the change. Nothing is known of it.
//
// So a change says how far the servers' logs were before it was first asked for, and is refused
// where a change of after that may have been forgotten.
type Request struct {
	// Identity is what those of its changes begin with that have none; "" for none.
	Identity string
	// Seen is how far the logs were, as a server has told.
	Seen Seen
	// Again says that the request was made before, perhaps of another server.
	Again bool
}

type requestKey struct{}

// WithRequest is a context of a request.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom is what is known of the request that a context belongs to.
func RequestFrom(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}

// MaxIdentified is how many changes of a request have an identity: servers remember so many.
const MaxIdentified = 1024

// AddIdentities gives changes an identity that have none, each for itself.
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

// Seen is how far the logs of servers are, by name; "" is one that shares its tree with none.
type Seen map[string]uint64

// String is "NAME=INDEX,NAME=INDEX".
func (s Seen) String() string {
	all := make([]string, 0, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, name+"="+strconv.FormatUint(s[name], 10))
	}
	return strings.Join(all, ",")
}

// ParseSeen reads what String wrote; of what is none, nothing is known.
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

// Add takes over what another one has seen further.
func (s Seen) Add(more Seen) {
	for name, index := range more {
		s[name] = max(s[name], index)
	}
}

// RetryIdentity is a change's identity where a router asks for it once more, since the map of subtrees
// has changed: what the try before came to is not its answer. FirstTry is that of the first.
func RetryIdentity(identity string, n int) string {
	if identity == "" {
		return ""
	}
	return OriginalIdentity(identity) + "~" + strconv.Itoa(n)
}

// OriginalIdentity is the identity that NextTry was given.
func OriginalIdentity(identity string) string {
	first, _, _ := strings.Cut(identity, "~")
	return first
}
