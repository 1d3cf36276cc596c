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

// clientTimeout bounds a call of a client; an overloaded controller answers within seconds.
const clientTimeout = 2 * time.Minute

// Client runs the command-line clients of an executor with the user's login and context.
type Client struct {
	// Advice is given if a program is missing.
	Advice string
	// Env is added to the environment. Drop, if set, selects variables to remove.
	Env  []string
	Drop func(name string) bool
}

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

// Run returns what the program printed to standard output.
func (c Client) Run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, stderr bytes.Buffer
	cmd.Env = c.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, advice.With(fmt.Errorf("%w: %w", ErrUnavailable, err), "%s", c.Advice)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), nil
}
