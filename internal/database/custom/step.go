package custom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"skerry/internal/machine/host"
)

const outputLines = 8

func (c *cluster) runCommand(ctx context.Context, at host.Host, text string, d templateData) (string, error) {
	script, err := render(text, d)
	if err != nil {
		return "", err
	}
	var out, complaint bytes.Buffer
	p, err := at.Start(ctx, host.Command{
		Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, Env: environment(c.Env.Installation), Dir: at.Dir(),
		Stdout: &out, Stderr: &complaint,
	})
	if err != nil {
		return "", fmt.Errorf("on %s: %w", at.Name(), err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("on %s: %s: %w", at.Name(), firstLine(script), context.Cause(ctx)), p.Kill())
	}
	c.Log.Debug("command", "node", at.Name(), "command", script, "error", p.Err(), "output", out.String(), "complaint", complaint.String())
	if p.Err() != nil {
		lines := strings.Split(strings.TrimSpace(out.String()+complaint.String()), "\n")
		return "", fmt.Errorf("on %s: %s: %w: %s", at.Name(), firstLine(script), p.Err(), strings.Join(lines[max(0, len(lines)-outputLines):], "\n"))
	}
	return out.String(), nil
}

func firstLine(script string) string {
	line, _, more := strings.Cut(strings.TrimSpace(script), "\n")
	if more {
		line += " ..."
	}
	return line
}

type change struct {
	node    host.Host   // the node at hand
	members []host.Host // with the node at hand
	on      string      // default target of steps
	alive   func() error
	stop    func() error
	// accepted is called after the step with which the change is accepted, and after all steps.
	accepted func()
}

func (c *cluster) runSteps(ctx context.Context, runSteps []Step, ch change) error {
	marked := false
	for _, s := range runSteps {
		marked = marked || s.Accepted
	}
	for _, s := range runSteps {
		if err := c.runStep(ctx, s, ch); err != nil {
			return err
		}
		if ch.accepted != nil && (s.Accepted || !marked && s.Run != "") {
			ch.accepted()
		}
	}
	if ch.accepted != nil {
		ch.accepted()
	}
	return nil
}

func (c *cluster) runStep(ctx context.Context, s Step, ch change) error {
	if s.Stop {
		return ch.stop()
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, at := range ch.targets(s.On) {
		g.Go(func() error {
			if s.Run != "" {
				_, err := c.runCommand(gctx, at, s.Run, c.stepData(s, at, ch))
				return err
			}
			return c.Servers.Await(gctx, func(ctx context.Context) error {
				if ch.alive != nil {
					if err := ch.alive(); err != nil {
						return nil // returned below; the condition can no longer become true
					}
				}
				_, err := c.runCommand(ctx, at, s.Until, c.stepData(s, at, ch))
				return err
			})
		})
	}
	err := g.Wait()
	if ch.alive != nil {
		err = errors.Join(err, ch.alive())
	}
	return err
}

// stepData returns the template data of a step: for the changed node, or for each member.
func (c *cluster) stepData(s Step, at host.Host, ch change) templateData {
	if s.On == "each" {
		return c.templateData(at, ch.members)
	}
	return c.templateData(ch.node, ch.members)
}

func (ch change) targets(on string) []host.Host {
	if on == "" {
		on = ch.on
	}
	switch on {
	case "each":
		return ch.members
	case "first":
		return ch.members[:1]
	case "other":
		for _, m := range ch.members {
			if m.Name() != ch.node.Name() {
				return []host.Host{m}
			}
		}
	}
	return []host.Host{ch.node}
}
