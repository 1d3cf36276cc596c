package runner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/record"
)

// failure is that of a run of which some trials failed.
func (r *run) failure(failed, of int) error {
	return advice.With(fmt.Errorf("%d of %d %w", failed, of, ErrTrials), "%s", again(r.writer.Summary().Trials, r.writer.Dir()))
}

// givenUp is the end of a run of which so many trials failed in a row.
func (r *run) givenUp(inARow int, last record.Trial) error {
	return advice.With(fmt.Errorf("%d %w in a row, the last one: %s", inARow, ErrTrials, last.Error), "%s", again(r.writer.Summary().Trials, r.writer.Dir()))
}

// again says what to do about trials that failed. Those that fail again for the same reason are not worth another try.
func again(trials []record.Trial, dir string) string {
	measured := func(t record.Trial) bool { return t.State == record.TrialOK }
	switch {
	case allAlike(trials):
		return fmt.Sprintf("all trials fail alike: mend the cause first; logs of the database are below %s/trials", dir)
	case !slices.ContainsFunc(trials, measured): // it may be what the experiment says, which --resume runs as it was
		return fmt.Sprintf("logs of the database are below %s/trials; mend the cause, and where it was outside the experiment go on with: skerry run --resume %s", dir, dir)
	}
	return "try them again with: skerry run --resume " + dir
}

// allAlike tells whether no trial measured, and several failed with one message.
func allAlike(trials []record.Trial) bool {
	for _, t := range trials {
		if t.State != record.TrialFailed || cause(t.Error) != cause(trials[0].Error) {
			return false
		}
	}
	return len(trials) > 1
}

// figures are what differs between messages of one cause: times, addresses, processes.
var figures = regexp.MustCompile(`[0-9][0-9.]*(ns|us|µs|ms|s|m|h)?`)

// cause is the first line of an error without its figures.
func cause(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return figures.ReplaceAllString(line, "0")
}
