package custom

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/machine/files"
)

// users is where a machine lists its users: name:password:UID:GID:...
const users = "/etc/passwd"

// credential is the user that the server runs as on a machine, 0 for who looks after it.
func (s Server) credential(ctx context.Context, on files.System) (uid, gid uint32, err error) {
	if s.User == "" {
		return 0, 0, nil
	}
	text, err := files.Read(ctx, on, users)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == s.User {
			id, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", users, s.User, err)
			}
			group, err := strconv.ParseUint(f[3], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", users, s.User, err)
			}
			return uint32(id), uint32(group), nil
		}
	}
	return 0, 0, fmt.Errorf("unknown user %s", s.User)
}
