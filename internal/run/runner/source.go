package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

// ErrSource means that an experiment cannot run as it is written; nothing was started.
var ErrSource = errors.New("usage")

// ReadExperiment reads the experiment file of a new run.
func ReadExperiment(path string, set, from []string, fast bool) (record.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return record.File{}, fmt.Errorf("%w: read experiment: %w", ErrSource, err)
	}
	return record.File{Path: path, Text: string(text), Set: set, Fast: fast, From: from}, nil
}

// ReadRunSource reads the experiment of the run in dir. A non-empty from replaces the recorded paths of
// installations.
func ReadRunSource(dir string, from []string) (record.File, error) {
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

// SetSource parses and checks the experiment. The error lists all mistakes, or wraps ErrSource for mistakes
// in other arguments.
func (c *Config) SetSource(source record.File, databases map[string]database.Database) (err error) {
	c.Source, c.Databases = source, databases
	if c.From, err = parseInstallations(source.From); err != nil {
		return err
	}
	if c.Experiment, err = experiment.Parse(source.Path, []byte(source.Text), source.Set, source.Fast); err != nil {
		return err
	}
	return experiment.CheckCapabilities(c.Experiment, databases)
}

func parseInstallations(args []string) (map[string]string, error) {
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

// ParseTrials parses a list of trials: "17", "3,5-8", "@FILE" for all lines of a file, or "@FILE:2" for its
// second line.
func ParseTrials(text string) ([]int, error) {
	if file, ok := strings.CutPrefix(text, "@"); ok {
		return parseTrialFile(file)
	}
	var ids []int
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 1 || last < first || last-first > 1_000_000 {
			return nil, fmt.Errorf("%w: invalid trials %q: want 17 or 3,5-8", ErrSource, part)
		}
		for id := first; id <= last; id++ {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: invalid trials %q: want 17 or 3,5-8", ErrSource, text)
	}
	return ids, nil
}

func parseTrialFile(file string) ([]int, error) {
	text, err := os.ReadFile(file)
	line := 0
	if err != nil {
		if name, n, ok := strings.Cut(file, ":"); ok {
			if line, err = strconv.Atoi(n); err != nil || line < 1 {
				return nil, fmt.Errorf("%w: invalid line %q of a task file: lines count from 1", ErrSource, n)
			}
			text, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read task file: %w", ErrSource, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if line > len(lines) {
		return nil, fmt.Errorf("%w: task file %s has %d lines, no line %d", ErrSource, file, len(lines), line)
	}
	if line > 0 {
		lines = lines[line-1 : line]
	}
	return ParseTrials(strings.Join(lines, ","))
}
