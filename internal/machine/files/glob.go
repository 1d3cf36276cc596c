package files

import (
	"context"
	"path/filepath"
	"strings"
)

// Glob are the paths that an absolute pattern of path/filepath matches, sorted. As there, what
// cannot be looked at does not match.
func Glob(ctx context.Context, on System, pattern string) []string {
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range found {
			next = append(next, match(ctx, on, dir, part)...)
		}
		found = next
	}
	return found
}

// match are the paths in a folder that a part of a pattern matches.
func match(ctx context.Context, on System, dir, part string) (found []string) {
	if !strings.ContainsAny(part, `*?[\`) {
		if path := filepath.Join(dir, part); Exists(ctx, on, path) {
			return []string{path}
		}
		return nil
	}
	entries, _ := on.List(ctx, dir) // what can be looked at
	for _, e := range entries {
		if ok, _ := filepath.Match(part, filepath.Base(e.Path)); ok { // a bad pattern matches nothing
			found = append(found, e.Path)
		}
	}
	return found
}
