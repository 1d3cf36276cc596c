package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

// clientTimeout is how long a site's client may take: a controller under load answers within seconds.
const clientTimeout = 2 * time.Minute

// Client runs the programs by which a site's users reach an engine, so that their logins and
// contexts are this sweep's too.
type Client struct {
	// Mend says what to do where a program is missing.
	Advice string
	// Env is added to this process's environment, without the variables that Dropped names; nil drops none.
	Env  []string
	Drop func(name string) bool
}

// Environ returns the environment of the programs.
func (c Client) Environ() []string {
	env := os.Environ()
	if c.Drop != nil {
		env = slices.DeleteFunc(env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return c.Drop(name)
		})
	}
	return append(env, c.Env...)
}

// Run runs a client to its end and returns what it printed.
func (c Client) Run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, said bytes.Buffer
	cmd.Env = c.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &said
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, advice.With(fmt.Errorf("%w: %w", ErrUnavailable, err), "%s", c.Advice)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}
