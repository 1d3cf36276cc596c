package metadata

import (
	"fmt"
	"path"
)

// Check tells what is wrong with a command before any tree is asked, and fills in its
// defaults.
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
			return &Error{c.Path, fmt.Errorf("%w: the root stays as it is", ErrInvalid)}
		}
	}
	if c.Mode > MaxMode {
		return &Error{c.Path, fmt.Errorf("%w mode: %o, at most %o", ErrInvalid, c.Mode, MaxMode)}
	}
	switch c.Op {
	case Mkdir:
		c.Mode = either(c.Mode, DefaultDirMode)
	case Create, Write:
		c.Mode = either(c.Mode, DefaultFileMode)
		if len(c.Data) > MaxFile {
			return &Error{c.Path, fmt.Errorf("a file of %d bytes: %w: at most %d", len(c.Data), ErrTooLong, MaxFile)}
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
		return &Error{c.Path, fmt.Errorf("%w: a directory cannot move into itself, %s", ErrInvalid, Quote(c.To))}
	}
	return nil
}

// PageSize is the most entries that a page has: Limit, or what stands for none.
func (c *Command) PageSize() int { return either(c.Limit, DefaultLimit) }

func (c *Command) checkPage() error {
	if c.Limit < 0 || c.Limit > MaxLimit {
		return fmt.Errorf("%w limit: 1 to %d", ErrInvalid, MaxLimit)
	}
	if len(c.After) > MaxPath {
		return fmt.Errorf("a cursor of %d bytes: %w", len(c.After), ErrTooLong)
	}
	if _, err := path.Match(c.Pattern, ""); err != nil {
		return fmt.Errorf("%w pattern %s", ErrInvalid, Quote(c.Pattern))
	}
	return nil
}

func either[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}
