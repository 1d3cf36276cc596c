package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
)

// Companion is a program that is built and packaged together with the running one.
type Companion struct {
	Name string
	// Variable is the environment variable that may hold the path of the program.
	Variable string
}

// Programs of this module.
var (
	Skerry = Companion{Name: "skerry", Variable: "SKERRY_PROGRAM"}
	Hydra  = Companion{Name: "hydra", Variable: "SKERRY_HYDRA"}
	Metad  = Companion{Name: "metad", Variable: "SKERRY_METAD"}
)

var ErrNoCompanion = errors.New("program not found")

// versionTimeout bounds the run of a program's version command.
const versionTimeout = 10 * time.Second

// Find returns the absolute path of the program: the value of Variable, else the file next to the running executable,
// else the one in PATH.
func (c Companion) Find() (string, error) {
	if path := os.Getenv(c.Variable); path != "" {
		return c.at(path, c.Variable)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if path := filepath.Join(filepath.Dir(self), c.Name); executable(path) {
		return path, nil
	}
	path, err := exec.LookPath(c.Name)
	if err != nil {
		return "", advice.With(fmt.Errorf("%w: %s is neither next to %s nor in PATH", ErrNoCompanion, c.Name, self),
			"run make build or install the package, which have it; or set %s to its path", c.Variable)
	}
	return filepath.Abs(path)
}

// at returns the absolute path of the program that a user named by means of source.
func (c Companion) at(path, source string) (string, error) {
	if !executable(path) {
		return "", advice.With(fmt.Errorf("%w: %s of %s is no executable file", ErrNoCompanion, path, source), "set %s to the path of %s", source, c.Name)
	}
	return filepath.Abs(path)
}

// Install returns the program as an installation of a database: the one at from, or the one that Find returns if from
// is empty. It runs the program to read its version.
func (c Companion) Install(database, from string) (Installation, error) {
	in := Installation{Database: database}
	var path string
	var err error
	if from != "" {
		in.Source = FromPath
		path, err = c.at(from, "--from "+database)
	} else {
		path, err = c.Find()
	}
	if err != nil {
		return in, err
	}
	in.Programs = map[string]string{c.Name: path}
	in.Version, err = c.version(path)
	return in, err
}

// version returns the version that the program at path prints.
func (c Companion) version(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "version", "--json").Output()
	var printed struct {
		Version string `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(text, &printed)
	}
	if err != nil {
		return "", advice.With(fmt.Errorf("reading the version of %s: %w", path, err), "is it %s? %s version --json prints it", c.Name, path)
	}
	return printed.Version, nil
}
