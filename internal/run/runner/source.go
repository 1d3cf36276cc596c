package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

// ErrSource says that an experiment cannot be run as it is written: nothing was started.
var ErrSource = errors.New("usage")

// ReadFile reads an experiment that a new run is to be made of.
func ReadFile(path string, set, from []string, fast bool) (record.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return record.File{}, fmt.Errorf("%w: reading the experiment: %w", ErrSource, err)
	}
	return record.File{Path: path, Text: string(text), Set: set, Fast: fast, From: from}, nil
}

// ReadRun reads the experiment that the run in dir was started with. Where from is not empty it
// stands in place of the paths of then: the same build may lie elsewhere.
func ReadRun(dir string, from []string) (record.File, error) {
	d, err := record.Open(dir)
	if err != nil {
		return record.File{}, err
	}
	source := d.Run.File
	if len(from) > 0 {
		source.From = from
	}
	return source, nil
}

// SetSource makes a source the experiment of c. The error is every mistake of the
// experiment, or ErrSource where it is about what stands beside it.
func (c *Config) SetSource(source record.File, databases map[string]database.Database) (err error) {
	c.Source, c.Databases = source, databases
	if c.From, err = installations(source.From); err != nil {
		return err
	}
	if c.Experiment, err = experiment.Parse(source.Path, []byte(source.Text), source.Set, source.Fast); err != nil {
		return err
	}
	return experiment.Check(c.Experiment, databases)
}

// installations splits NAME=PATH arguments.
func installations(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range args {
		name, path, ok := strings.Cut(s, "=")
		if !ok || name == "" || path == "" {
			return nil, fmt.Errorf("%w: %q is not NAME=PATH", ErrSource, s)
		}
		out[name] = path
	}
	return out, nil
}
