package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/run/live"
)

func newFire(a *app) *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "fire EVENT",
		Short: "Inject an event into a running experiment",
		Long: "Inject an event into the trial that is measuring now. EVENT has the syntax of an experiment file. for: sets the\n" +
			"duration; without it the event lasts until the trial ends. The event is recorded like the experiment's own\n" +
			"events, and makes its trial suspect. docs/events.md lists the kinds of events.\n" +
			"\n" +
			"The exit code is 2 when the event is invalid, and 1 when no trial is measuring.",
		Example: `  skerry fire 'kill: {nodes: Pune}, for: 10s'
  skerry fire 'link_down: {between: [Pune, Seoul]}, for: 5s'
  skerry fire 'latency: {of: Melbourne, scale: 3}' --run runs/latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.TrimSpace(args[0])
			if !strings.HasPrefix(text, "{") {
				text = "{" + text + "}"
			}
			e, err := live.SendEvent(cmd.Context(), dir, []byte(text))
			if errors.Is(err, live.ErrNotLive) {
				return advice.With(err, "start one with skerry run or skerry play, and name its directory with --run DIR")
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(e)
			}
			_, err = fmt.Fprintf(a.Out, "fired: %s\n", e.Message)
			return err
		},
	}
	c.Flags().StringVar(&dir, "run", "runs/latest", "run directory `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the recorded event as JSON")
	return c
}
