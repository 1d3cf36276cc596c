package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"skerry/internal/load"
)

// Properties of the client of a database that a user described. Those of the protocol's
// own client, or whatever the program understands, stand beside them.
const (
	PropProtocol = "exec.protocol"
	PropProgram  = "exec.program" // a JSON list: the program and its arguments
)

// ErrProperty marks properties that no client can be opened with.
var ErrProperty = errors.New("bad property of a database of one's own")

// Open returns a client: the protocol's own one, or one that starts the program.
func Open(ctx context.Context, builtin Builtin, properties map[string]string) (load.Client, error) {
	rest := maps.Clone(properties)
	maps.DeleteFunc(rest, func(name, _ string) bool { return strings.HasPrefix(name, "exec.") })
	if text := properties[PropProgram]; text != "" {
		var argv []string
		if err := json.Unmarshal([]byte(text), &argv); err != nil || len(argv) == 0 {
			return nil, fmt.Errorf("%w: %s: %q is no list of texts in JSON", ErrProperty, PropProgram, text)
		}
		return openProgram(ctx, argv, rest)
	}
	switch protocol := properties[PropProtocol]; {
	case protocol == HTTPKV:
		return openHTTP(rest)
	case !isProtocol(builtin, protocol):
		return nil, fmt.Errorf("%w: %s: there is no protocol %q; known: %s", ErrProperty, PropProtocol, protocol, strings.Join(protocolNames(builtin), ", "))
	default:
		db, _ := builtin.Protocol(protocol)
		return db.Open(ctx, rest)
	}
}

// isProtocol tells whether a client speaks a protocol.
func isProtocol(builtin Builtin, protocol string) bool {
	_, ok := builtin.Protocol(protocol)
	return ok || protocol == HTTPKV
}

// protocolNames are those that clients speak.
func protocolNames(builtin Builtin) []string { return append(builtin.Protocols(), HTTPKV) }
