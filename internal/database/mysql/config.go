package mysql

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"skerry/internal/machine/files"
)

// Settings are a server's variables in the order in which they are written.
type Settings []Setting

// Setting is one variable: its name as in a configuration file and its value.
type Setting struct{ Name, Value string }

// Add appends a variable.
func (s *Settings) Add(name string, value any) {
	*s = append(*s, Setting{name, fmt.Sprint(value)})
}

// Text is the settings as a configuration file with one section. Values are quoted, since
// a number sign or a semicolon would begin a comment.
func (s Settings) Text(section string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", section)
	for _, v := range s {
		value := v.Value
		if strings.ContainsAny(value, "#;' ") {
			value = `"` + value + `"`
		}
		fmt.Fprintf(&b, "%s = %s\n", v.Name, value)
	}
	return b.String()
}

// Write writes the settings as a file that servers of any user can read.
func (s Settings) Write(ctx context.Context, on files.System, path, section string) error {
	if err := files.WriteText(ctx, on, path, s.Text(section)); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}
