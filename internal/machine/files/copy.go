package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Copy makes a folder a copy of another, of the same machine or not: its folders and plain
// files. What else is in it, sockets for example, is left out.
func Copy(ctx context.Context, to System, target string, from System, dir string) error {
	if err := copyDir(ctx, to, target, from, dir); err != nil {
		return fmt.Errorf("copying %s: %w", dir, err)
	}
	return nil
}

func copyDir(ctx context.Context, to System, target string, from System, dir string) error {
	if err := to.MakeDir(ctx, target); err != nil {
		return err
	}
	entries, err := from.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		into := filepath.Join(target, filepath.Base(e.Path))
		switch {
		case e.Mode.IsDir():
			err = copyDir(ctx, to, into, from, e.Path)
		case e.Mode.IsRegular():
			err = copyFile(ctx, to, into, from, e.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, to System, target string, from System, path string) error {
	in, err := from.Open(ctx, path, 0)
	if err != nil {
		return err
	}
	return errors.Join(to.Write(ctx, target, 0o644, in), in.Close())
}
