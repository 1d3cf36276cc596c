// Package bundle is the transfer format of workers that do not see the run directory: a packed copy of the
// plan, and a stream of results.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/record"
)

// PackPlan packs what workers need to measure trials of a run: run.json, the files that the experiment
// names, and current results of the trials.
func PackPlan(dir string, run record.Run, trials []int) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	t := tar.NewWriter(zip)
	home, err := packFiles(t, run)
	if err != nil {
		return nil, fmt.Errorf("pack plan: %w", err)
	}
	run.File.Path = path.Join(home, filepath.Base(run.File.Path))
	text, err := json.Marshal(run)
	if err == nil {
		err = addFile(t, "run.json", text)
	}
	for _, id := range trials {
		name := path.Join("trials", strconv.Itoa(id), "trial.json")
		standing, readErr := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, readErr, addFile(t, name, standing))
	}
	if err := errors.Join(err, t.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("pack plan: %w", err)
	}
	return out.Bytes(), nil
}

// packFiles adds the files that the experiment names. It returns the folder of the experiment's own file,
// deep enough for names that begin with ../.
func packFiles(t *tar.Writer, run record.Run) (string, error) {
	up := 0
	for name := range run.Files {
		if filepath.IsAbs(name) {
			return "", advice.With(
				fmt.Errorf("the experiment names %s by an absolute path", name),
				"use a path relative to the experiment's file",
			)
		}
		up = max(up, strings.Count(name, "../"))
	}
	home := "files" + strings.Repeat("/below", up)
	for name := range run.Files {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(run.File.Path), name))
		if err != nil {
			return "", err
		}
		if err := addFile(t, path.Join(home, filepath.ToSlash(name)), text); err != nil {
			return "", err
		}
	}
	return home, nil
}

func addFile(t *tar.Writer, name string, text []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := t.Write(text)
	return err
}

// Unpack extracts a packed plan into dir.
func Unpack(packed io.Reader, dir string) error {
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpack plan: %w", err)
	}
	root, err := os.OpenRoot(dir) // rejects names that lead out of dir
	if err != nil {
		return fmt.Errorf("unpack plan: %w", err)
	}
	defer root.Close()
	for t := tar.NewReader(zip); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = extractFile(root, h, t)
		}
		if err != nil {
			return fmt.Errorf("unpack plan: %w", err)
		}
	}
}

func extractFile(root *os.Root, h *tar.Header, from io.Reader) error {
	if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

func packDir(w io.Writer, dir string) error {
	zip := gzip.NewWriter(w)
	t := tar.NewWriter(zip)
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	for _, name := range names {
		if err != nil {
			break
		}
		var text []byte
		var rel string
		if text, err = os.ReadFile(name); err == nil {
			rel, err = filepath.Rel(dir, name)
		}
		if err == nil {
			err = addFile(t, filepath.ToSlash(rel), text)
		}
	}
	return errors.Join(err, t.Close(), zip.Close())
}
