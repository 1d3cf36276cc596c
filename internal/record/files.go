package record

import (
	"encoding/json"
	"io"
	"os"

	"skerry/internal/base/atomicfile"
)

func writeJSON(path string, v any) error {
	return atomicfile.File(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// pointTo makes the symbolic link name point at target, in place of an older link. What
// is there and is no link is a user's own and stays.
func pointTo(name, target string) error {
	if st, err := os.Lstat(name); err == nil && st.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	return atomicfile.Link(name, target)
}
