package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"skerry/internal/machine/host"
)

// colour matches the terminal's colours, which redis-cli prints into pipes too.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// runCLI runs redis-cli --cluster on the control node.
func (c *cluster) runCLI(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	p, err := c.Env.Control.Start(ctx, host.Command{
		Name: c.kind.cli, Path: c.Env.Installation.Programs[c.kind.cli], Env: c.Env.Installation.Env,
		Args: append([]string{"--cluster"}, args...), Stdout: &out, Stderr: &out,
	})
	if err != nil {
		return fmt.Errorf("starting redis-cli: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("redis-cli --cluster %s: %w", args[0], context.Cause(ctx)), p.Kill())
	}
	text := colour.ReplaceAllString(out.String(), "")
	c.Log.Debug("redis-cli", "args", args, "error", p.Err(), "output", text)
	if p.Err() != nil {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		return fmt.Errorf("redis-cli --cluster %s: %w: %s", strings.Join(args, " "), p.Err(),
			strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}
