package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// files are those that an experiment names. Each is read once: what a trial works with is
// what was checked, whatever becomes of the file meanwhile.
type files struct {
	mu   sync.Mutex
	read map[string][]byte // by path
}

func (f *files) get(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.read[path]; ok {
		return data, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if f.read == nil {
		f.read = map[string][]byte{}
	}
	f.read[path] = data
	return data, nil
}

// digests are the SHA-256 sums of what was read, in hexadecimal, by the path relative to dir.
func (f *files) digests(dir string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sums := make(map[string]string, len(f.read))
	for path, data := range f.read {
		if rel, err := filepath.Rel(dir, path); err == nil {
			path = rel
		}
		sum := sha256.Sum256(data)
		sums[path] = hex.EncodeToString(sum[:])
	}
	return sums
}

// Digests are the SHA-256 sums, in hexadecimal, of the files that the experiment and its
// trials name (matrices, traces, property files, descriptions of databases), by their path
// relative to the experiment's file.
func (e Experiment) Digests() map[string]string {
	sums := map[string]string{}
	if e.origin == nil {
		return sums
	}
	maps.Copy(sums, e.origin.files.digests(e.origin.dir))
	for _, c := range e.origin.cells {
		maps.Copy(sums, c.Experiment.Digests())
	}
	return sums
}

// readFile reads a file that the experiment names, relative to it.
func (e Experiment) readFile(path string) ([]byte, error) {
	if e.origin == nil {
		return os.ReadFile(path)
	}
	return e.origin.files.get(e.path(path))
}

// path is where a file is that the experiment names.
func (e Experiment) path(file string) string {
	if file != "" && e.origin != nil && !filepath.IsAbs(file) {
		return filepath.Join(e.origin.dir, file)
	}
	return file
}
