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
		Short: "Make an event happen in a run that goes on",
		Long: "Make an event happen at once in the trial that measures. The event is written as in an experiment file. for:\n" +
			"says how long it lasts; without for: it lasts until the trial ends. It is recorded like the experiment's own\n" +
			"events, and makes its trial suspect. docs/events.md lists the kinds.\n\n" +
			"The exit code is 2 when the run knows no such event, and 1 when no trial measures.",
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
				return advice.With(err, "begin one with skerry run or skerry play, and give its directory with --run DIR")
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
	c.Flags().StringVar(&dir, "run", "runs/latest", "the run directory, `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the event as the run recorded it")
	return c
}
