package metadata

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check validates a command without looking at a tree, and fills in its defaults.
func (c *Command) Check() error {
	if c.Op == Invalid || c.Op > last {
		return fmt.Errorf("%w operation", ErrInvalid)
	}
	if err := CheckPath(c.Path); err != nil {
		return err
	}
	if c.Path == "/" {
		switch c.Op {
		case Rmdir, Remove, Move, Create, Write, Delegate, Adopt:
			return &Error{c.Path, fmt.Errorf("%w: the root cannot be changed", ErrInvalid)}
		}
	}
	if c.Mode > MaxMode {
		return &Error{c.Path, fmt.Errorf("%w mode: %o, at most %o", ErrInvalid, c.Mode, MaxMode)}
	}
	switch c.Op {
	case Mkdir:
		c.Mode = cmp.Or(c.Mode, DefaultDirMode)
	case Create, Write:
		c.Mode = cmp.Or(c.Mode, DefaultFileMode)
		if len(c.Data) > MaxFile {
			return &Error{c.Path, fmt.Errorf("file of %d bytes: %w: at most %d", len(c.Data), ErrTooLong, MaxFile)}
		}
	case Move:
		return c.checkMove()
	case Delegate:
		if c.Owner == "" || len(c.Owner) > MaxName {
			return &Error{c.Path, fmt.Errorf("%w owner", ErrInvalid)}
		}
	case List, Find:
		return c.checkPage()
	case Transact:
		if c.To != "" {
			return CheckPath(c.To)
		}
	}
	return nil
}

func (c *Command) checkMove() error {
	if err := CheckPath(c.To); err != nil {
		return err
	}
	if c.To == "/" {
		return &Error{c.To, ErrExists}
	}
	if c.To != c.Path && Under(c.To, c.Path) {
		return &Error{c.Path, fmt.Errorf("%w: cannot move a directory into itself, %s", ErrInvalid, Quote(c.To))}
	}
	return nil
}

// PageSize is the maximum number of entries of a page: Limit or DefaultLimit.
func (c *Command) PageSize() int { return cmp.Or(c.Limit, DefaultLimit) }

func (c *Command) checkPage() error {
	if c.Limit < 0 || c.Limit > MaxLimit {
		return fmt.Errorf("%w limit: 1 to %d", ErrInvalid, MaxLimit)
	}
	if len(c.After) > MaxPath {
		return fmt.Errorf("page position of %d bytes: %w", len(c.After), ErrTooLong)
	}
	if _, err := path.Match(c.Pattern, ""); err != nil {
		return fmt.Errorf("%w pattern %s", ErrInvalid, Quote(c.Pattern))
	}
	return nil
}

// CheckPath validates a path. A valid path is absolute, has at most MaxPath bytes and MaxDepth levels, and consists of
// valid names. "/" is the root.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("path of %d bytes: %w: at most %d", len(path), ErrTooLong, MaxPath)
	}
	if path == "/" {
		return nil
	}
	if path == "" || path[0] != '/' {
		return &Error{path, fmt.Errorf("%w path: must begin with /", ErrInvalid)}
	}
	levels := 0
	for rest := path[1:]; ; levels++ {
		name, more, found := strings.Cut(rest, "/")
		if err := checkName(name); err != nil {
			return &Error{path, err}
		}
		if !found {
			break
		}
		rest = more
	}
	if levels+1 > MaxDepth {
		return fmt.Errorf("path of %d levels: %w: at most %d", levels+1, ErrTooLong, MaxDepth)
	}
	return nil
}

// CheckName validates a name: valid UTF-8 of 1 to MaxName bytes without "/" and control characters, not "." or "..".
func CheckName(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("%w name: contains /", ErrInvalid)
	}
	return checkName(name)
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w path: empty name or trailing /", ErrInvalid)
	case name == "." || name == "..":
		return fmt.Errorf("%w name: %q", ErrInvalid, name)
	case len(name) > MaxName:
		return fmt.Errorf("name of %d bytes: %w: at most %d", len(name), ErrTooLong, MaxName)
	}
	ascii := true
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			ascii = false
		} else if name[i] < ' ' || name[i] == 0x7f {
			return fmt.Errorf("%w name: control character %q", ErrInvalid, name[i])
		}
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w name: not UTF-8", ErrInvalid)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w name: control character %q", ErrInvalid, r)
		}
	}
	return nil
}

// Split returns the parent and the last name of a valid path other than "/".
func Split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Under reports whether path is dir or below dir.
func Under(path, dir string) bool {
	if dir == "/" {
		return true
	}
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}
