package custom

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/machine/files"
)

// passwdFile is where a machine lists its users: name:password:UID:GID:...
const passwdFile = "/etc/passwd"

// lookupUser is the user that the server runs as on a machine, 0 for who looks after it.
func (s Server) lookupUser(ctx context.Context, on files.System) (uid, gid uint32, err error) {
	if s.User == "" {
		return 0, 0, nil
	}
	text, err := files.Read(ctx, on, passwdFile)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == s.User {
			id, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", passwdFile, s.User, err)
			}
			group, err := strconv.ParseUint(f[3], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", passwdFile, s.User, err)
			}
			return uint32(id), uint32(group), nil
		}
	}
	return 0, 0, fmt.Errorf("unknown user %s", s.User)
}
